//! Between the sampler, which asks threads, and a thread that wants to be asked no more: when the
//! thread goes on, no question is under way that it has not been sent.
//!
//! Each says what it does, then looks at what the other does: SeqCst, so that one of the two at
//! least sees the other.

use crate::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};

/// Sampler: asks thread `tid`, unless it `is_out`: `None`. `asked`: whom it is asking, for
/// [`wait_until_out`].
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

/// Sampler: whether a thread with that bit is out.
pub(super) fn is_out(byte: &AtomicU8, bit: u8) -> bool {
    byte.load(SeqCst) & bit != 0
}

/// The thread, or who starts it: it is out from now on.
pub(super) fn set(byte: &AtomicU8, bit: u8) {
    byte.fetch_or(bit, SeqCst);
}

/// Thread `tid`, which is out: waits while it is just being asked, and `waits` says so.
pub(super) fn wait_until_out(asked: &AtomicU32, tid: u32, mut waits: impl FnMut() -> bool) {
    while asked.load(SeqCst) == tid && waits() {}
}
