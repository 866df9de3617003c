//! Whether a thread runs at some phases of the kernel's tick more than at others.
//!
//! What wakes at whole milliseconds, as a timer wheel has it, runs at a few phases of a tick of 4
//! ms again and again. Ticks then find it at a few places, however many hits there are. Sweeps are
//! at any phase, and see whether it runs.

use super::steps::is_beyond_chance;

/// Parts of a tick.
const PHASES: usize = 40;
/// Cosine and sine of one: not by libm, which the library does not need otherwise.
const PHASE: [f64; 2] = [0.987_688_340_595_137_8, 0.156_434_465_040_230_87];
/// Rhythms are parts of it, too: of 4 ms those of 1 and 2 ms, of 10 ms all whole milliseconds.
const RHYTHMS: std::ops::RangeInclusive<usize> = 1..=10;
/// Observations of the thread running and not running, at least.
const FEWEST: f64 = 20.0;

/// Of complex numbers.
fn product(one: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    [one[0] * other[0] - one[1] * other[1], one[0] * other[1] + one[1] * other[0]]
}

/// Observations by the phase at which they were: of the running thread, and all.
#[derive(Debug, Default)]
pub struct Phases {
    counts: Vec<[u32; 2]>,
}

impl Phases {
    /// One more, at `ns` of the clock that ticks are made by.
    pub fn add(&mut self, ns: u64, tick_ns: u64, is_running: bool) {
        self.counts.resize(PHASES, [0; 2]);
        let phase = (ns % tick_ns.max(1)) * PHASES as u64 / tick_ns.max(1);
        if let Some([running, all]) = self.counts.get_mut(phase as usize) {
            *running += u32::from(is_running);
            *all += 1;
        }
    }

    /// All that `other` has.
    pub fn take(&mut self, other: &mut Phases) {
        self.counts.resize(PHASES, [0; 2]);
        for (to, from) in self.counts.iter_mut().zip(std::mem::take(other).counts) {
            *to = [to[0] + from[0], to[1] + from[1]];
        }
    }

    /// Has all observations count half as much as those that come.
    pub fn halve(&mut self) {
        self.counts.iter_mut().for_each(|[running, all]| (*running, *all) = (*running / 2, *all / 2));
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.counts.iter().map(|[_, all]| all).sum()
    }

    /// Whether the thread runs at some phases of a rhythm more than at others. `moved`: the share
    /// of its time that may be at others than without waits for a CPU.
    pub fn differ(&self, moved: f64) -> bool {
        let counts = || self.counts.iter().map(|counts| counts.map(f64::from));
        let [running, all] = counts().fold([0.0; 2], |sum, it| [sum[0] + it[0], sum[1] + it[1]]);
        if running.min(all - running) < FEWEST {
            return false;
        }
        let share = running / all;
        RHYTHMS.into_iter().any(|rhythm| {
            // As many turns in a tick, in steps of a phase: cosines and sines.
            let step = (1..rhythm).fold(PHASE, |step, _| product(step, PHASE));
            let (mut at, mut sum) = ([1.0, 0.0], [0.0; 2]);
            for [running, all] in counts() {
                let surplus = running - all * share;
                sum = [sum[0] + at[0] * surplus, sum[1] + at[1] * surplus];
                at = product(at, step);
            }
            let length = (sum[0] * sum[0] + sum[1] * sum[1]).sqrt();
            let own = (length - moved * running).max(0.0);
            is_beyond_chance(2.0 * own * own / (all * share * (1.0 - share)), 2.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 4_000_000;

    /// A random number from `at`.
    fn random(at: u64) -> u64 {
        crate::sampler::ticks::mixed(at) >> 16
    }

    fn phases(observations: u64, is_running: impl Fn(u64, u64) -> bool) -> Phases {
        let mut phases = Phases::default();
        for at in 0..observations {
            let ns = random(at);
            phases.add(ns, TICK_NS, is_running(ns, random(at + 1_000_000)));
        }
        phases
    }

    #[test]
    fn what_runs_at_the_beginning_of_each_millisecond_is_known_and_what_runs_at_any_time_is_not() {
        // Three quarters of the first half, a third of the second.
        let wheel = |ns: u64, random: u64| random % 12 < if ns % 1_000_000 < 500_000 { 9 } else { 4 };
        assert!(phases(600, wheel).differ(0.0));
        for thread in 0..300 {
            assert!(
                !phases(1000, |_, random| (random + thread) % 10 < 1 + thread % 9).differ(0.0),
                "{thread}"
            );
        }
        assert!(!phases(10_000, |_, _| true).differ(0.0), "it always runs");
    }
}
