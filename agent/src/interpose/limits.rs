//! Calls by which a program limits how many threads its user may have, interposed where the library
//! is preloaded: the agent starts the threads that it may need before. haproxy sets the limit to 0
//! after its start, and could not be recorded. Not interposed: calls made without the C library.

use crate::interpose::real_fn::RealFn;
use profiler::for_library::lifecycle;
use std::ffi::{c_int, c_ulong, c_void};
use swipr_os::disabled;

type OfFour = unsafe extern "C" fn(c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;

/// `at`: which argument says what is limited; the limit is behind it, and the process before it, if
/// there is such an argument.
///
/// # Safety
/// As the function behind `next` says of what its caller gave.
unsafe fn after_preparing(next: &RealFn, at: usize, all: [c_ulong; 4]) -> c_int {
    if let (Some(resource), Some(limit)) = (all.get(at), all.get(at + 1)) {
        let process = at.checked_sub(1).and_then(|at| all.get(at)).map_or(0, |process| *process as u32);
        disabled::contained(|| lifecycle::keep_threads_before_limit(process, *resource as u32, *limit));
    }
    let next = next.get();
    if next.is_null() {
        return -1;
    }
    // SAFETY: integers and pointers are passed alike, in registers, and a function that takes fewer
    // does not look at the others.
    let next = unsafe { std::mem::transmute::<*mut c_void, OfFour>(next) };
    let [first, second, third, fourth] = all;
    // SAFETY: the caller's contract.
    unsafe { next(first, second, third, fourth) }
}

macro_rules! stand_in_front {
    ($($name:ident $next:ident $text:literal $at:literal,)*) => {
        $(
            static $next: RealFn = RealFn::new($text);

            /// The call of this name.
            ///
            /// # Safety
            /// As the real function requires.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                first: c_ulong,
                second: c_ulong,
                third: c_ulong,
                fourth: c_ulong,
            ) -> c_int {
                // SAFETY: as this function's own.
                unsafe { after_preparing(&$next, $at, [first, second, third, fourth]) }
            }
        )*

        /// Looks up the real functions.
        pub fn prepare() {
            $(_ = $next.get();)*
        }
    };
}

stand_in_front! {
    setrlimit SETRLIMIT c"setrlimit" 0,
    setrlimit64 SETRLIMIT64 c"setrlimit64" 0,
    prlimit PRLIMIT c"prlimit" 1,
    prlimit64 PRLIMIT64 c"prlimit64" 1,
}
