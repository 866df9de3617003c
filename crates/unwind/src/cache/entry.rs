//! One place of a cache: tag and value in one atomic word, so that a reader sees a whole entry or
//! another whole entry, and relaxed loads and stores are enough. Which tags and values there are is
//! not known here.

use crate::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module's text; 0: empty.
#[derive(Debug)]
pub(super) struct Entry(pub(super) AtomicU64);

impl Entry {
    /// What was put last, or something before it.
    #[inline(always)]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Puts tag and value.
    #[inline(always)]
    pub(super) fn put(&self, word: u64) {
        self.0.store(word, Relaxed);
    }

    /// Empties it.
    pub(super) fn clear(&self) {
        self.0.store(0, Relaxed);
    }
}
