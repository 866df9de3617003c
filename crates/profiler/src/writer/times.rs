//! The times of one thread's samples, which never go back.
//!
//! The times of ticks at which a thread was not observed are computed back from a later tick. They
//! may come out before the time of the thread's last sample. Answers to signals may come late, too.
//! Readers want each thread's samples in order.

use crate::sample_queue::Event;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use swipr_formats::model::{Sample, Stack};

/// A sample of more ticks is written in parts.
const TICKS_AT_ONCE: u32 = 16;
/// With so many threads, those without a sample for `LONG_NS` are forgotten.
const MANY: usize = 65_536;
const LONG_NS: u64 = 60_000_000_000;

/// The times of a recording's last samples, by thread.
#[derive(Debug, Default)]
pub struct Times {
    last_ns: FxHashMap<u32, u64>,
}

impl Times {
    /// The samples that an event is, in parts: a format computes the times of the ticks that it
    /// gets at once.
    pub fn samples<'a>(
        &'a mut self,
        event: &'a Event,
        stack: &'a Arc<Stack>,
    ) -> impl Iterator<Item = Sample<'a>> {
        let last_ns = self.last_of(event.thread.tid, event.time_ns);
        let time_of = |later: u32| {
            let back_ns = u64::from(later).saturating_mul(event.weight_ns);
            event.time_ns.saturating_sub(back_ns)
        };
        let mut left = event.ticks;
        std::iter::from_fn(move || {
            let is_back = time_of(left.checked_sub(1)?) < *last_ns;
            let ticks = if is_back { 1 } else { left.min(TICKS_AT_ONCE) };
            left -= ticks;
            *last_ns = time_of(left).max(*last_ns);
            Some(Sample {
                time_ns: *last_ns,
                ticks,
                thread: &event.thread,
                state: event.state,
                weight_ns: event.weight_ns,
                stack,
            })
        })
    }

    /// The time of a thread's last sample; 0: the thread has none.
    fn last_of(&mut self, tid: u32, now_ns: u64) -> &mut u64 {
        if self.last_ns.len() >= MANY && !self.last_ns.contains_key(&tid) {
            self.last_ns.retain(|_, last_ns| last_ns.saturating_add(LONG_NS) > now_ns);
        }
        self.last_ns.entry(tid).or_default()
    }
}
