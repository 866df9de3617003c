//! Whether a thread is hit at the same ticks of the kernel again and again.
//!
//! A loop that a timer wakes each 10 or 20 ms runs in step with a kernel whose ticks are 4 ms
//! apart: each of its turns is hit at the same place, or at none. The number of hits may be right
//! all the same. So the ticks of hits are counted by their numbers modulo some periods: of a thread
//! that runs at any time, all remainders are alike.

/// Ticks of the longest period: 400 ms at 250 Hz.
const TICKS: usize = 100;
/// The periods, each a divisor of the longest.
const PERIODS: [usize; 7] = [2, 4, 5, 10, 20, 25, 50];
/// Hits for each remainder, at least.
const HITS: u32 = 4;
/// How rare it is by chance that chi-square is so large, in standard deviations of the normal
/// distribution: one in ten millions.
const DEVIATIONS: f64 = 5.2;

/// Ticks of hits, modulo [`TICKS`].
#[derive(Debug, Default)]
pub struct Steps {
    counts: Vec<u32>,
}

impl Steps {
    /// One more.
    pub fn add(&mut self, tick: u64) {
        self.counts.resize(TICKS, 0);
        if let Some(count) = self.counts.get_mut(tick as usize % TICKS) {
            *count += 1;
        }
    }

    /// All that `other` has.
    pub fn take(&mut self, other: &mut Steps) {
        if other.counts.is_empty() {
            return;
        }
        self.counts.resize(TICKS, 0);
        self.counts.iter_mut().zip(&mut other.counts).for_each(|(to, from)| *to += std::mem::take(from));
    }

    /// Has all ticks count half as much as those that come.
    pub fn halve(&mut self) {
        self.counts.iter_mut().for_each(|count| *count /= 2);
    }

    /// Whether they keep to some remainders of a period. `moved`: the share of them that may be at
    /// others than without waits for a CPU.
    pub fn are_regular(&self, moved: f64) -> bool {
        let hits: u32 = self.counts.iter().sum();
        PERIODS.into_iter().filter(|&period| hits >= HITS * period as u32).any(|period| {
            let (freedom, mean) = (period as f64 - 1.0, f64::from(hits) / period as f64);
            let mut deviations = vec![-mean; period];
            for (tick, &count) in self.counts.iter().enumerate() {
                deviations[tick % period] += f64::from(count);
            }
            let surplus: f64 = deviations.iter().map(|each| each.max(0.0)).sum();
            let own = (1.0 - moved * f64::from(hits) / surplus).max(0.0);
            let squares: f64 = deviations.iter().map(|each| (each * own).powi(2)).sum();
            is_beyond_chance(squares / mean, freedom)
        })
    }
}

/// Whether chance does not explain it.
pub fn is_beyond_chance(chi_square: f64, freedom: f64) -> bool {
    // The Wilson-Hilferty approximation.
    let spread = 2.0 / (9.0 * freedom);
    chi_square > freedom * (1.0 - spread + DEVIATIONS * spread.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(ticks: impl Iterator<Item = u64>) -> Steps {
        let mut steps = Steps::default();
        ticks.for_each(|tick| steps.add(tick));
        steps
    }

    /// A random number from `at`.
    fn random(at: u64) -> u64 {
        let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
    }

    #[test]
    fn a_loop_of_20_ms_is_in_step_with_ticks_of_4_and_work_at_any_time_is_not() {
        assert!(steps((0..60).map(|turn| turn * 5 + 3)).are_regular(0.0));
        assert!(
            steps((0..60).map(|turn| turn * 5 + random(turn) % 2)).are_regular(0.0),
            "two places of five"
        );
        assert!(!steps((0..10_000).map(|turn| turn * 5 + random(turn) % 5)).are_regular(0.0));
        assert!(!steps(0..100_000).are_regular(0.0));
    }

    /// Regression: beside other programs a loop of 20 ms was shown at the wrong functions.
    #[test]
    fn waits_for_a_cpu_explain_as_many_hits_as_they_may_have_moved() {
        let regular = |of_ten: u64, moved| {
            let tick = |hit: u64| if hit % 10 < of_ten { hit * 5 } else { random(hit) };
            steps((0..100).map(tick)).are_regular(moved)
        };
        assert!(regular(10, 0.4) && regular(8, 0.3));
        assert!(regular(5, 0.0) && !regular(5, 0.4));
    }

    #[test]
    fn chance_makes_nothing_regular() {
        for thread in 0..2000 {
            for hits in [10, 20, 40, 80, 400] {
                let ticks = (0..hits).map(|hit| random(thread * 1000 + hit));
                assert!(!steps(ticks).are_regular(0.0), "{thread}: {hits}");
            }
        }
    }
}
