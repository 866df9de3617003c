//! `fork`, interposed where the library is preloaded: in a process whose only other threads are the
//! agent's it does what the C library does in one of one thread, which takes no lock. Else a
//! handler that has interrupted malloc(3), or fork(2) itself, and that forks or ends the process,
//! would wait for ever. With several threads it would anyway. Not interposed: the C library's own
//! calls (daemon(3), forkpty(3)).

use crate::heap;
use crate::interpose::real_fn::RealFn;
use profiler::for_library::{agent_threads, lifecycle};
use std::ffi::c_void;
use swipr_os::{disabled, signals, single_thread};

static FORK: RealFn = RealFn::new(c"fork");

/// Looks up the real function.
pub fn prepare() {
    FORK.get();
    single_thread::prepare();
}

type Fork = unsafe extern "C" fn() -> libc::pid_t;

/// fork(2).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> libc::pid_t {
    let next = FORK.get();
    if next.is_null() {
        // SAFETY: points to this thread's errno, always.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        return -1;
    }
    // SAFETY: the function of this name.
    let fork = unsafe { std::mem::transmute::<*mut c_void, Fork>(next) };
    // SAFETY: the caller's contract.
    let fork = || unsafe { fork() };
    let is_alone = || disabled::contained(agent_threads::host_has_one_thread).unwrap_or(true);
    if !lifecycle::is_agents_process() || !is_alone() {
        return fork();
    }
    signals::with_signals_blocked(heap::lock::before_fork);
    let child = lifecycle::fork::as_one_thread(fork);
    if child != 0 {
        disabled::contained(|| signals::with_signals_blocked(heap::lock::after_fork));
    }
    child
}
