//! `_exit` and `_Exit`, interposed where the library is preloaded: shells and Python's
//! multiprocessing end processes in this way, and no `atexit` handler runs. Recordings for which
//! the process waits at its end get what was sampled (`swipr run`, `SWIPR_OUTPUT`). May be called
//! in a signal handler, with any lock held, and in the child of vfork(2). Not interposed: the C
//! library's own calls, in exit(3) and quick_exit(3).

use crate::interpose::real_fn::RealFn;
use profiler::for_library::lifecycle;
use std::ffi::{c_int, c_long, c_void};
use swipr_os::{disabled, host_thread};

static EXIT: RealFn = RealFn::new(c"_exit");

/// Looks up the real function.
pub fn prepare() {
    EXIT.get();
}

type Exit = unsafe extern "C" fn(c_int) -> !;

/// _exit(2).
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    // The child of vfork(2) has the thread of its parent, which goes on and may be cancelled then.
    if lifecycle::is_agents_process() {
        host_thread::keep_from_cancellation();
        disabled::contained(lifecycle::before_exit);
    }
    let next = EXIT.get();
    if next.is_null() {
        loop {
            // SAFETY: ends the process.
            unsafe { libc::syscall(libc::SYS_exit_group, c_long::from(status)) };
        }
    }
    // SAFETY: the function of this name, called with what its caller gave.
    unsafe { std::mem::transmute::<*mut c_void, Exit>(next)(status) }
}

/// _Exit(3), the same.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}
