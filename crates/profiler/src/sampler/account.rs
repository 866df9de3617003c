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

mod undersampled;

pub use undersampled::Undersampled;

use super::steps::Steps;
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{Mode, State, Thread};

/// A window's length. If the thread ran, it waits for `MANY_HITS`, up to `LONGEST_WINDOW_NS`.
const WINDOW_NS: u64 = 250_000_000;
const LONGEST_WINDOW_NS: u64 = 2_000_000_000;
/// The first windows are shorter: half of the account's age, at least this.
const FIRST_WINDOW_NS: u64 = 20_000_000;
/// Running hits that are enough to close a window.
const MANY_HITS: u32 = 8;
/// Hits to be expected, at most, of running time that has none by chance (1 in 400).
const MAX_MISSES_BY_CHANCE: u64 = 6;
/// What a hit weighs, and how many times as much one may weigh.
const WEIGHT: u32 = 256;
const MAX_TIMES: f64 = 32.0;
/// Hits that chance does not explain: they are so many standard deviations from the expected
/// number, and their ratio to it is outside a range that schedulers cause.
const DEVIATIONS: f64 = 5.0;
const FACTORS: std::ops::Range<f64> = 0.4..1.6;
const FEWEST_EXPECTED: f64 = 25.0;
/// Two observations of a thread that are so far apart: the whole process was stopped.
const STOPPED_NS: u64 = 250_000_000;
/// Blocked ticks count as a moment if they are at most one in so many of the account's ticks.
const MOMENT: u64 = 20;
/// A thread has a CPU for itself if it waits for CPUs at most one part in so many of the time, and
/// blocks if it is blocked for more than that.
const NEGLIGIBLE_SHARE: u64 = 50;

/// A point in time, by a thread's clocks and a recording's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Monotonic time.
    pub ns: u64,
    /// The thread's CPU clock.
    pub cpu_ns: u64,
    /// The part of it in which timers cannot hit the thread; `None`: as at the last moment.
    pub kernel_ns: Option<u64>,
    /// How long it has waited for CPUs.
    pub delay_ns: u64,
    /// The recording's ticks until then, late ones included.
    pub ticks: u64,
    /// Those of `ticks` that were over before the sampler ran.
    pub late: u64,
}

/// What has happened between two observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// Late ticks.
    pub late: u64,
    /// Ticks between the two at which the thread may have been in another stack.
    pub unproven: u64,
    /// How long the thread has waited for CPUs.
    pub waited_ns: u64,
}

/// What an observation has found.
#[derive(Clone, Debug)]
pub enum Found {
    /// Blocked, or never run so far.
    At(State, Arc<RawStack>),
    /// Ready, without a CPU.
    Waiting,
    /// None of these: it is on a CPU, it moved at each attempt, or it was not examined (CPU mode).
    Elsewhere,
    /// The kernel does not say.
    Unknown,
}

/// Whether the thread will be hit if it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerState {
    /// At the next kernel tick. The value is the interval of kernel ticks, in nanoseconds.
    Yes(u64),
    /// At a random moment, independent of kernel ticks.
    AtAnyMoment,
    /// It has not run lately.
    No,
    /// The thread cannot be signalled, for example because it blocks the signal.
    Never,
    /// The sampler may not run on the thread's CPU, or may not signal it (`preempt.rs`).
    Refused,
}

/// A sample with its weight.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// The thread's state.
    pub state: State,
    /// The thread's stack.
    pub stack: Arc<RawStack>,
    /// Wall mode: ticks that the sample stands for.
    pub ticks: u32,
    /// CPU mode: CPU time that the sample stands for.
    pub cpu_ns: u64,
    /// Monotonic time.
    pub ns: u64,
    /// Whose it is, if not the account's thread's.
    pub thread: Option<Arc<Thread>>,
    /// It has no stack because the thread was not hit, by chance.
    pub is_unsampled: bool,
}

/// The three things that a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Running,
    Waiting,
    Blocked,
}

const KINDS: [Kind; 3] = [Kind::Running, Kind::Waiting, Kind::Blocked];

impl Kind {
    fn of(state: State) -> Kind {
        match state {
            State::Running => Kind::Running,
            State::Runnable => Kind::Waiting,
            State::Blocked(_) => Kind::Blocked,
        }
    }

    fn state(self) -> State {
        match self {
            Kind::Running => State::Running,
            Kind::Waiting => State::Runnable,
            Kind::Blocked => State::Blocked(None),
        }
    }
}

/// Where a thread was.
#[derive(Clone, Debug)]
pub struct Hit {
    state: State,
    stack: Arc<RawStack>,
    count: u32,
    /// In units of 1 / [`WEIGHT`].
    weight: u32,
    ns: u64,
    thread: Option<Arc<Thread>>,
}

impl Hit {
    fn sample(&self, ticks: u32, cpu_ns: u64) -> Weighted {
        let Hit { state, stack, ns, thread, .. } = self.clone();
        Weighted { state, stack, ticks, cpu_ns, ns, thread, is_unsampled: false }
    }
}

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
    /// Since when it waits for a CPU. The kernel counts a wait only when it ends.
    waits_since_ns: Option<u64>,
    /// Waiting time that was reported before the kernel counted it.
    attributed_early_ns: u64,
    hits: Vec<Hit>,
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
                self.add(now, found, ticks - earlier, used_ns, true);
                return;
            }
            (None, found) => found,
        };
        self.add(now, found, ticks, used_ns, false);
    }

    fn add(&mut self, now: Moment, found: Found, ticks: u32, used_ns: u64, was_blocked: bool) {
        if used_ns > 0 || !matches!(found, Found::Waiting) {
            self.waits_since_ns = None;
        }
        match found {
            Found::At(state, stack) => {
                self.hit(state, &stack, ticks, now.ns);
                self.place = Some((state, stack));
            }
            Found::Waiting => {
                // It was blocked and woke at an unknown time: take the middle. Or it ran first and
                // was preempted then. Or the whole process was stopped: nothing is known.
                let passed_ns = now.ns.saturating_sub(self.last.ns);
                let waits_ns = match was_blocked {
                    true => passed_ns / 2,
                    false if passed_ns < STOPPED_NS => passed_ns.saturating_sub(used_ns),
                    false => 0,
                };
                self.waits_since_ns.get_or_insert(now.ns - waits_ns);
                if let Some(stack) = self.seen.clone() {
                    self.hit(State::Runnable, &stack, ticks, now.ns);
                }
            }
            Found::Elsewhere | Found::Unknown => {}
        }
        self.last = now;
    }

    /// The thread has ended: its clocks say nothing of the time since the last observation. In wall
    /// mode it did what it was seen doing then. CPU time is not made up.
    pub fn end(&mut self, now: Moment, mode: Mode) {
        let waits = self.waits_since_ns.is_some();
        let ran = self.place.is_none() && !waits && mode == Mode::Wall;
        let ran_ns = if ran { now.ns.saturating_sub(self.last.ns) } else { 0 };
        let found = if waits { Found::Waiting } else { Found::Elsewhere };
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

    /// Whether the thread has begun during the recording.
    pub fn is_of_new_thread(&self) -> bool {
        self.is_new
    }

    fn hit(&mut self, state: State, stack: &Arc<RawStack>, count: u32, ns: u64) {
        if !stack.is_none() {
            self.seen = Some(stack.clone());
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
        if age_ns < wanted_ns {
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
        } else {
            self.steps[0] = Steps::default();
        }
        // A thread that had a rhythm and now computes has none.
        self.was_in_step = blocked_ns > few_ns && self.is_regular();
        let kernel_ns = self.kernel_ns.min(times_ns[0]);
        self.kernel_ns -= kernel_ns;
        let missed_ns = [self.unarmed_ns, kernel_ns];
        self.donate(times_ns[0] as f64 + self.left_ns[0], interval_ns);
        let mut samples = match mode {
            Mode::Cpu => self.cpu_samples(times_ns[0], missed_ns, interval_ns, ends),
            Mode::Wall => self.wall_samples(times_ns, missed_ns, interval_ns.max(1), ends),
        };
        samples.sort_by_key(|sample| sample.ns);
        self.opened = self.last;
        self.unarmed_ns = 0;
        self.hits.clear();
        samples
    }

    /// Whether chance explains that the thread was not hit in so much running time. It does not for
    /// one that runs in step with the kernel's tick.
    fn is_by_chance(&self, running_ns: u64, interval_ns: u64) -> bool {
        self.is_shared || running_ns <= MAX_MISSES_BY_CHANCE * interval_ns.max(self.tick_ns)
    }

    /// Whether running time without a hit has waited for long enough for one.
    fn is_long(&self) -> bool {
        self.last.ns.saturating_sub(self.opened.ns) >= LONGEST_WINDOW_NS
    }

    /// How long the thread ran, waited for a CPU and was blocked in the window.
    fn times_ns(&mut self) -> [u64; 3] {
        let (from, to) = (self.opened, self.last);
        let mut counted_ns = to.delay_ns.saturating_sub(from.delay_ns);
        let early_ns = counted_ns.min(self.attributed_early_ns);
        counted_ns -= early_ns;
        self.attributed_early_ns -= early_ns;
        let waits_ns = self.waits_since_ns.map_or(0, |since_ns| to.ns.saturating_sub(since_ns.max(from.ns)));
        self.attributed_early_ns += waits_ns;
        let running_ns = to.cpu_ns.saturating_sub(from.cpu_ns);
        let waiting_ns = counted_ns + waits_ns;
        let blocked_ns = to.ns.saturating_sub(from.ns).saturating_sub(running_ns.saturating_add(waiting_ns));
        [running_ns, waiting_ns, blocked_ns]
    }

    fn cpu_samples(
        &mut self,
        running_ns: u64,
        missed_ns: [u64; 2],
        interval_ns: u64,
        ends: bool,
    ) -> Vec<Weighted> {
        let mut total_ns = running_ns;
        let mut samples = vec![];
        for (stack, missed_ns) in [self.unarmed(), RawStack::in_kernel()].into_iter().zip(missed_ns) {
            let missed_ns = missed_ns.min(total_ns);
            total_ns -= missed_ns;
            samples.push(self.without_stack(Kind::Running, stack, 1, missed_ns));
        }
        total_ns += std::mem::take(&mut self.left_ns[0]) as u64;
        let hits: Vec<&Hit> = self.hits_of(Kind::Running).collect();
        if self.was_in_step {
            samples.push(self.without_stack(Kind::Running, RawStack::in_step(), 1, total_ns));
        } else if !hits.is_empty() {
            samples.extend(shares(&hits, total_ns).map(|(hit, cpu_ns)| hit.sample(1, cpu_ns)));
        } else if ends || self.is_long() {
            let is_unsampled = self.is_by_chance(total_ns, interval_ns);
            let unsampled = self.without_stack(Kind::Running, RawStack::none(), 1, total_ns);
            samples.push(Weighted { is_unsampled, ..unsampled });
        } else {
            self.left_ns[0] = total_ns as f64;
        }
        samples
    }

    fn unarmed(&self) -> RawStack {
        if self.was_refused { RawStack::not_preempted() } else { RawStack::none() }
    }

    fn without_stack(&self, kind: Kind, stack: RawStack, ticks: u32, cpu_ns: u64) -> Weighted {
        let (state, stack, ns) = (kind.state(), Arc::new(stack), self.last.ns);
        Weighted { state, stack, ticks, cpu_ns, ns, thread: None, is_unsampled: false }
    }

    fn wall_samples(
        &mut self,
        times_ns: [u64; 3],
        missed_ns: [u64; 2],
        interval_ns: u64,
        ends: bool,
    ) -> Vec<Weighted> {
        let ticks = self.last.ticks.saturating_sub(self.opened.ticks);
        let (mut samples, running_ns) = (vec![], times_ns[0]);
        for (kind, mut ticks) in KINDS.into_iter().zip(self.ticks_of_kinds(times_ns, ticks, interval_ns)) {
            if ticks == 0 {
                continue;
            }
            if kind == Kind::Running {
                let all = u128::from(ticks);
                for (stack, missed_ns) in [self.unarmed(), RawStack::in_kernel()].into_iter().zip(missed_ns) {
                    let missed = all * u128::from(missed_ns.min(running_ns)) / u128::from(running_ns.max(1));
                    let missed = ticks.min(missed as u64);
                    samples.push(self.without_stack(kind, stack, in_ticks(missed), 0));
                    ticks -= missed;
                }
                if self.was_in_step {
                    samples.push(self.without_stack(kind, RawStack::in_step(), in_ticks(ticks), 0));
                    continue;
                }
            }
            let hits: Vec<&Hit> = self.hits_of(kind).collect();
            // For a moment the thread neither ran nor waited, and it was never found blocked: the
            // hypervisor had its CPU.
            let is_moment = ticks.saturating_mul(MOMENT) <= self.last.ticks.saturating_sub(self.began.ticks);
            let waited =
                kind == Kind::Waiting || kind == Kind::Blocked && ends && is_moment && !self.is_blind;
            if !hits.is_empty() {
                samples.extend(shares(&hits, ticks).map(|(hit, ticks)| hit.sample(in_ticks(ticks), 0)));
            } else if let (true, Some(stack)) = (waited, &self.seen) {
                let without = self.without_stack(kind, RawStack::none(), in_ticks(ticks), 0);
                samples.push(Weighted { state: State::Runnable, stack: stack.clone(), ..without });
            } else if ends || kind == Kind::Running && self.is_long() {
                let is_unsampled =
                    kind == Kind::Running && self.is_by_chance(ticks * interval_ns, interval_ns);
                let unsampled = self.without_stack(kind, RawStack::none(), in_ticks(ticks), 0);
                samples.push(Weighted { is_unsampled, ..unsampled });
            } else if let Some(left) = self.left_ns.get_mut(kind as usize) {
                *left += ticks as f64 * interval_ns as f64;
            }
        }
        samples
    }

    /// Divides the window's ticks as its time is divided. Fractions are carried over.
    fn ticks_of_kinds(&mut self, times_ns: [u64; 3], ticks: u64, interval_ns: u64) -> [u64; 3] {
        let passed_ns: f64 = times_ns.iter().map(|&ns| ns as f64).sum();
        let counts = KINDS.map(|kind| self.count_of(kind) as f64);
        let seen: f64 = counts.iter().sum();
        let interval_ns = interval_ns as f64;
        let owed_ns: f64 = self.left_ns.iter().sum();
        let is_first = self.last.ticks.saturating_sub(self.began.ticks) <= 1; // it has no time before it
        let shares = if seen > 0.0 && (is_first || passed_ns < interval_ns / 2.0) {
            counts.map(|count| count / seen)
        } else if passed_ns > 0.0 {
            times_ns.map(|ns| ns as f64 / passed_ns)
        } else {
            [1.0, 0.0, 0.0]
        };
        let mut of_kind = [0; 3];
        for ((left_ns, share), of_kind) in self.left_ns.iter_mut().zip(shares).zip(&mut of_kind) {
            *left_ns += share * ticks as f64 * interval_ns;
            *of_kind = (*left_ns / interval_ns).max(0.0) as u64;
            *left_ns -= *of_kind as f64 * interval_ns;
        }
        // The sum must be right. A missing tick is added to the kind with the most time left over,
        // a surplus tick is taken from the kind with the least.
        let all = ticks + (owed_ns / interval_ns).round().max(0.0) as u64;
        while of_kind.iter().sum::<u64>() != all {
            let is_short = of_kind.iter().sum::<u64>() < all;
            let by_debt = self.left_ns.iter().zip(&of_kind).enumerate();
            let found = match is_short {
                true => by_debt.max_by(|a, b| a.1.0.total_cmp(b.1.0)),
                false => by_debt.filter(|(_, (_, ticks))| **ticks > 0).min_by(|a, b| a.1.0.total_cmp(b.1.0)),
            };
            let Some(at) = found.map(|(at, _)| at) else { break };
            if is_short {
                of_kind[at] += 1;
                self.left_ns[at] -= interval_ns;
            } else {
                of_kind[at] -= 1;
                self.left_ns[at] += interval_ns;
            }
        }
        of_kind
    }
}

fn in_ticks(ticks: u64) -> u32 {
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// Divides `total` among hits, by their weights; the parts sum to it.
fn shares<'a>(hits: &'a [&'a Hit], total: u64) -> impl Iterator<Item = (&'a Hit, u64)> {
    let all: u128 = hits.iter().map(|hit| u128::from(hit.weight)).sum();
    let up_to = move |weight: u128| ((weight * u128::from(total) + all / 2) / all.max(1)) as u64;
    let mut before = 0;
    hits.iter().map(move |&hit| {
        let until = before + u128::from(hit.weight);
        let share = up_to(until) - up_to(before);
        before = until;
        (hit, share)
    })
}

#[cfg(test)]
mod tests;
