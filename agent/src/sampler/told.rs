//! Wall mode: up to which tick a recording has been told where a thread was.
//!
//! Where a look finds a thread in its place still, nothing is told for a while: one sample for many ticks
//! costs as much as one for a single tick.

use super::active::Active;
use super::threads::{BlockedStack, Sampled};
use swipr_formats::model::Mode;

/// How long what a look has found may wait to be told. Longer than threads rest (`rest.rs`): most looks tell nothing then.
const TOLD_WITHIN_NS: u64 = 250_000_000;

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
pub struct Skipped {
    /// The sampler came too late.
    pub late: u32,
    /// The thread rested, or it has not been told yet.
    pub rested: u32,
}

impl Skipped {
    fn between(from: Passed, to: Passed) -> Skipped {
        let number = |ticks: u64| u32::try_from(ticks).unwrap_or(u32::MAX);
        Skipped {
            late: number(to.late.saturating_sub(from.late)),
            rested: number(to.taken.saturating_sub(from.taken)),
        }
    }

    /// All of them.
    pub fn ticks(self) -> u32 {
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
pub fn take(thread: &mut Sampled, recording: &Active, of_look: u64, now_ns: u64) -> Skipped {
    let Some(told) = thread.told.get_mut(recording.place()) else { return Skipped::default() };
    let now = recording.passed();
    let before = std::mem::replace(told, Told { told: now, seen: now, seen_ns: 0, at_ns: now_ns }).told;
    let skipped = Skipped::between(before, now);
    Skipped { rested: skipped.rested.saturating_sub(of_look as u32), ..skipped }
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
