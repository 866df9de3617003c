//! A place of the table: what one thread writes in its handler, and the sampler sees and frees.

use crate::atomic::{AtomicU64, Ordering::*};

/// In the lower half, while somebody takes it.
const WRITING: u32 = u32::MAX;
const ONCE: u64 = 1 << 32;

#[derive(Debug)]
pub struct Place {
    /// The lower half: 0: free; [`WRITING`]; else the thread's id. The upper half: how often it was taken, so that who has seen one taking does not free the next.
    pub taking: AtomicU64,
    pub call: [AtomicU64; 4],
}

/// Who has it, for this once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taking(u64);

impl Taking {
    pub fn tid(self) -> u32 {
        self.0 as u32
    }
}

impl Place {
    /// Handler: `false` if another thread has it, or it is `closed` (1).
    pub fn take(&self, tid: u32, call: [u64; 4], closed: &AtomicU64) -> bool {
        let free = self.taking.load(Relaxed);
        let writing = free | u64::from(WRITING);
        if free as u32 != 0 || self.taking.compare_exchange(free, writing, Acquire, Relaxed).is_err() {
            return false;
        }
        for (place, word) in self.call.iter().zip(call) {
            place.store(word, Relaxed);
        }
        let taking = Taking(free.wrapping_add(ONCE) | u64::from(tid));
        self.taking.store(taking.0, SeqCst);
        // Who closes looks once more, and sees this, or is seen here.
        if closed.load(SeqCst) != 0 {
            self.free(taking);
            return false;
        }
        true
    }

    /// Sampler: who has it, and the call.
    pub fn taken(&self) -> Option<(Taking, [u64; 4])> {
        let taking = Taking(self.taking.load(SeqCst));
        let is_taken = !matches!(taking.tid(), 0 | WRITING);
        is_taken.then(|| (taking, self.call.each_ref().map(|word| word.load(Relaxed))))
    }

    /// If it is still taken so: between a look and this the other side may have freed it, and somebody taken it again.
    pub fn free(&self, taking: Taking) {
        let free = taking.0 & !u64::from(u32::MAX);
        let _ = self.taking.compare_exchange(taking.0, free, Release, Relaxed);
    }
}
