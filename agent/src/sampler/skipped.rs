//! Wall mode: what is told of ticks that passed a thread by.
//!
//! A tick passes a thread by where the sampler came too late for it, or where the thread rests (`rest.rs`). What it
//! was doing then follows from what the kernel counts:
//!
//! - Its CPU clock has not moved: it stayed where it was. Nothing is guessed.
//! - The clock has moved: for so long it ran, for so long it waited for a CPU (the run delay, `run_delay.rs`), and the
//!   rest of the time it was blocked: the earlier half where it was before, the later half where it is now. (Of one that
//!   ran before and runs now nobody knows where; or the whole process was stopped.) That is inferred, and counted as such.
//!
//! A process that was stopped for long, or starved, is not made to have thousands of ticks at once: see [`MOST_LATE`].

use super::active::Active;
use super::threads::{BlockedStack, PendingTick, Sampled};
use super::told::{take, tell_seen};
use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::State;

/// More ticks that came too late in a row are not told: they are only counted as late.
pub const MOST_LATE: u64 = 1000;

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
        // It ran before and runs now, and what the kernel has counted of both leaves time: the process was stopped, or
        // the thread blocked in between.
        let counted_ns = used_ns.saturating_add(self.waited_ns);
        let elsewhere_ns = u64::from(ticks).saturating_mul(interval_ns).saturating_sub(counted_ns);
        let elsewhere = match (was_blocked, now.state) {
            (false, State::Running) => {
                u32::try_from(elsewhere_ns / interval_ns.max(1)).unwrap_or(u32::MAX).min(rest)
            }
            _ => 0,
        };
        if elsewhere > 0 {
            return [
                (elsewhere, Part::Nowhere(State::Blocked(None))),
                (waiting, Part::Here(State::Runnable)),
                (running, Part::Here(State::Running)),
                (rest - elsewhere, Part::Here(State::Running)),
            ];
        }
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

    /// A second of SIGSTOP was a second of running.
    #[test]
    fn a_busy_thread_of_a_process_that_was_stopped_did_not_run_meanwhile() {
        let stopped = (98, Part::Nowhere(State::Blocked(None)));
        let ran = (1, Part::Here(State::Running));
        assert_eq!(parts(None, State::Running, 100, 12 * MS, 0), [stopped, ran, ran]);
        // Less than a tick is what the clocks differ by.
        assert_eq!(parts(None, State::Running, 3, 24 * MS, MS)[0].1, Part::Here(State::Running));
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
