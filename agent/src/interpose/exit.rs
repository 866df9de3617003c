//! The ends of a process, interposed where the library is preloaded. The C library's own calls are
//! not, as those in err(3).
//!
//! `_exit` and `_Exit`: shells and Python's multiprocessing end processes in this way, and no
//! `atexit` handler runs. Recordings for which the process waits at its end get what was sampled
//! (`swipr run`, `SWIPR_OUTPUT`). May be called in a signal handler, with any lock held, and in the
//! child of vfork(2).
//!
//! `exit` and `quick_exit`: where other threads run, recordings end before the program's handlers;
//! `lifecycle/exit.rs` says why.

use crate::interpose::real_fn::RealFn;
use profiler::for_library::lifecycle;
use std::ffi::{c_int, c_long, c_void};
use swipr_os::{disabled, host_thread};

static EXIT_AT_ONCE: RealFn = RealFn::new(c"_exit");
static EXIT: RealFn = RealFn::new(c"exit");
static QUICK_EXIT: RealFn = RealFn::new(c"quick_exit");

/// Looks up the real functions.
pub fn prepare() {
    for next in [&EXIT_AT_ONCE, &EXIT, &QUICK_EXIT] {
        next.get();
    }
}

/// A handler may end the thread, or it is cancelled there: then this library's frames are unwound.
type Exit = unsafe extern "C-unwind" fn(c_int) -> !;

fn call(next: &RealFn, status: c_int) -> ! {
    let next = next.get();
    if next.is_null() {
        loop {
            // SAFETY: ends the process.
            unsafe { libc::syscall(libc::SYS_exit_group, c_long::from(status)) };
        }
    }
    // SAFETY: the function of this name, called with what its caller gave.
    unsafe { std::mem::transmute::<*mut c_void, Exit>(next)(status) }
}

/// _exit(2).
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    // The child of vfork(2) has the thread of its parent, which resumes and may be cancelled then.
    if lifecycle::is_agents_process() {
        host_thread::keep_from_cancellation();
        disabled::contained(lifecycle::before_exit);
    }
    call(&EXIT_AT_ONCE, status)
}

/// _Exit(3), the same.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

/// exit(3).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn exit(status: c_int) -> ! {
    lifecycle::before_handlers();
    call(&EXIT, status)
}

/// quick_exit(3).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn quick_exit(status: c_int) -> ! {
    lifecycle::before_handlers();
    call(&QUICK_EXIT, status)
}
