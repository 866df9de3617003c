//! The host's threads, while the agent's code runs on them.

use std::arch::asm;
use std::ffi::c_int;

/// `PTHREAD_CANCEL_DISABLE` of glibc's `pthread.h`.
const CANCEL_DISABLE: c_int = 1;

/// `PTHREAD_CANCEL_DEFERRED`.
const CANCEL_DEFERRED: c_int = 0;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// Whether the calling thread has thread-local data (the C library's vector of it). The child of a
/// clone(2) with memory of its own for that, all zero, has none: Chromium's sandbox makes one that
/// calls chroot(2) and ends. To read a thread-local variable there is a fault.
pub fn has_thread_data() -> bool {
    let vector: usize;
    // SAFETY: reads the second word of the thread's control block, the first on aarch64.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, fs:[8]", out(reg) vector, options(nostack, preserves_flags, readonly));
        #[cfg(target_arch = "aarch64")]
        asm!("mrs {0}, tpidr_el0", "ldr {0}, [{0}]", out(reg) vector, options(nostack, preserves_flags, readonly));
    }
    vector != 0
}

/// The thread ends the process, and is not cancelled any more: it may be cancellable at any
/// instruction (`PTHREAD_CANCEL_ASYNCHRONOUS`).
pub fn keep_from_cancellation() {
    set_cancel_state(CANCEL_DISABLE);
}

/// As [`kept`], of a thread that ends the process. If it was cancelled meanwhile, it ends in an
/// exit handler that waits, and not before: without the agent the process would have ended.
pub fn kept_in_exit<T>(body: impl FnOnce() -> T) -> T {
    kept(|| {
        let result = body();
        let mut before = 0;
        // SAFETY: a valid type; an int is written.
        unsafe { pthread_setcanceltype(CANCEL_DEFERRED, &raw mut before) };
        result
    })
}

/// Runs `body`, during which the thread is not cancelled (pthread_setcancelstate(3)): the agent's
/// system calls would be the points where it is, and no cancellation may unwind Rust's functions.
/// Puts errno back to what it was. A thread without thread-local data has no such state.
pub fn kept<T>(body: impl FnOnce() -> T) -> T {
    let state = HostState::keep();
    let result = body();
    if let Some(state) = state {
        state.put_back();
    }
    result
}

/// What the agent's code may change of a thread.
struct HostState {
    errno: c_int,
    cancel_state: c_int,
}

impl HostState {
    /// `None`: the thread has no thread-local data, and no errno.
    fn keep() -> Option<HostState> {
        // SAFETY: points to this thread's errno, if it has one.
        let errno = || unsafe { *libc::__errno_location() };
        let keep = || HostState { errno: errno(), cancel_state: set_cancel_state(CANCEL_DISABLE) };
        has_thread_data().then(keep)
    }

    fn put_back(self) {
        set_cancel_state(self.cancel_state);
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.errno };
    }
}

/// Returns the one before.
fn set_cancel_state(state: c_int) -> c_int {
    let mut before = 0;
    // SAFETY: a valid state; an int is written. Async-signal-safe in glibc.
    unsafe { pthread_setcancelstate(state, &raw mut before) };
    before
}
