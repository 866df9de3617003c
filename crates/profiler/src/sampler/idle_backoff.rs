//! Back-off for idle threads: where there are many, not every sweep observes each.
//!
//! A thread that has not run for many observations is observed in every second, fourth, at last
//! sixteenth sweep only. If its clock has not moved at the next observation, that proves where it
//! was at the ticks between (`account.rs`). If it did run, its first moments are sampled less well.
//! So there is no back-off where observations cost next to nothing. And the back-off of a thread
//! whose timer waits ends when that has hit it: else the thread's first tick would be hit, and its
//! next ones seldom.

use swipr_unwind::slot::{self, Ticket};

/// What one observation of an idle thread costs.
const OBSERVATION_NS: u64 = 700;
/// Observations of idle threads may take one part in so many of the time.
const SHARE: u64 = 100;
/// The longest time between two observations of a thread, unless sweeps are rarer.
const LONGEST_NS: u64 = 200_000_000;
/// Idle observations before the first back-off.
const IDLE_OBSERVATIONS: u32 = 16;
const LONGEST_SWEEPS: u64 = 16;

/// A thread that is idle for long is observed in one of so many sweeps.
pub fn sweeps_per_check(threads: usize, interval_ns: u64) -> u32 {
    let interval_ns = interval_ns.max(1);
    let needed = (threads as u64).saturating_mul(OBSERVATION_NS * SHARE).div_ceil(interval_ns);
    let allowed = (LONGEST_NS / interval_ns).max(1);
    needed.min(allowed).clamp(1, LONGEST_SWEEPS) as u32
}

/// A thread's back-off. Sweeps are numbered from 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleBackoff {
    /// The last sweep that observed the thread.
    observed: u64,
    /// The sweeps before this one skip the thread.
    until: u64,
    /// Observations in a row that found the thread idle.
    idle: u32,
    /// The slot of its timer that waits until the thread runs.
    waits: Option<Ticket>,
}

impl IdleBackoff {
    /// Whether this sweep is to observe the thread. If so, notes that it has.
    pub fn is_due(&mut self, sweep: u64) -> bool {
        let was_hit = || self.waits.is_some_and(slot::is_done);
        let due = self.observed != sweep && (sweep >= self.until || was_hit());
        if due {
            self.observed = sweep;
        }
        due
    }

    /// The next sweep observes the thread.
    pub fn end(&mut self) {
        self.until = 0;
    }

    /// An observation found the thread idle. `waits`: the slot of a timer that waits until it runs.
    pub fn was_idle(&mut self, tid: u32, sweeps_per_check: u32, waits: Option<Ticket>) {
        self.waits = waits;
        self.idle = self.idle.saturating_add(1);
        let sweeps = match self.idle / IDLE_OBSERVATIONS {
            0 => 1,
            1 => 2,
            2..=3 => 4,
            4..=7 => 8,
            _ => 16,
        };
        let sweeps = sweeps.min(sweeps_per_check).max(1);
        // Threads that fell idle together are not all observed in the same sweep.
        let backoff = if self.idle.is_multiple_of(IDLE_OBSERVATIONS) { tid % sweeps } else { sweeps - 1 };
        self.until = self.observed + 1 + u64::from(backoff);
    }

    /// An observation found that the thread had run.
    pub fn has_run(&mut self) {
        (self.idle, self.until) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::acquire_slot;
    use swipr_unwind::slot::StackBounds;

    #[test]
    fn few_threads_and_slow_ticks_need_no_rest() {
        assert_eq!(sweeps_per_check(100, 10_000_000), 1);
        assert_eq!(sweeps_per_check(1000, 10_000_000), 7);
        assert_eq!(sweeps_per_check(5000, 10_000_000), 16);
        assert_eq!(sweeps_per_check(100, 100_000), 16);
        assert_eq!(sweeps_per_check(5000, 1_000_000_000), 1, "a backoff would last longer than 200 ms");
        assert_eq!(sweeps_per_check(5000, 60_000_000), 3);
    }

    #[test]
    fn rests_grow_and_end_when_the_thread_has_run() {
        let mut backoff = IdleBackoff::default();
        let mut checks = vec![];
        for sweep in 0..400u64 {
            if backoff.is_due(sweep + 1) {
                checks.push(sweep);
                backoff.was_idle(3, 8, None);
            }
        }
        assert_eq!(checks[..16], (0..16).collect::<Vec<u64>>());
        let gaps: Vec<u64> = checks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps[20..30].iter().all(|&gap| gap == 2), "{gaps:?}");
        assert!(gaps[40..60].iter().filter(|&&gap| gap == 4).count() >= 18, "{gaps:?}");
        assert!(gaps[70..].iter().filter(|&&gap| gap == 8).count() >= 10, "{gaps:?}");
        backoff.has_run();
        assert!(backoff.is_due(401));
        assert!(!backoff.is_due(401), "once a sweep");
        backoff.was_idle(3, 8, None);
        assert!(backoff.is_due(402));
    }

    /// Regression: the second tick of a thread's turn was seldom hit, the first always.
    #[test]
    fn a_thread_that_its_waiting_timer_has_hit_is_observed_in_the_next_sweep() {
        let ticket = acquire_slot(3, StackBounds::default()).unwrap();
        ticket.slot().unwrap().set_owner(3, 5);
        let mut backoff = IdleBackoff::default();
        let observed = (1..).filter(|sweep| {
            backoff.is_due(*sweep) && {
                backoff.was_idle(3, 16, Some(ticket));
                true
            }
        });
        let last = observed.take(200).last().unwrap();
        assert!(!backoff.is_due(last + 1));
        assert!(slot::begin(ticket, 5) && !backoff.is_due(last + 1));
        slot::end(ticket);
        assert!(backoff.is_due(last + 1));
        assert!(slot::release(ticket));
    }
}
