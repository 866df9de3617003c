//! Calls by which a program gives up privileges, interposed where the library is preloaded: they
//! wait a moment for a start of the agent that is in progress (`lifecycle/pause.rs`).
//!
//! glibc has all threads change users, and aborts the process if one may not do what the calling
//! one may. A program that kept its capabilities across an earlier change has them in the calling
//! thread alone. So the agent ends before such a call, and starts again after it. Usually it did so
//! before: `single_threaded.rs`. Not where the program's root has no /proc, which counts threads.
//!
//! The agent starts beside the program. A service may become an ordinary user, or change to another
//! root directory, in its first millisecond, before the socket is there. The socket would then be
//! where no client looks for it, or there would be none. (This happened in 4 of 60 starts on a busy
//! machine.) Not interposed: calls made without the C library, which change the calling thread
//! only.

use crate::interpose::real_fn::RealFn;
use crate::interpose::single_threaded::capabilities::fall_behind;
use profiler::for_library::lifecycle;
use std::ffi::{c_int, c_ulong, c_void};
use swipr_os::disabled;

type OfThree = unsafe extern "C" fn(c_ulong, c_ulong, c_ulong) -> c_int;

/// # Safety
/// As the function behind `next` says of what its caller gave.
unsafe fn settled_before(next: &'static RealFn, [first, second, third]: [c_ulong; 3]) -> c_int {
    disabled::contained(lifecycle::settle_before_change);
    let is_of_all_threads = !std::ptr::eq(next, &CHROOT);
    let pause = || is_of_all_threads.then(|| lifecycle::pause_if_thread(fall_behind)).flatten();
    let paused = disabled::contained(pause).flatten();
    let next = next.get();
    if next.is_null() {
        return -1;
    }
    // SAFETY: integers and pointers are passed alike, in registers, and a function that takes fewer
    // does not look at the others.
    let next = unsafe { std::mem::transmute::<*mut c_void, OfThree>(next) };
    // SAFETY: the caller's contract.
    let result = unsafe { next(first, second, third) };
    // errno is the caller's.
    disabled::contained(|| paused.map(lifecycle::Paused::resume));
    result
}

macro_rules! stand_in_front {
    ($($name:ident $next:ident $text:literal,)*) => {
        $(
            static $next: RealFn = RealFn::new($text);

            /// The call of this name.
            ///
            /// # Safety
            /// As the real function requires.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(first: c_ulong, second: c_ulong, third: c_ulong) -> c_int {
                // SAFETY: as this function's own.
                unsafe { settled_before(&$next, [first, second, third]) }
            }
        )*

        /// Looks up the real functions.
        pub fn prepare() {
            $(_ = $next.get();)*
        }
    };
}

stand_in_front! {
    setuid SETUID c"setuid",
    setgid SETGID c"setgid",
    seteuid SETEUID c"seteuid",
    setegid SETEGID c"setegid",
    setreuid SETREUID c"setreuid",
    setregid SETREGID c"setregid",
    setresuid SETRESUID c"setresuid",
    setresgid SETRESGID c"setresgid",
    setgroups SETGROUPS c"setgroups",
    chroot CHROOT c"chroot",
}
