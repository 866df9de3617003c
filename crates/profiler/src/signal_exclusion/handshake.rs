//! A handshake between the sampler, which signals threads, and a thread that excludes itself. When
//! the thread continues, the sampler is not about to signal it.
//!
//! Each of the two writes what it does, then reads what the other does: SeqCst, so that at least
//! one of them sees the other.

use crate::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};

/// Sampler: calls `ask` for thread `tid`; `None`: the thread `is_out`. Meanwhile `asked` is the
/// thread's id, for [`wait_until_out`].
pub(super) fn ask<T>(
    asked: &AtomicU32,
    tid: u32,
    is_out: impl FnOnce() -> bool,
    ask: impl FnOnce() -> T,
) -> Option<T> {
    asked.store(tid, SeqCst);
    let answer = (!is_out()).then(ask);
    asked.store(0, SeqCst);
    answer
}

/// Sampler: whether the thread with that bit is excluded.
pub(super) fn is_out(byte: &AtomicU8, bit: u8) -> bool {
    byte.load(SeqCst) & bit != 0
}

/// The thread, or its creator: excludes the thread from now on.
pub(super) fn set(byte: &AtomicU8, bit: u8) {
    byte.fetch_or(bit, SeqCst);
}

/// Thread `tid`, which is excluded: waits while the sampler is signalling it and `waits` is true.
pub(super) fn wait_until_out(asked: &AtomicU32, tid: u32, mut waits: impl FnMut() -> bool) {
    while asked.load(SeqCst) == tid && waits() {}
}
