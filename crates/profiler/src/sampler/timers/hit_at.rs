//! What hits stand for that come at the ends of system calls and of forks.

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
    /// up by the fork: one at each interval at which the thread has a CPU, or at each tick if that
    /// is longer. A timer that is armed at each tick is armed right after one; others at any moment
    /// between two. Fractions of a hit count at random.
    pub fn hits(self, interval_ns: u64, tick_ns: u64) -> u32 {
        let each_ns = interval_ns.max(tick_ns).max(1);
        let first_ns = if interval_ns <= tick_ns { tick_ns - tick_ns / 16 } else { tick_ns / 2 };
        let (part, of) = match self {
            HitAt::Tick => return 1,
            HitAt::Return { used_ns, passed_ns } => {
                let sweeps = 1 + passed_ns.saturating_sub(first_ns) / each_ns;
                (used_ns / 1000 * sweeps, (passed_ns / 1000).max(1))
            }
            HitAt::Fork(ns) => (ns, each_ns),
        };
        let hits = part / of + u64::from(pseudo_random(part) % of < part % of);
        hits.try_into().unwrap_or(u32::MAX)
    }
}

/// The low bits of a clock, mixed (the multiplier of Knuth's hash).
fn pseudo_random(ns: u64) -> u64 {
    ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
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
        assert_eq!([5 * MS, 11 * MS, 12 * MS, 102 * MS].map(|ns| hits(ns, 10 * MS)), [1, 1, 2, 11]);
        assert_eq!(HitAt::Tick.hits(10 * MS, 4 * MS), 1);
    }

    #[test]
    fn a_call_that_has_had_a_cpu_for_a_third_of_its_time_has_a_third_of_the_hits() {
        let calls = (0..10_000).map(|n| 6 * MS + n * 1_777);
        let hits: u64 = calls
            .map(|ns| HitAt::Return { used_ns: ns, passed_ns: 3 * ns })
            .map(|at| u64::from(at.hits(10 * MS, 4 * MS)))
            .sum();
        let sweeps: u64 = (0..10_000).map(|n| 1 + (3 * (6 * MS + n * 1_777) - 2 * MS) / (10 * MS)).sum();
        assert!(hits.abs_diff(sweeps / 3) < sweeps / 100, "{hits} of {sweeps}");
    }

    #[test]
    fn forks_have_as_many_hits_as_their_time_has_intervals() {
        let forks = || (0..10_000).map(|n| 5 * MS + n * 1_777);
        let hits: u64 = forks().map(|ns| u64::from(HitAt::Fork(ns).hits(10 * MS, 4 * MS))).sum();
        let expected = forks().sum::<u64>() / (10 * MS);
        assert!(hits.abs_diff(expected) < expected / 50, "{hits} of {expected}");
    }
}
