//! A place of the table: what one thread writes in its handler, and the sampler sees and frees.

use crate::atomic::{AtomicU64, Ordering::*};

const WRITING: u64 = u64::MAX;

#[derive(Debug)]
pub struct Place {
    /// 0: free; [`WRITING`]; else the thread's id.
    pub tid: AtomicU64,
    pub call: [AtomicU64; 4],
}

impl Place {
    /// Handler: `false` if another thread has it, or it is `closed` (1).
    pub fn take(&self, tid: u32, call: [u64; 4], closed: &AtomicU64) -> bool {
        if self.tid.compare_exchange(0, WRITING, Acquire, Relaxed).is_err() {
            return false;
        }
        for (place, word) in self.call.iter().zip(call) {
            place.store(word, Relaxed);
        }
        self.tid.store(u64::from(tid), SeqCst);
        // Who closes looks once more, and sees this, or is seen here.
        if closed.load(SeqCst) != 0 {
            self.free(tid);
            return false;
        }
        true
    }

    /// Sampler: who has it, and the call.
    pub fn taken(&self) -> Option<(u32, [u64; 4])> {
        let tid = self.tid.load(SeqCst);
        (tid != 0 && tid != WRITING)
            .then(|| (tid as u32, self.call.each_ref().map(|word| word.load(Relaxed))))
    }

    /// If that thread still has it: between its look and this the other side may have freed it, and another thread taken it.
    pub fn free(&self, tid: u32) {
        let _ = self.tid.compare_exchange(u64::from(tid), 0, Release, Relaxed);
    }
}
