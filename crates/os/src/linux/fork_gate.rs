//! While a thread of the host forks, no thread of the agent is in the loader.
//!
//! glibc does not free the loader's lock in the child: if a thread of the agent held it at that
//! moment, the child's next dlopen(3) would wait for ever. Forks do not wait for each other.

use crate::locks::{spin, wait_within};
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

/// A thread of the agent is inside, or wants to be; and how many threads fork.
const AGENT: u32 = 1 << 31;
const WANTED: u32 = 1 << 30;
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// A thread of the agent is in the loader.
#[derive(Debug)]
pub struct AgentInside(());

impl AgentInside {
    /// Waits for forks, and for threads of the agent. `None`: it is off, and one of its threads has
    /// ended inside.
    pub fn enter() -> Option<AgentInside> {
        let entered = wait_within(Duration::MAX, || {
            // New forks wait, or there would always be one.
            let is_free = INSIDE.fetch_or(WANTED, Relaxed) & !WANTED == 0;
            is_free.then(|| INSIDE.compare_exchange(WANTED, AGENT, Acquire, Relaxed).ok()).flatten()
        });
        if entered.is_none() {
            INSIDE.fetch_and(!WANTED, Relaxed);
        }
        entered.map(|_| AgentInside(()))
    }
}

impl Drop for AgentInside {
    fn drop(&mut self) {
        INSIDE.fetch_and(!AGENT, Release);
    }
}

/// The calling thread is about to fork. `false`: a thread of the agent did not come out in time:
/// the caller itself keeps it there, or it ended there.
pub fn begin(at_most: Duration) -> bool {
    wait_within(at_most, one_more).is_some()
}

/// The same without a system call.
pub fn begin_spinning() -> bool {
    spin(one_more).is_some()
}

fn one_more() -> Option<u32> {
    INSIDE
        .fetch_update(Acquire, Relaxed, |inside| (inside & (AGENT | WANTED) == 0).then_some(inside + 1))
        .ok()
}

/// In the parent, if [`begin`] has returned `true`.
pub fn end() {
    INSIDE.fetch_sub(1, Release);
}

/// In the child: nobody else is there.
pub fn forget() {
    INSIDE.store(0, Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_wait_for_the_agents_threads_and_not_for_each_other() {
        let inside = AgentInside::enter().unwrap();
        assert!(!begin(Duration::from_millis(1)) && !begin_spinning());
        drop(inside);
        assert!(begin(Duration::MAX) && std::thread::spawn(|| begin(Duration::MAX)).join().unwrap());
        let agent = std::thread::spawn(AgentInside::enter);
        end();
        assert!(!agent.is_finished());
        end();
        assert!(agent.join().unwrap().is_some());
    }
}
