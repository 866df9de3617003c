//! Wall mode: which of a recording's ticks have been told of a thread, and what is told of those that passed it by.
//!
//! Where a look finds a thread in its place still, nothing is told for a while: one sample for many ticks
//! costs as much as one for a single tick. A tick passes a thread by where the sampler came too late for it, or where the thread rests (`rest.rs`). What it
//! was doing then follows from what the kernel counts:
//!
//! - Its CPU clock has not moved: it stayed where it was. Nothing is guessed.
//! - The clock has moved: for so long it ran, for so long it waited for a CPU (the run delay, `run_delay.rs`), and the
//!   rest of the time it was blocked: the earlier half where it was before, the later half where it is now. That is
//!   inferred, and counted as such.
//!
//! A process that was stopped for long, or starved, is not made to have thousands of ticks at once: see [`MOST_LATE`].

use super::active::Active;
use super::threads::{BlockedStack, PendingTick, Sampled};
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{Mode, State};

/// More ticks that came too late in a row are not told: they are only counted as late.
pub const MOST_LATE: u64 = 1000;
/// How long what a look has found may wait to be told.
const TOLD_WITHIN_NS: u64 = 100_000_000;

/// A recording's ticks up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Those that had a sweep.
    pub taken: u64,
    /// Those that came too late.
    pub late: u64,
}

/// How much a recording knows of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    /// Up to here its ticks have been told.
    told: Passed,
    /// And from there up to here the thread was where it was found blocked.
    seen: Passed,
    /// When the last of these was.
    seen_ns: u64,
    /// When something was told last.
    at_ns: u64,
}

/// How many ticks have passed a thread by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Skipped {
    /// The sampler came too late.
    late: u32,
    /// The thread rested, or it has not been told yet.
    rested: u32,
}

impl Skipped {
    fn between(from: Passed, to: Passed) -> Skipped {
        let number = |ticks: u64| u32::try_from(ticks).unwrap_or(u32::MAX);
        Skipped {
            late: number(to.late.saturating_sub(from.late)),
            rested: number(to.taken.saturating_sub(from.taken)),
        }
    }

    fn ticks(self) -> u32 {
        self.late.saturating_add(self.rested)
    }
}

/// From here on the recording's ticks are told of the thread.
pub fn begin(thread: &mut Sampled, recording: &Active) {
    if let Some(told) = thread.told.get_mut(recording.place()) {
        let now = recording.passed();
        *told = Told { told: now, seen: now, ..Told::default() };
    }
}

/// The thread is still blocked where it was at the last look, up to this tick: whether that may be told later.
pub fn can_wait(thread: &mut Sampled, recording: &Active, tick_ns: u64) -> bool {
    // Not for all threads in the same sweep.
    let within_ns = TOLD_WITHIN_NS - u64::from(thread.tid() % 32) * (TOLD_WITHIN_NS / 64);
    let Some(told) = thread.told.get_mut(recording.place()) else { return false };
    let can_wait = tick_ns.saturating_sub(told.at_ns) < within_ns;
    if can_wait {
        stays(thread, recording);
    }
    can_wait
}

/// A look has found the thread where it was: at the recording's ticks up to now it was there.
pub fn stays(thread: &mut Sampled, recording: &Active) {
    if let Some(told) = thread.told.get_mut(recording.place()) {
        (told.seen, told.seen_ns) = (recording.passed(), recording.last_tick_ns());
    }
}

/// Whether a wall recording has had ticks that no look has seen yet.
pub fn is_owed(thread: &Sampled, recording: &Active) -> bool {
    let told = thread.told.get(recording.place());
    told.is_some_and(|told| told.seen != recording.passed())
}

/// Tells what waits: a thread was blocked in its place up to the last look.
pub fn tell_seen(thread: &mut Sampled, recording: &mut Active, blocked: Option<&BlockedStack>) {
    let Some(told) = thread.told.get_mut(recording.place()) else { return };
    let seen = Skipped::between(told.told, told.seen);
    told.told = told.seen;
    let seen_ns = told.seen_ns;
    if seen.ticks() == 0 {
        return;
    }
    match blocked {
        Some(blocked) => {
            recording.counters().filled.add(u64::from(seen.late));
            recording.wall_sample(&thread.thread, seen_ns, seen.ticks(), blocked.state, &blocked.stack);
        }
        None => recording.counters().missed.add(u64::from(seen.rested)),
    }
}

fn is_told_of(thread: &Sampled, recording: &Active) -> bool {
    thread.recordings & recording.bit() != 0 && recording.request().mode == Mode::Wall
}

/// What has passed since the last look, but for the tick of a look that tells itself (`of_look`: 1).
fn take(thread: &mut Sampled, recording: &Active, of_look: u64, now_ns: u64) -> Skipped {
    let Some(told) = thread.told.get_mut(recording.place()) else { return Skipped::default() };
    let now = recording.passed();
    let before = std::mem::replace(told, Told { told: now, seen: now, seen_ns: 0, at_ns: now_ns }).told;
    let skipped = Skipped::between(before, now);
    Skipped { rested: skipped.rested.saturating_sub(of_look as u32), ..skipped }
}

/// What was known of a thread before a look.
#[derive(Debug)]
pub struct Before {
    cpu_ns: u64,
    blocked: Option<BlockedStack>,
}

impl Before {
    /// To be taken before the look.
    pub fn of(thread: &Sampled) -> Before {
        let blocked = thread.blocked.as_ref().filter(|blocked| blocked.cpu_ns == thread.cpu_ns);
        Before { cpu_ns: thread.cpu_ns, blocked: blocked.cloned() }
    }

    /// The thread has moved on: what waits to be told of it is told to all that have it.
    pub fn tell_seen(&self, thread: &mut Sampled, recordings: &mut [Active]) {
        let bits = thread.recordings;
        for recording in recordings.iter_mut().filter(|recording| recording.bit() & bits != 0) {
            tell_seen(thread, recording, self.blocked.as_ref());
        }
    }

    /// The CPU clock then.
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Whether it was blocked then, and where is known.
    pub fn was_blocked(&self) -> bool {
        self.blocked.is_some()
    }
}

/// The time between two looks at a thread.
#[derive(Debug)]
pub struct Gap {
    /// The look before.
    pub before: Before,
    /// When it ends.
    pub tick_ns: u64,
    /// How long the thread waited for a CPU in it.
    pub waited_ns: u64,
}

/// What the look at its end has found: what the thread is doing, and its stack where it is blocked; else that is
/// still to come.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    /// What it is doing.
    pub state: State,
    /// Where.
    pub stack: Option<&'a Arc<RawStack>>,
}

/// Where a thread was for some ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Where it was found blocked before.
    Before,
    /// There still, but ready to go on.
    Woken,
    /// Nobody knows where.
    Nowhere(State),
    /// Where it is now.
    Here(State),
}

/// So many ticks, one part after the other.
type Parts = [(u32, Part); 4];

impl Gap {
    /// Gives a recording the ticks that it has not seen of a thread: up to that of the look (`of_look`: 1), or, where the
    /// look is for another recording, all of them (0). Those of a thread whose stack is still to
    /// come are added to `asked`.
    pub fn tell(
        &self,
        thread: &mut Sampled,
        recording: &mut Active,
        now: Now<'_>,
        of_look: u64,
        asked: &mut Vec<PendingTick>,
    ) {
        let skipped = take(thread, recording, of_look, self.tick_ns);
        let ticks = skipped.ticks();
        if ticks == 0 {
            return;
        }
        let interval_ns = recording.interval_ns();
        let used_ns = thread.cpu_ns.saturating_sub(self.before.cpu_ns);
        let parts = self.parts(ticks, interval_ns, used_ns, now);
        let is_proven = used_ns == 0 && parts.iter().all(|&(ticks, part)| ticks == 0 || part != Part::Before);
        recording.counters().filled.add(u64::from(skipped.late));
        recording.counters().inferred.add(if is_proven { 0 } else { u64::from(ticks) });
        let mut left = ticks;
        for (ticks, part) in parts.into_iter().filter(|&(ticks, _)| ticks > 0) {
            left -= ticks;
            let back_ns = (u64::from(left) + of_look).saturating_mul(interval_ns);
            let tick_ns = recording.last_tick_ns().saturating_sub(back_ns);
            let nowhere = || Arc::new(RawStack::none());
            let (state, stack) = match (part, &self.before.blocked) {
                (Part::Before, Some(blocked)) => (blocked.state, blocked.stack.clone()),
                (Part::Woken, Some(blocked)) => (State::Runnable, blocked.stack.clone()),
                (Part::Before | Part::Woken, None) => (State::Runnable, nowhere()),
                (Part::Nowhere(state), _) => (state, nowhere()),
                (Part::Here(state), _) => match now.stack {
                    Some(stack) => (state, stack.clone()),
                    None => {
                        let (recordings, cpu_ns, state) = (recording.bit(), thread.cpu_ns, Some(state));
                        asked.push(PendingTick { tick_ns, ticks, recordings, cpu_ns, state });
                        continue;
                    }
                },
            };
            recording.wall_sample(&thread.thread, tick_ns, ticks, state, &stack);
        }
    }

    fn parts(&self, ticks: u32, interval_ns: u64, used_ns: u64, now: Now<'_>) -> Parts {
        let none = (0, Part::Nowhere(State::Running));
        let (is_blocked, was_blocked) = (now.stack.is_some(), self.before.blocked.is_some());
        if used_ns == 0 {
            let state = if is_blocked { now.state } else { State::Runnable };
            // It was blocked and is not any more: it woke up in the middle, as far as is known.
            let before = if was_blocked && !is_blocked { ticks / 2 } else { 0 };
            return [(before, Part::Before), (ticks - before, Part::Here(state)), none, none];
        }
        let rounded = |ns: u64| {
            let ticks = ns.saturating_add(interval_ns / 2) / interval_ns.max(1);
            u32::try_from(ticks).unwrap_or(u32::MAX)
        };
        let waiting = rounded(self.waited_ns).min(ticks);
        let running = rounded(used_ns).min(ticks - waiting);
        let rest = ticks - waiting - running;
        let before = match (was_blocked, is_blocked) {
            (true, true) => rest / 2,
            (true, false) => rest,
            (false, _) => 0,
        };
        let (for_cpu, on_cpu) = match (was_blocked, is_blocked) {
            (true, true) => (Part::Woken, Part::Nowhere(State::Running)),
            (false, true) => (Part::Nowhere(State::Runnable), Part::Nowhere(State::Running)),
            (_, false) => (Part::Here(State::Runnable), Part::Here(State::Running)),
        };
        [
            (before, Part::Before),
            (waiting, for_cpu),
            (running, on_cpu),
            // Of a thread that was never blocked this is the wait, or the run, that goes on: not counted yet.
            (rest - before, Part::Here(now.state)),
        ]
    }
}

/// The recording ends: what waits is told; a thread that rests has not moved, or it is not known.
pub fn tell_rest(thread: &mut Sampled, recording: &mut Active, clock_ns: u64) {
    if !is_told_of(thread, recording) {
        return;
    }
    let blocked = thread.blocked.clone();
    tell_seen(thread, recording, blocked.as_ref());
    // Not now: answers may have been waited for, and the recording's time is over.
    let last_ns = recording.last_tick_ns();
    let rested = take(thread, recording, 0, last_ns).rested;
    if rested == 0 {
        return;
    }
    match blocked {
        Some(BlockedStack { cpu_ns, state, stack }) => {
            recording.counters().inferred.add(if cpu_ns == clock_ns { 0 } else { u64::from(rested) });
            recording.wall_sample(&thread.thread, last_ns, rested, state, &stack);
        }
        None => recording.counters().missed.add(u64::from(rested)),
    }
}

/// Nothing will be known of the ticks since the last look up to that of this look (`of_look`: 1), or
/// all of them (0); returns how many of them were no late ones. What waits is told.
pub fn forget(thread: &mut Sampled, recording: &mut Active, of_look: u64) -> u64 {
    if !is_told_of(thread, recording) {
        return 0;
    }
    let blocked = thread.blocked.clone();
    tell_seen(thread, recording, blocked.as_ref());
    u64::from(take(thread, recording, of_look, recording.last_tick_ns()).rested)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const FUTEX: State = State::Blocked(Some(202));
    const READ: State = State::Blocked(Some(0));

    fn parts(was: Option<State>, now: State, ticks: u32, used_ns: u64, waited_ns: u64) -> Vec<(u32, Part)> {
        let stack = Arc::new(RawStack::none());
        let blocked = was.map(|state| BlockedStack { cpu_ns: 5, state, stack: stack.clone() });
        let gap = Gap { before: Before { cpu_ns: 5, blocked }, tick_ns: 0, waited_ns };
        let is_blocked = matches!(now, State::Blocked(_));
        let parts =
            gap.parts(ticks, 10 * MS, used_ns, Now { state: now, stack: is_blocked.then_some(&stack) });
        assert_eq!(parts.iter().map(|part| part.0).sum::<u32>(), ticks);
        parts.into_iter().filter(|part| part.0 > 0).collect()
    }

    #[test]
    fn a_thread_whose_clock_stood_still_was_where_it_is() {
        assert_eq!(parts(Some(FUTEX), FUTEX, 7, 0, 0), [(7, Part::Here(FUTEX))]);
        assert_eq!(parts(None, State::Runnable, 7, 0, 0), [(7, Part::Here(State::Runnable))]);
        let woken = [(3, Part::Before), (4, Part::Here(State::Runnable))];
        assert_eq!(parts(Some(FUTEX), State::Runnable, 7, 0, 0), woken);
    }

    #[test]
    fn a_thread_under_a_quota_waited_for_its_cpu() {
        let expected = [(8, Part::Here(State::Runnable))];
        assert_eq!(parts(None, State::Running, 8, 2 * MS, 79 * MS), expected);
        // Its wait goes on, and the kernel has not counted it yet.
        assert_eq!(parts(None, State::Runnable, 8, 2 * MS, 0), expected);
    }

    #[test]
    fn a_busy_thread_ran() {
        assert_eq!(parts(None, State::Running, 3, 30 * MS, 0), [(3, Part::Here(State::Running))]);
        let expected = [(3, Part::Before), (5, Part::Here(State::Running))];
        assert_eq!(parts(Some(FUTEX), State::Running, 8, 50 * MS, 0), expected);
    }

    #[test]
    fn a_thread_that_woke_up_and_sleeps_elsewhere_was_half_here_half_there() {
        assert_eq!(parts(Some(FUTEX), READ, 7, MS / 10, 0), [(3, Part::Before), (4, Part::Here(READ))]);
        let worked = [(2, Part::Nowhere(State::Running)), (5, Part::Here(READ))];
        assert_eq!(parts(None, READ, 7, 20 * MS, MS), worked);
        let starved = [(1, Part::Before), (5, Part::Woken), (1, Part::Here(READ))];
        assert_eq!(parts(Some(FUTEX), READ, 7, MS, 50 * MS), starved);
    }

    #[test]
    fn the_parts_are_all_the_ticks_whatever_the_clocks_say() {
        for was in [None, Some(FUTEX)] {
            for now in [FUTEX, State::Running, State::Runnable] {
                for ticks in [0, 1, 2, 7, 1000] {
                    for used_ns in [0, 1, MS, 50 * MS, u64::MAX] {
                        for waited_ns in [0, MS / 2, 900 * MS, u64::MAX] {
                            parts(was, now, ticks, used_ns, waited_ns);
                        }
                    }
                }
            }
        }
    }
}
