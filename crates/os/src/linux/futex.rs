//! Waiting for a word in memory to change (futex(2)). Calls may return earlier than they say.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits until it is woken, at most so long, if the word is `expected`.
pub fn wait(word: &AtomicU32, expected: u32, at_most: Duration) {
    let time = libc::timespec {
        tv_sec: at_most.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is alive, and the time is valid.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, expected, &raw const time) };
}

/// Wakes one thread that waits for the word.
pub fn wake_one(word: &AtomicU32) {
    let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is alive.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, 1) };
}
