//! The samples of one thread in one recording. Their weights come from the kernel's clocks.
//!
//! For each thread and window the clocks say how long the thread ran (its CPU clock), how long it
//! waited for a CPU (the run delay, `run_delay.rs`) and, by difference, how long it was blocked.
//! Hits say in which stacks. They are taken at random moments: of a running thread at a kernel tick
//! or, for `source=preempt`, at any moment (`preempt.rs`); of a blocked or waiting thread at a tick
//! of the recording. All hits of one kind weigh the same. Together they stand for the time that the
//! clocks say. A hit never stands for the time since the previous hit: the first hit after a gap
//! would get the whole gap.
//!
//! Time without a hit is carried over to the next window, and at the end has no stack.

mod moment;
mod sample;
mod undersampled;
mod waiting;
mod weights;

pub use moment::{Found, Moment, News, TimerState};
pub use sample::Weighted;
use sample::{Fate, Hit, Kind, WEIGHT};
pub use undersampled::Undersampled;

use super::steps::Steps;
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{Mode, State};
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
/// How many times as much as others a hit may weigh.
const MAX_TIMES: f64 = 32.0;
/// Hits that chance does not explain: they are so many standard deviations from the expected
/// number, and their ratio to it is outside a range that schedulers cause.
const DEVIATIONS: f64 = 5.0;
const FACTORS: std::ops::Range<f64> = 0.4..1.6;
const FEWEST_EXPECTED: f64 = 25.0;
/// So many hits are compared, of a recording without end the last ones: of more, the smallest
/// deviation would be none of chance.
const MAX_COMPARED: f64 = 800.0;
/// Two observations of a thread that are so far apart: the whole process was stopped.
const STOPPED_NS: u64 = 250_000_000;
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
    /// The window's ticks at which it was found running, waiting for a CPU, blocked.
    found: [u64; 3],
    /// Hits of the last window, see [`Account::take_donors`].
    donors: Vec<Hit>,
    /// The interval of kernel ticks, if known.
    tick_ns: u64,
    /// Time carried over from earlier windows, by kind, in nanoseconds.
    left_ns: [f64; 3],
    /// Running hits to be expected by the CPU clock, and running hits that came: in this window,
    /// and in the earlier windows in which the thread had a CPU for itself and blocked.
    expected: [f64; 2],
    came: [f64; 2],
    /// The kernel ticks of these hits.
    steps: [Steps; 2],
    /// CPU time used in this window while the thread could not be hit.
    unarmed_ns: u64,
    /// The last known [`Moment::kernel_ns`].
    last_kernel_ns: Option<u64>,
    /// What was used of it, less what has been in a window.
    kernel_ns: u64,
    was_unarmed: bool,
    /// A hit that stands for much of this window's time is still to come.
    awaits_hit: bool,
    was_refused: bool,
    /// The kernel does not say where it is blocked.
    is_blind: bool,
    /// The last window that was closed was in step with the kernel's tick.
    was_in_step: bool,
    /// The thread has begun during the recording.
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

    /// An account of a thread that has just begun.
    pub fn of_new_thread(now: Moment) -> Account {
        Account { is_new: true, ..Account::new(now) }
    }

    /// Records an observation. `timer`: whether the thread will be hit from now on.
    pub fn observe(&mut self, now: Moment, found: Found, timer: TimerState) {
        let ticks = u32::try_from(now.ticks.saturating_sub(self.last.ticks)).unwrap_or(u32::MAX);
        let passed_ns = now.ns.saturating_sub(self.last.ns);
        let used_ns = now.cpu_ns.saturating_sub(self.last.cpu_ns);
        let stood_still = used_ns == 0;
        let kernel_ns =
            now.kernel_ns.zip(self.last_kernel_ns).map_or(0, |(now, last)| now.saturating_sub(last));
        self.last_kernel_ns = now.kernel_ns.or(self.last_kernel_ns);
        self.kernel_ns += kernel_ns;
        self.awaits_hit = timer == TimerState::Overdue;
        if let TimerState::Yes(tick_ns) = timer
            && passed_ns > 0
        {
            self.tick_ns = tick_ns;
            let running = ((used_ns as f64 - kernel_ns as f64) / passed_ns as f64).min(1.0);
            self.expected[0] += running * (passed_ns as f64 / tick_ns as f64).min(1.0);
        }
        self.unarmed_ns += if self.was_unarmed { used_ns } else { 0 };
        self.was_unarmed = matches!(timer, TimerState::Never | TimerState::Refused);
        self.was_refused |= timer == TimerState::Refused;
        self.is_blind |= matches!(found, Found::Unknown);
        let before = self.place.take();
        let found = match (before, found) {
            (Some((state, stack)), Found::At(..) | Found::Elsewhere | Found::Unknown) if stood_still => {
                Found::At(state, stack)
            }
            (Some((state, stack)), found) => {
                let earlier = ticks.saturating_sub(1) / 2;
                self.hit(state, &stack, earlier, self.last.ns);
                self.count_found(Kind::of(state), earlier);
                self.add(now, found, ticks - earlier, used_ns, true);
                return;
            }
            (None, found) => found,
        };
        self.add(now, found, ticks, used_ns, false);
    }

    /// The thread's clock stood still from the last observation until then: it was where it was
    /// seen last. `now` is a later moment.
    pub fn stood_still(&mut self, until_ns: u64, now: Moment) {
        let (still_ns, passed_ns) =
            (until_ns.saturating_sub(self.last.ns), now.ns.saturating_sub(self.last.ns));
        if still_ns == 0 || still_ns > passed_ns || self.place.is_none() {
            return;
        }
        let ticks = u128::from(now.ticks.saturating_sub(self.last.ticks));
        let still = (ticks * u128::from(still_ns) / u128::from(passed_ns)) as u64;
        let until = Moment { ns: until_ns, ticks: self.last.ticks + still, ..self.last };
        let was_unarmed = self.was_unarmed;
        self.observe(until, Found::Elsewhere, TimerState::No);
        self.was_unarmed = was_unarmed;
    }

    fn add(&mut self, now: Moment, found: Found, ticks: u32, used_ns: u64, was_blocked: bool) {
        if used_ns > 0 || !matches!(found, Found::Waiting(_)) {
            self.waits_since_ns = None;
        }
        let kind = match &found {
            Found::At(state, _) | Found::Was(state, _) => Kind::of(*state),
            Found::Waiting(_) => Kind::Waiting,
            Found::Elsewhere | Found::Unknown => Kind::Running,
        };
        self.count_found(kind, ticks);
        match found {
            Found::At(state, stack) => {
                self.hit(state, &stack, ticks, now.ns);
                self.place = Some((state, stack));
            }
            Found::Was(state, stack) => self.hit(state, &stack, ticks, now.ns),
            Found::Waiting(woken) => {
                let goes_on = self.waits_since_ns.is_some();
                // It has not run since it was found blocked.
                let woken = if was_blocked && used_ns == 0 { Some(1.0) } else { woken };
                // It was blocked and woke at an unknown time: take the middle. Or it ran first and
                // was preempted then. Or the whole process was stopped: nothing is known.
                let passed_ns = now.ns.saturating_sub(self.last.ns);
                let waits_ns = match was_blocked {
                    true => passed_ns / 2,
                    false if passed_ns < STOPPED_NS => passed_ns.saturating_sub(used_ns),
                    false => 0,
                };
                self.waits_since_ns.get_or_insert(now.ns - waits_ns);
                let place = woken.and_then(|woken| self.waiting.next(woken, goes_on));
                if let Some(stack) = place.or_else(|| self.seen.clone()) {
                    self.hit(State::Runnable, &stack, ticks, now.ns);
                }
            }
            Found::Elsewhere | Found::Unknown => {}
        }
        self.last = now;
    }

    /// The thread has ended: its clocks say nothing of the time since the last observation. In wall
    /// mode it did what it was seen doing then, if ticks have passed. CPU time is not made up.
    pub fn end(&mut self, now: Moment, mode: Mode) {
        if now.ticks <= self.last.ticks {
            return;
        }
        let waits = self.waits_since_ns.is_some();
        let ran = self.place.is_none() && !waits && mode == Mode::Wall && !self.is_short_lived();
        let ran_ns = if ran { now.ns.saturating_sub(self.last.ns) } else { 0 };
        let found = if waits { Found::Waiting(None) } else { Found::Elsewhere };
        self.observe(Moment { cpu_ns: now.cpu_ns + ran_ns, ..now }, found, TimerState::No);
    }

    /// Records a repeated observation for a snapshot, which found no hit before.
    pub fn found(&mut self, state: State, stack: &Arc<RawStack>, ns: u64) {
        self.hit(state, stack, 1, ns);
    }

    /// What [`Account::observe`] at `now` would add.
    pub fn news(&self, now: Moment) -> News {
        let between = now.ticks.saturating_sub(self.last.ticks).saturating_sub(1);
        let stood_still = self.place.is_some() && now.cpu_ns == self.last.cpu_ns;
        News {
            late: now.late.saturating_sub(self.last.late),
            unproven: if stood_still { 0 } else { between },
            waited_ns: now.delay_ns.saturating_sub(self.last.delay_ns),
        }
    }

    /// Records a hit of the running thread at a random moment (`preempt.rs`).
    pub fn was_preempted(&mut self, stack: &Arc<RawStack>, ns: u64) {
        self.hit(State::Running, stack, 1, ns);
    }

    /// Records a hit of the running thread at the kernel tick number `tick`.
    pub fn ran(&mut self, stack: &Arc<RawStack>, ns: u64, tick: u64) {
        self.came[0] += 1.0;
        self.steps[0].add(tick);
        self.hit(State::Running, stack, 1, ns);
    }

    /// Has the last hit stand for `times` as much as others: it was so much rarer than theirs.
    pub fn weigh(&mut self, times: f64) {
        if let Some(hit) = self.hits.last_mut() {
            let weight = (f64::from(WEIGHT) * times.min(MAX_TIMES)) as u32;
            hit.weight = hit.weight.saturating_add(weight).saturating_sub(WEIGHT);
        }
    }

    /// Records a hit of the running thread that stands for so many, as the thread could not be hit
    /// earlier. `asked`: a sweep had armed its timer.
    pub fn returned(&mut self, stack: &Arc<RawStack>, ns: u64, hits: u32, asked: bool) {
        self.came[0] += if asked { 1.0 } else { 0.0 };
        self.hit(State::Running, stack, hits, ns);
    }

    /// Whether the thread has begun during the recording.
    pub fn is_of_new_thread(&self) -> bool {
        self.is_new
    }

    fn hit(&mut self, state: State, stack: &Arc<RawStack>, count: u32, ns: u64) {
        if !stack.is_none() {
            self.seen = Some(stack.clone());
            self.waiting.saw(state, stack);
        }
        if count == 0 {
            return;
        }
        let weight = count.saturating_mul(WEIGHT);
        match self.hits.last_mut().filter(|last| last.state == state && Arc::ptr_eq(&last.stack, stack)) {
            Some(last) => {
                last.count = last.count.saturating_add(count);
                last.weight = last.weight.saturating_add(weight);
                last.ns = ns;
            }
            None => self.hits.push(Hit { state, stack: stack.clone(), count, weight, ns, thread: None }),
        }
    }

    fn count_found(&mut self, kind: Kind, ticks: u32) {
        if let Some(found) = self.found.get_mut(kind as usize) {
            *found += u64::from(ticks);
        }
    }

    fn hits_of(&self, kind: Kind) -> impl Iterator<Item = &Hit> {
        self.hits.iter().filter(move |hit| Kind::of(hit.state) == kind)
    }

    fn count_of(&self, kind: Kind) -> u64 {
        self.hits_of(kind).map(|hit| u64::from(hit.count)).sum()
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

    /// Whether the thread ran in step with the kernel's tick in the last window that was closed.
    pub fn was_in_step(&self) -> bool {
        self.was_in_step
    }

    /// Whether hits and CPU clock disagree beyond chance, or the hits are always at the same ticks
    /// of a period: the thread runs in step with the kernel's tick.
    fn is_regular(&self) -> bool {
        let ([_, expected], [_, came]) = (self.expected, self.came);
        let counts_differ = expected.max(came) >= FEWEST_EXPECTED
            && (came - expected).abs() > DEVIATIONS * expected.max(1.0).sqrt()
            && !FACTORS.contains(&(came / expected.max(1.0)));
        counts_differ || self.steps[1].are_regular()
    }

    /// Whether there is no hit yet.
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Closes the window and returns its samples. `ends`: no time is carried over.
    pub fn close(&mut self, mode: Mode, interval_ns: u64, ends: bool) -> Vec<Weighted> {
        let times_ns = self.times_ns();
        let [expected, came] = [&mut self.expected, &mut self.came].map(|pair| std::mem::take(&mut pair[0]));
        // A thread that shares its CPU is preempted at kernel ticks. One that never blocks is hit
        // whenever it is asked. That is no rhythm of their own.
        let [_, waiting_ns, blocked_ns] = times_ns;
        let few_ns = times_ns.iter().sum::<u64>() / NEGLIGIBLE_SHARE;
        if waiting_ns <= few_ns && blocked_ns > few_ns {
            self.expected[1] += expected;
            self.came[1] += came;
            let [new, all] = &mut self.steps;
            all.take(new);
            if self.expected[1].max(self.came[1]) > MAX_COMPARED {
                self.expected[1] /= 2.0;
                self.came[1] /= 2.0;
                all.halve();
            }
        } else {
            self.steps[0] = Steps::default();
        }
        // A thread that had a rhythm and now computes has none.
        self.was_in_step = blocked_ns > few_ns && self.is_regular();
        let kernel_ns = self.kernel_ns.min(times_ns[0]);
        self.kernel_ns -= kernel_ns;
        let missed_ns = [self.unarmed_ns, kernel_ns];
        self.donate(times_ns[0] + self.left_ns[0] as u64, interval_ns, ends);
        let mut samples = match mode {
            Mode::Cpu => self.cpu_samples(times_ns[0], missed_ns, interval_ns, ends),
            Mode::Wall => self.wall_samples(times_ns, missed_ns, interval_ns.max(1), ends),
        };
        samples.sort_unstable_by_key(|sample| sample.ns);
        let ran_at = self.hits_of(Kind::Running).last().map(|hit| hit.stack.clone());
        self.ran_at = ran_at.or(self.ran_at.take());
        self.opened = self.last;
        self.unarmed_ns = 0;
        self.found = [0; 3];
        self.hits.clear();
        samples
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
