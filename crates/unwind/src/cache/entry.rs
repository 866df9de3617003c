//! One entry of a cache: tag and value in one atomic word. A reader always sees a whole entry, so
//! relaxed loads and stores are enough. The caches decide what tags and values are.

use crate::atomic::{AtomicU64, Ordering::Relaxed};

/// See the module's text; 0: empty.
#[derive(Debug)]
pub(super) struct Entry(pub(super) AtomicU64);

impl Entry {
    /// The last word, or an earlier one.
    #[inline(always)]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Puts tag and value.
    #[inline(always)]
    pub(super) fn put(&self, word: u64) {
        self.0.store(word, Relaxed);
    }

    /// Empties it. Writes only where there is something: a forked child copies each page that it
    /// writes to.
    pub(super) fn clear(&self) {
        if self.get() != 0 {
            self.0.store(0, Relaxed);
        }
    }
}
