//! While a thread of the host forks, no thread of the agent is in the loader, nor makes a thread.
//!
//! glibc does not free the loader's lock in the child: if a thread of the agent held it at that
//! moment, the child's next dlopen(3) would wait for ever. The same is true of malloc's, which
//! pthread_create(3) takes, where fork takes no lock ([`super::single_thread`]). Forks do not wait
//! for each other.

use crate::locks::{spin, wait_within};
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

/// A thread of the agent is inside; else how many threads fork.
const AGENT: u32 = 1 << 31;
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// A thread of the agent is in the loader, or makes a thread.
#[derive(Debug)]
pub struct AgentInside(());

impl AgentInside {
    /// Waits for forks, at most so long, and for threads of the agent. `None` also if the agent is
    /// off, and one of its threads has ended inside.
    pub fn enter(at_most: Duration) -> Option<AgentInside> {
        wait_within(at_most, || INSIDE.compare_exchange(0, AGENT, Acquire, Relaxed).ok())?;
        Some(AgentInside(()))
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
    INSIDE.fetch_update(Acquire, Relaxed, |inside| (inside & AGENT == 0).then_some(inside + 1)).ok()
}

/// In the parent, after as many forks as [`begin`] has returned `true` for.
pub fn end(forks: u32) {
    INSIDE.fetch_sub(forks, Release);
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
        let inside = AgentInside::enter(Duration::MAX).unwrap();
        assert!(!begin(Duration::from_millis(1)) && !begin_spinning());
        drop(inside);
        assert!(begin(Duration::MAX) && std::thread::spawn(|| begin(Duration::MAX)).join().unwrap());
        let agent = std::thread::spawn(|| AgentInside::enter(Duration::MAX));
        end(1);
        assert!(!agent.is_finished());
        end(1);
        assert!(agent.join().unwrap().is_some());
    }
}
