//! `fork`, interposed where the library is preloaded: in a process of one thread no handler of the
//! program runs inside of it. The C library takes no lock there; the agent's threads make it lock
//! the heap and its list of fork handlers. A handler that ends the process by exit(3), which needs
//! these, would wait for ever. With several threads it would anyway. Not interposed: the C
//! library's own calls (daemon(3), forkpty(3)).

use crate::interpose::real_fn::RealFn;
use profiler::for_library::{agent_threads, lifecycle};
use std::ffi::c_void;
use swipr_os::{disabled, signals};

static FORK: RealFn = RealFn::new(c"fork");

/// Looks up the real function.
pub fn prepare() {
    FORK.get();
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
    if lifecycle::is_agents_process() && is_alone() { signals::with_handlers_blocked(fork) } else { fork() }
}
