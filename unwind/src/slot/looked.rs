//! What sampler and handler tell each other of a thread besides its stack: what it did when it was looked at, and until the handler came.
//! It is what [`crate::call_again`] goes by.

use crate::call_again::{Awake, Now, Seen};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Of `cpu` in [`Looked`]: it waited for a CPU, and had not got one when the signal was there.
const WAITS: u64 = u64::MAX;
const WAITS_STILL: u64 = u64::MAX - 1;

/// Written by the sampler before the slot is lent, and the rest by the handler while it writes the slot.
#[derive(Debug, Default)]
pub struct Looked {
    /// When the thread was seen awake (0: it was not), and its CPU clock then.
    at: AtomicU64,
    cpu: AtomicU64,
    /// Its CPU clock when the sampler began to look.
    first_cpu: AtomicU64,
    /// When the signal was there (0: not known yet).
    sent_at: AtomicU64,
    /// When the handler came, to a call that was cut short (0: to none), and the thread's CPU clock then.
    came_at: AtomicU64,
    came_cpu: AtomicU64,
}

impl Looked {
    /// Sampler: the slot is about to be lent.
    pub fn begin(&self, seen: Option<Seen>) {
        let awake = match seen.map(|seen| seen.awake) {
            Some(Awake::Runs(cpu_ns)) => cpu_ns,
            Some(Awake::WaitsStill) => WAITS_STILL,
            Some(Awake::Waits) | None => WAITS,
        };
        self.at.store(seen.map_or(0, |seen| seen.at_ns), Relaxed);
        self.cpu.store(awake, Relaxed);
        self.first_cpu.store(seen.map_or(0, |seen| seen.first_cpu_ns), Relaxed);
        self.sent_at.store(0, Relaxed);
        self.came_at.store(0, Relaxed);
    }

    /// What [`Looked::begin`] was given.
    #[inline(always)]
    pub fn seen(&self) -> Option<Seen> {
        let at_ns = self.at.load(Relaxed);
        let awake = match self.cpu.load(Relaxed) {
            WAITS => Awake::Waits,
            WAITS_STILL => Awake::WaitsStill,
            cpu_ns => Awake::Runs(cpu_ns),
        };
        let first_cpu_ns = self.first_cpu.load(Relaxed);
        let sent_ns = Some(self.sent_at.load(Relaxed)).filter(|&ns| ns != 0);
        (at_ns != 0).then_some(Seen { at_ns, first_cpu_ns, awake, sent_ns })
    }

    /// Sampler: the signal is there, at `now_ns` at the latest; `waits_still`: the thread, seen to wait for a CPU, has not got one. To a handler that
    /// runs at once this may come too late: it believes less.
    pub fn was_sent(&self, now_ns: u64, waits_still: bool) {
        if waits_still {
            self.cpu.store(WAITS_STILL, Relaxed);
        }
        self.sent_at.store(now_ns, Relaxed);
    }

    /// Sampler: a signal that comes later does not count from then.
    pub fn forget(&self) {
        self.at.store(0, Relaxed);
    }

    /// Handler: a call was cut short when it came.
    pub fn came(&self, now: Now) {
        self.came_cpu.store(now.cpu_ns, Relaxed);
        self.came_at.store(now.at_ns, Relaxed);
    }

    /// What [`Looked::came`] was given.
    #[inline(always)]
    pub fn when_it_came(&self) -> Option<Now> {
        let at_ns = self.came_at.load(Relaxed);
        (at_ns != 0).then(|| Now { at_ns, cpu_ns: self.came_cpu.load(Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tells_the_other_what_it_was_told() {
        let looked = Looked::default();
        assert_eq!((looked.seen(), looked.when_it_came()), (None, None));
        let seen = Seen { at_ns: 1000, first_cpu_ns: 7, awake: Awake::Waits, sent_ns: None };
        for awake in [Awake::Waits, Awake::Runs(9), Awake::WaitsStill] {
            looked.begin(Some(Seen { awake, ..seen }));
            assert_eq!(looked.seen(), Some(Seen { awake, ..seen }));
        }
        looked.begin(Some(seen));
        looked.was_sent(2000, true);
        assert_eq!(looked.seen(), Some(Seen { awake: Awake::WaitsStill, sent_ns: Some(2000), ..seen }));
        let now = Now { at_ns: 3000, cpu_ns: 8 };
        looked.came(now);
        assert_eq!(looked.when_it_came(), Some(now));
        looked.forget();
        assert_eq!(looked.seen(), None);
        looked.begin(None);
        assert_eq!((looked.seen(), looked.when_it_came()), (None, None));
    }
}
