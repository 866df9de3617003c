//! Where the agent is between one start and the next stop, as one word.
//!
//! The word also has the generation of the agent's life. The server thread of a life that was
//! stopped may end when the next life has begun: it must not change the phase of that one.

use std::sync::atomic::{AtomicU64, Ordering::*};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a thread that waits for a start checks. A start takes about a millisecond.
const POLL_INTERVAL: Duration = Duration::from_micros(500);
/// How often a call of the host's checks: that takes 35 ms. Counted, not timed: if the whole
/// process is stopped (by a quota of CPU time), the start gets its time all the same.
const LOOKS_OF_THE_HOST: u32 = 60;

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

/// The generation of a life: counts starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life(u64);

/// The word: the life's number, and its phase in the last three bits.
#[derive(Debug)]
pub struct State(AtomicU64);

impl State {
    /// No life yet.
    pub const fn new() -> State {
        State(AtomicU64::new(0))
    }

    fn word(life: Life, phase: Phase) -> u64 {
        life.0 << 3 | phase as u64
    }

    fn read(&self) -> (Life, Phase) {
        let word = self.0.load(Acquire);
        let phases = [Idle, Starting, GivenUp, Running, Stopping];
        let phase = phases.into_iter().find(|&phase| phase as u64 == word & 7);
        (Life(word >> 3), phase.unwrap_or(Idle))
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        self.read().1
    }

    /// Waits until the phase is not [`Starting`] any more, or until the deadline. Returns it.
    /// Polls, because a lock cannot be relied on in the child of a fork.
    pub fn settled(&self, deadline: Instant) -> Phase {
        while self.phase() == Starting && Instant::now() < deadline {
            sleep(POLL_INTERVAL);
        }
        self.phase()
    }

    /// The same for a call of the host's, which must not wait for long.
    pub fn settled_soon(&self) -> Phase {
        let mut looks = 0..LOOKS_OF_THE_HOST;
        while self.phase() == Starting && looks.next().is_some() {
            sleep(POLL_INTERVAL);
        }
        self.phase()
    }

    /// Gives up a life that does not run yet. Returns whether there was one. Its thread finds out
    /// by [`State::change`], and the next life cannot begin before it has.
    pub fn give_up_start(&self) -> bool {
        let (life, _) = self.read();
        self.change(life, Starting, GivenUp)
    }

    /// Begins a life, if there is none.
    pub fn begin(&self) -> Option<Life> {
        let (last, phase) = self.read();
        let life = Life(last.0 + 1);
        let from = State::word(last, Idle);
        let begun = phase == Idle
            && self.0.compare_exchange(from, State::word(life, Starting), AcqRel, Relaxed).is_ok();
        begun.then_some(life)
    }

    /// Begins to end the running life, if there is one.
    pub fn begin_stop(&self) -> Option<Life> {
        let (life, _) = self.read();
        self.change(life, Running, Stopping).then_some(life)
    }

    /// Changes a life's phase, if it is still in `from`. Returns whether it was.
    pub fn change(&self, life: Life, from: Phase, to: Phase) -> bool {
        self.0.compare_exchange(State::word(life, from), State::word(life, to), AcqRel, Relaxed).is_ok()
    }

    /// In the child of a fork: there is no agent. Returns whether the parent had one.
    pub fn end_in_child(&self) -> bool {
        let (life, phase) = self.read();
        self.0.store(State::word(life, Idle), Release);
        !matches!(phase, Idle | GivenUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the server thread of the life before undid half of all quick restarts.
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
        let life = state.begin().unwrap();
        assert_eq!(state.settled(Instant::now()), Starting);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| state.settled(Instant::now() + Duration::from_secs(60)));
            assert!(state.change(life, Starting, Running));
            assert_eq!(waiting.join().unwrap(), Running);
        });
        assert_eq!(state.settled_soon(), Running);
        assert!(state.end_in_child());
        assert_eq!(state.phase(), Idle);
    }

    #[test]
    fn a_start_that_was_given_up_does_not_come_to_run() {
        let state = State::new();
        let life = state.begin().unwrap();
        assert_eq!(state.settled_soon(), Starting);
        assert!(state.give_up_start());
        assert!(!state.change(life, Starting, Running) && !state.give_up_start());
        assert_eq!(state.begin(), None, "its thread has not ended");
        assert!(state.change(life, GivenUp, Idle) && state.begin().is_some());
    }
}
