//! The times of one thread's samples, which never go back.
//!
//! The times of ticks at which a thread was not observed are computed back from a later tick. They
//! may come out before the time of the thread's last sample. Answers to signals may come late, too.
//! Readers want each thread's samples in order.

use rustc_hash::FxHashMap;

/// With so many threads, those without a sample for `LONG_NS` are forgotten.
const MANY: usize = 65_536;
const LONG_NS: u64 = 60_000_000_000;

/// The times of a recording's last samples, by thread.
#[derive(Debug, Default)]
pub struct Times {
    last_ns: FxHashMap<u32, u64>,
}

impl Times {
    /// The time of a thread's last sample, for the caller to advance; 0: the thread has none.
    pub fn last_of(&mut self, tid: u32, now_ns: u64) -> &mut u64 {
        if self.last_ns.len() >= MANY && !self.last_ns.contains_key(&tid) {
            self.last_ns.retain(|_, last_ns| last_ns.saturating_add(LONG_NS) > now_ns);
        }
        self.last_ns.entry(tid).or_default()
    }
}
