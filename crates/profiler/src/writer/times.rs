//! The times of one thread's samples, which never go back.
//!
//! Where ticks have passed a thread by, their times are reckoned back from a later one, and may
//! come out before the time of the sample that was told last; answers to signals may come late.
//! Readers want each thread's samples in order.

use rustc_hash::FxHashMap;

/// Threads that are remembered; then those without a sample for long are forgotten.
const MANY: usize = 65_536;
const LONG_NS: u64 = 60_000_000_000;

/// See the module's text. One a recording.
#[derive(Debug, Default)]
pub struct Times {
    last_ns: FxHashMap<u32, u64>,
}

impl Times {
    /// The time of a thread's last sample, to be moved on; of one that has none, 0.
    pub fn last_of(&mut self, tid: u32, now_ns: u64) -> &mut u64 {
        if self.last_ns.len() >= MANY && !self.last_ns.contains_key(&tid) {
            self.last_ns.retain(|_, last_ns| last_ns.saturating_add(LONG_NS) > now_ns);
        }
        self.last_ns.entry(tid).or_default()
    }
}
