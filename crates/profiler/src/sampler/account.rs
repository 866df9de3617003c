//! The samples of one thread in one recording. Their weights come from the kernel's clocks.
//!
//! For each thread and window the clocks say how long the thread ran (its CPU clock), how long it
//! waited for a CPU (the run delay, `run_delay.rs`) and, by difference, how long it was blocked.
//! Hits say in which stacks. They are taken at random moments: of a running thread at a kernel tick
//! or, for `source=preempt`, at any moment (`preempt.rs`); of a blocked or waiting thread at a tick
//! of the recording. All hits of one kind weigh the same. Together they represent the time that the
//! clocks say. A hit never represents the time since the previous hit: the first hit after a gap
//! would get the whole gap.
//!
//! Time without a hit is carried over to the next window, and at the end has no stack.

mod donors;
mod hits;
mod moment;
mod observations;
mod rhythm;
mod sample;
mod short_lived;
mod undersampled;
mod waiting;
mod weights;

pub use moment::{Found, Moment, News, TimerState};
pub use sample::Weighted;
use sample::{Fate, Hit, Kind, WEIGHT};
pub use undersampled::Undersampled;

use crate::stack::RawStack;
use rhythm::Rhythm;
use std::sync::Arc;
use swipr_formats::model::{Mode, State};
use swipr_symbols::rows::order::sorted_by;
use waiting::WaitingPlaces;

/// A window's length. If the thread ran, it waits for `MANY_HITS`, up to `LONGEST_WINDOW_NS`.
const WINDOW_NS: u64 = 250_000_000;
const LONGEST_WINDOW_NS: u64 = 2_000_000_000;
/// The first windows are shorter: half of the account's age, at least this.
const FIRST_WINDOW_NS: u64 = 20_000_000;
/// Running hits that are enough to close a window.
const MANY_HITS: u32 = 8;
/// Hits to be expected, at most, of running time that has none by chance (1 in 400).
const MAX_MISSES_BY_CHANCE: u64 = 6;
/// A thread has a CPU for itself if it waits for CPUs at most one part in so many of the time, and
/// blocks if it is blocked for more than that.
const NEGLIGIBLE_SHARE: u64 = 50;

/// One thread in one recording, or threads that share one (`undersampled.rs`).
#[derive(Debug, Default)]
pub struct Account {
    began: Moment,
    /// The window's start, and the last observation.
    opened: Moment,
    last: Moment,
    /// State and stack of the last observation, if that was [`Found::At`].
    place: Option<(State, Arc<RawStack>)>,
    /// The last stack that was seen, in any state.
    seen: Option<Arc<RawStack>>,
    /// Where it waits for CPUs.
    waiting: WaitingPlaces,
    /// The last one in which it ran, in an earlier window.
    ran_at: Option<Arc<RawStack>>,
    /// Since when it waits for a CPU. The kernel counts a wait only when it ends.
    waits_since_ns: Option<u64>,
    /// Waiting time that was reported before the kernel counted it.
    attributed_early_ns: u64,
    hits: Vec<Hit>,
    /// How often it was found running, waiting for a CPU, blocked in the window.
    found: [u64; 3],
    /// Hits of the last window, see [`Account::take_donors`].
    donors: Vec<Hit>,
    /// The interval of kernel ticks, if known.
    tick_ns: u64,
    /// Time carried over from earlier windows, by kind, in nanoseconds.
    left_ns: [f64; 3],
    /// Whether it runs in step with the kernel's tick.
    rhythm: Rhythm,
    /// CPU time that the thread has used since, if it ended half-way to the next observation.
    tail_ns: u64,
    /// How long it was there after it was last seen, if it has ended.
    unseen_ns: u64,
    /// CPU time used in this window while the thread could not be hit.
    unarmed_ns: u64,
    /// The last [`Moment::kernel_ns`].
    last_kernel_ns: Option<u64>,
    /// What was used of it, less what has been in a window.
    kernel_ns: u64,
    was_unarmed: bool,
    /// A hit that represents much of this window's time is still to come.
    awaits_hit: bool,
    was_refused: bool,
    /// The kernel does not say where it is blocked.
    is_blind: bool,
    /// The last window that was closed was in step with the kernel's tick.
    was_in_step: bool,
    /// The thread has started during the recording.
    is_new: bool,
    /// It is that of many threads.
    is_shared: bool,
}

impl Account {
    /// An account that starts at `now`.
    pub fn new(now: Moment) -> Account {
        let last_kernel_ns = now.kernel_ns;
        Account { began: now, opened: now, last: now, last_kernel_ns, ..Account::default() }
    }

    /// An account of a thread that has just started.
    pub fn of_new_thread(now: Moment) -> Account {
        Account { is_new: true, ..Account::new(now) }
    }

    /// Whether the thread has started during the recording.
    pub fn is_of_new_thread(&self) -> bool {
        self.is_new
    }

    /// Whether the window is to be closed at the last observation.
    pub fn is_full(&self, now_ns: u64) -> bool {
        let age_ns = now_ns.saturating_sub(self.opened.ns);
        let first_ns = if self.is_new { WINDOW_NS } else { FIRST_WINDOW_NS };
        let wanted_ns = (now_ns.saturating_sub(self.began.ns) / 2).clamp(first_ns, WINDOW_NS);
        if age_ns < wanted_ns || self.awaits_hit && age_ns < LONGEST_WINDOW_NS {
            return false;
        }
        let has_run = self.last.cpu_ns != self.opened.cpu_ns;
        wanted_ns < WINDOW_NS
            || !has_run
            || self.count_of(Kind::Running) >= u64::from(MANY_HITS)
            || age_ns >= LONGEST_WINDOW_NS
    }

    /// Whether the last observation found a stack, and the window can stay open at `now_ns`.
    pub fn can_wait(&self, now_ns: u64) -> bool {
        self.place.is_some() && !self.is_full(now_ns)
    }

    /// The thread was running at `ns`, or was not.
    pub fn saw(&mut self, ns: u64, tick_ns: u64, is_running: bool) {
        self.rhythm.saw(ns, tick_ns, is_running);
    }

    /// Whether the thread ran in step with the kernel's tick in the last window that was closed.
    pub fn was_in_step(&self) -> bool {
        self.was_in_step
    }

    /// Whether there is no hit yet.
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Closes the window and returns its samples. `ends`: no time is carried over.
    pub fn close(&mut self, mode: Mode, interval_ns: u64, ends: bool) -> Vec<Weighted> {
        let times_ns = self.times_ns();
        let few_ns = times_ns.iter().sum::<u64>() / NEGLIGIBLE_SHARE;
        self.rhythm.end_window(times_ns, few_ns);
        // A thread that had a rhythm and now computes has none.
        let [running_ns, _, blocked_ns] = times_ns;
        self.was_in_step = blocked_ns > few_ns && self.rhythm.is_regular();
        let kernel_ns = self.kernel_ns.min(running_ns);
        self.kernel_ns -= kernel_ns;
        let missed_ns = [self.unarmed_ns, kernel_ns];
        self.donate(running_ns + self.left_ns[0] as u64, interval_ns, ends);
        let samples = match mode {
            Mode::Cpu => self.cpu_samples(running_ns, missed_ns, interval_ns, ends),
            Mode::Wall => self.wall_samples(times_ns, missed_ns, interval_ns.max(1), ends),
        };
        let ran_at = self.hits_of(Kind::Running).last().map(|hit| hit.stack.clone());
        self.ran_at = ran_at.or(self.ran_at.take());
        self.opened = self.last;
        self.unarmed_ns = 0;
        self.found = [0; 3];
        self.hits.clear();
        sorted_by(&samples, |sample| sample.ns)
    }

    /// What becomes of running time, should the window have no hit. Where one was to be expected,
    /// the next is not far. A thread in step with the kernel's tick has none: that is not chance.
    fn fate_of_unhit(&self, running_ns: u64, interval_ns: u64, ends: bool) -> Fate {
        let is_long = self.last.ns.saturating_sub(self.opened.ns) >= LONGEST_WINDOW_NS;
        let hit_ns = interval_ns.max(self.tick_ns);
        let is_by_chance = self.is_shared || running_ns <= MAX_MISSES_BY_CHANCE * hit_ns;
        match &self.ran_at {
            _ if !ends && !is_long => Fate::Waits,
            _ if !is_by_chance => Fate::Unsampled,
            Some(stack) if ends && !self.is_shared => Fate::At(stack.clone()),
            _ if ends || self.is_shared || running_ns < hit_ns => Fate::Shared,
            _ => Fate::Waits,
        }
    }
}

#[cfg(test)]
mod tests;
