//! While a thread of the host forks, no thread of the agent is in the loader.
//!
//! glibc does not free the loader's lock in the child: if a thread of the agent held it at that
//! moment, the child's next dlopen(3) would wait for ever. Forks do not wait for each other.

use crate::locks::{spin, wait_within};
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

/// How many threads fork; or that a thread of the agent is inside. And that one wants to be.
struct Gate(AtomicU32);

const AGENT: u32 = 1 << 31;
/// One that takes longer was left by longjmp(3), in a fork handler of the program's.
const LONGEST_FORK: Duration = Duration::from_secs(60);
const WANTED: u32 = 1 << 30;

static GATE: Gate = Gate(AtomicU32::new(0));

impl Gate {
    /// A thread of the agent is inside, if nobody else is. Else new forks wait, or there would
    /// always be one.
    fn enter(&self) -> Option<()> {
        let is_free = self.0.fetch_or(WANTED, Relaxed) & !WANTED == 0;
        let entered = is_free && self.0.compare_exchange(WANTED, AGENT, Acquire, Relaxed).is_ok();
        entered.then_some(())
    }

    /// One more thread forks, if no thread of the agent is inside or wants to be.
    fn begin(&self) -> Option<()> {
        let more = |inside: u32| (inside & (AGENT | WANTED) == 0).then_some(inside + 1);
        self.0.fetch_update(Acquire, Relaxed, more).ok().map(|_| ())
    }
}

/// A thread of the agent is in the loader.
#[derive(Debug)]
pub struct AgentInside(());

impl AgentInside {
    /// Waits for forks, and for threads of the agent. `None`: it is off, and one of its threads has
    /// ended inside, or a fork does not end.
    pub fn enter() -> Option<AgentInside> {
        let entered = wait_within(LONGEST_FORK, || GATE.enter());
        if entered.is_none() {
            GATE.0.fetch_and(AGENT, Relaxed);
        }
        entered.map(AgentInside)
    }
}

impl Drop for AgentInside {
    fn drop(&mut self) {
        GATE.0.fetch_and(!AGENT, Release);
    }
}

/// The calling thread is about to fork. `false`: a thread of the agent did not come out in time:
/// the caller itself keeps it there, or it ended there.
pub fn begin(at_most: Duration) -> bool {
    wait_within(at_most, || GATE.begin()).is_some()
}

/// The same without a system call.
pub fn begin_spinning() -> bool {
    spin(|| GATE.begin()).is_some()
}

/// In the parent, if [`begin`] has returned `true`.
pub fn end() {
    let less = |inside: u32| (inside & !(AGENT | WANTED) > 0).then(|| inside - 1);
    _ = GATE.0.fetch_update(Release, Relaxed, less);
}

/// In the child: nobody else is there.
pub fn forget() {
    GATE.0.store(0, Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_wait_for_the_agents_threads_and_not_for_each_other() {
        let gate = Gate(AtomicU32::new(0));
        assert!(gate.enter().is_some() && gate.begin().is_none() && gate.enter().is_none());
        gate.0.fetch_and(!AGENT, Release);
        assert!(gate.enter().is_some(), "it was wanted");
        gate.0.store(0, Release);
        assert!(gate.begin().is_some() && gate.begin().is_some());
        assert!(gate.enter().is_none() && gate.begin().is_none(), "a new fork waits");
        gate.0.fetch_sub(2, Release);
        assert!(gate.enter().is_some());
    }
}
