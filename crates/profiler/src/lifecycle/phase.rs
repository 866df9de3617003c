//! Where the agent is between one start and the next stop, as one word.
//!
//! The word also has a generation, which counts starts. The server thread of an agent that was
//! stopped may end when the next agent has started: it must not change that one's phase.

use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a thread that waits for a start checks. A start takes about a millisecond.
const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// How often a call of the host's checks: that takes 35 ms. Counted, not timed: if the whole
/// process is stopped (by a quota of CPU time), the start gets its time all the same.
const HOST_POLLS: u32 = 60;

/// What the agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// There is no agent.
    Idle,
    /// It does not listen yet.
    Starting,
    /// It did not listen yet, and will not: its thread ends as soon as it can.
    GivenUp,
    /// It listens.
    Running,
    /// It is being stopped.
    Stopping,
}

use Phase::*;

/// Counts starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

/// The word: the generation, and the phase in the last three bits.
#[derive(Debug)]
pub struct State(AtomicU64);

impl State {
    /// There was no start yet.
    pub const fn new() -> State {
        State(AtomicU64::new(0))
    }

    fn word(generation: Generation, phase: Phase) -> u64 {
        generation.0 << 3 | phase as u64
    }

    fn read(&self) -> (Generation, Phase) {
        let word = self.0.load(Acquire);
        let phases = [Idle, Starting, GivenUp, Running, Stopping];
        let phase = phases.into_iter().find(|&phase| phase as u64 == word & 7);
        (Generation(word >> 3), phase.unwrap_or(Idle))
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        self.read().1
    }

    /// Waits until the phase is not [`Starting`] any more, or until the deadline. Returns it.
    /// Polls, because a lock cannot be relied on in the child of a fork.
    pub fn wait_until_started(&self, deadline: Instant) -> Phase {
        while self.phase() == Starting && Instant::now() < deadline {
            sleep(POLL_INTERVAL);
        }
        self.phase()
    }

    /// The same for a call of the host's, which must not wait for long.
    pub fn wait_briefly(&self) -> Phase {
        let mut polls = 0..HOST_POLLS;
        while self.phase() == Starting && polls.next().is_some() {
            sleep(POLL_INTERVAL);
        }
        self.phase()
    }

    /// Gives up a start that is under way. Returns whether there was one. Its thread finds out
    /// by [`State::change`], and no other start can begin before it has.
    pub fn give_up_start(&self) -> bool {
        let (generation, _) = self.read();
        self.change(generation, Starting, GivenUp)
    }

    /// Begins a start, if there is no agent.
    pub fn begin(&self) -> Option<Generation> {
        let (last, phase) = self.read();
        let generation = Generation(last.0 + 1);
        let from = State::word(last, Idle);
        let started = phase == Idle
            && self.0.compare_exchange(from, State::word(generation, Starting), AcqRel, Relaxed).is_ok();
        started.then_some(generation)
    }

    /// Begins to stop the running agent, if there is one.
    pub fn begin_stop(&self) -> Option<Generation> {
        let (generation, _) = self.read();
        self.change(generation, Running, Stopping).then_some(generation)
    }

    /// Changes the phase, if this generation is still in `from`. Returns whether it was.
    pub fn change(&self, generation: Generation, from: Phase, to: Phase) -> bool {
        self.0
            .compare_exchange(State::word(generation, from), State::word(generation, to), AcqRel, Relaxed)
            .is_ok()
    }

    /// In the child of a fork: there is no agent. Returns whether the parent had one.
    pub fn end_in_child(&self) -> bool {
        let (generation, phase) = self.read();
        self.0.store(State::word(generation, Idle), Release);
        !matches!(phase, Idle | GivenUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the server thread of the agent before undid half of all quick restarts.
    #[test]
    fn a_life_that_is_over_cannot_end_the_next_one() {
        let state = State::new();
        let first = state.begin().unwrap();
        assert!(state.change(first, Starting, Running));
        assert_eq!(state.begin(), None);
        assert_eq!(state.begin_stop(), Some(first));
        assert!(state.change(first, Stopping, Idle));
        let second = state.begin().unwrap();
        assert!(state.change(second, Starting, Running));
        assert!(!state.change(first, Running, Idle));
        assert_eq!(state.phase(), Running);
    }

    #[test]
    fn waiting_for_a_start_ends_with_it_and_is_bounded() {
        let state = State::new();
        let generation = state.begin().unwrap();
        assert_eq!(state.wait_until_started(Instant::now()), Starting);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| state.wait_until_started(Instant::now() + Duration::from_secs(60)));
            assert!(state.change(generation, Starting, Running));
            assert_eq!(waiting.join().unwrap(), Running);
        });
        assert_eq!(state.wait_briefly(), Running);
        assert!(state.end_in_child());
        assert_eq!(state.phase(), Idle);
    }

    #[test]
    fn a_start_that_was_given_up_does_not_come_to_run() {
        let state = State::new();
        let generation = state.begin().unwrap();
        assert_eq!(state.wait_briefly(), Starting);
        assert!(state.give_up_start());
        assert!(!state.change(generation, Starting, Running) && !state.give_up_start());
        assert_eq!(state.begin(), None, "its thread has not ended");
        assert!(state.change(generation, GivenUp, Idle) && state.begin().is_some());
    }
}
