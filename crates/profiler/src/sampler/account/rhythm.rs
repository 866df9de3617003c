//! Whether a thread runs in step with the kernel's tick: its hits are more or fewer than its CPU
//! clock lets expect, or always at the same ticks of a period, or it runs at some parts of a tick
//! only.
//!
//! A thread that shares its CPU is preempted at kernel ticks. One that never blocks is hit whenever
//! it is asked. That is no rhythm of their own. So only windows count in which the thread nearly
//! had a CPU for itself, and blocked.

use super::super::phases::Phases;
use super::super::steps::Steps;

/// Hits that chance does not explain: they are so many standard deviations from the expected
/// number, and their ratio to it is outside a range that schedulers cause.
const DEVIATIONS: f64 = 5.0;
const FACTORS: std::ops::Range<f64> = 0.4..1.6;
const FEWEST_EXPECTED: f64 = 25.0;
/// So many hits are compared, of a recording without end the last ones: of more, the smallest
/// deviation would be none of chance.
const MAX_COMPARED: f64 = 800.0;
/// A thread nearly has a CPU for itself if it runs so many times as long as it waits for one.
const RUNS_LONGER: u64 = 2;

/// What is counted of a thread.
#[derive(Debug, Default)]
struct RhythmCounts {
    /// Running hits to be expected by the CPU clock.
    expected: f64,
    /// Those that came.
    came: f64,
    /// The kernel ticks of these.
    steps: Steps,
    /// Observations that say whether the thread was running.
    phases: Phases,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    window: RhythmCounts,
    /// In the windows before, as far as they count.
    earlier: RhythmCounts,
    /// How long it ran and waited for a CPU in these.
    ran_ns: u64,
    waited_ns: u64,
}

impl Rhythm {
    /// By the CPU clock so many hits are to be expected.
    pub(super) fn expect(&mut self, hits: f64) {
        self.window.expected += hits;
    }

    /// A hit came, at this kernel tick if it is known.
    pub(super) fn was_hit(&mut self, tick: Option<u64>) {
        self.window.came += 1.0;
        tick.into_iter().for_each(|tick| self.window.steps.add(tick));
    }

    /// The thread was running at `ns`, or was not.
    pub(super) fn saw(&mut self, ns: u64, tick_ns: u64, is_running: bool) {
        self.window.phases.add(ns, tick_ns, is_running);
    }

    /// The window is over, in which the thread ran, waited for a CPU and was blocked for so long.
    /// Less than `few_ns` is none.
    pub(super) fn end_window(&mut self, [running_ns, waiting_ns, blocked_ns]: [u64; 3], few_ns: u64) {
        let mut window = std::mem::take(&mut self.window);
        if blocked_ns <= few_ns || waiting_ns > few_ns.max(running_ns / RUNS_LONGER) {
            return;
        }
        let earlier = &mut self.earlier;
        earlier.expected += window.expected;
        earlier.came += window.came;
        earlier.steps.take(&mut window.steps);
        earlier.phases.take(&mut window.phases);
        self.ran_ns += running_ns;
        self.waited_ns += waiting_ns;
        if f64::from(earlier.phases.count()) > MAX_COMPARED {
            earlier.phases.halve();
        }
        if earlier.expected.max(earlier.came) > MAX_COMPARED {
            earlier.expected /= 2.0;
            earlier.came /= 2.0;
            earlier.steps.halve();
            self.ran_ns /= 2;
            self.waited_ns /= 2;
        }
    }

    /// Whether hits and CPU clock disagree beyond chance, or the hits are always at the same ticks
    /// of a period.
    pub(super) fn is_regular(&self) -> bool {
        let RhythmCounts { expected, came, steps, phases } = &self.earlier;
        // A thread that waits for a CPU gets it at a tick.
        let moved = self.waited_ns as f64 / self.ran_ns.max(1) as f64;
        let counts_differ = expected.max(*came) >= FEWEST_EXPECTED
            && (came - expected).abs() > DEVIATIONS * expected.max(1.0).sqrt() + moved * expected
            && !FACTORS.contains(&(came / expected.max(1.0)));
        counts_differ || steps.are_regular(moved) || phases.differ(moved)
    }
}
