//! What hits represent that come at the ends of system calls and of forks.

use crate::sampler::ticks::mixed;

/// Where a hit found the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitAt {
    /// Anywhere.
    Tick,
    /// At the end of a system call, so long after the timer was armed, in which the thread has used
    /// so much CPU time and did not block.
    Return {
        /// CPU time.
        used_ns: u64,
        /// Time.
        passed_ns: u64,
    },
    /// At the end of a fork of so much CPU time: the thread has armed its timer itself.
    Fork(u64),
}

impl HitAt {
    /// How many hits there would be if signals came in system calls, too, or sweeps were not held
    /// up by the fork: one for each sweep at which the thread had a CPU, or for each tick if that
    /// is longer. Fractions of a hit count at random,
    /// by the mixed bits of a clock.
    pub fn hits(self, interval_ns: u64, tick_ns: u64) -> u32 {
        let (ns, count) = match self {
            HitAt::Tick => return 1,
            HitAt::Return { used_ns, passed_ns } => {
                let share = used_ns as f64 / passed_ns.max(1) as f64;
                (used_ns, share * (1.0 + more_sweeps(passed_ns, interval_ns, tick_ns)))
            }
            HitAt::Fork(ns) => (ns, ns as f64 / interval_ns.max(tick_ns) as f64),
        };
        count as u32 + u32::from((mixed(ns) as f64) < count.fract() * u64::MAX as f64)
    }
}

/// How many more sweeps have picked a tick of the time since one armed the timer. A sweep is at any
/// moment of its interval, so the next comes in less than an interval by chance. A timer that is
/// armed at each tick is armed right after one; others at any moment between two.
fn more_sweeps(passed_ns: u64, interval_ns: u64, tick_ns: u64) -> f64 {
    if interval_ns <= tick_ns {
        return (passed_ns.saturating_sub(tick_ns - tick_ns / 16) / tick_ns.max(1)) as f64;
    }
    let intervals = passed_ns.saturating_sub(tick_ns / 2) as f64 / interval_ns as f64;
    if intervals < 1.0 { intervals * intervals / 2.0 } else { intervals - 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_call_of_several_ticks_has_a_hit_at_each_and_one_of_several_intervals_at_each_of_those() {
        let call = |used_ns, passed_ns| HitAt::Return { used_ns, passed_ns };
        let hits = |ns, interval_ns| call(ns, ns).hits(interval_ns, 4 * MS);
        assert_eq!([4 * MS + 200_000, 7 * MS, 8 * MS, 40 * MS].map(|ns| hits(ns, MS)), [1, 1, 2, 10]);
        let mean = |ns| {
            let hits: u32 = (0..10_000).map(|n| hits(ns + n, 10 * MS)).sum();
            ((hits + 500) / 1000) as f32 / 10.0
        };
        assert_eq!([2 * MS, 7 * MS, 12 * MS, 102 * MS].map(mean), [1.0, 1.1, 1.5, 10.5]);
        assert_eq!(HitAt::Tick.hits(10 * MS, 4 * MS), 1);
    }

    #[test]
    fn a_call_that_has_had_a_cpu_for_a_third_of_its_time_has_a_third_of_the_hits() {
        let calls = (0..10_000).map(|n| 6 * MS + n * 1_777);
        let hits: u64 = calls
            .map(|ns| HitAt::Return { used_ns: ns, passed_ns: 3 * ns })
            .map(|at| u64::from(at.hits(10 * MS, 4 * MS)))
            .sum();
        let sweeps: u64 =
            (0..10_000).map(|n| 10 + 10 * (3 * (6 * MS + n * 1_777) - 2 * MS) / (10 * MS) - 5).sum();
        assert!(hits.abs_diff(sweeps / 30) < sweeps / 1000, "{hits} of {sweeps}");
    }

    #[test]
    fn forks_have_as_many_hits_as_their_time_has_intervals() {
        let forks = || (0..10_000).map(|n| 5 * MS + n * 1_777);
        let hits: u64 = forks().map(|ns| u64::from(HitAt::Fork(ns).hits(10 * MS, 4 * MS))).sum();
        let expected = forks().sum::<u64>() / (10 * MS);
        assert!(hits.abs_diff(expected) < expected / 50, "{hits} of {expected}");
    }
}
