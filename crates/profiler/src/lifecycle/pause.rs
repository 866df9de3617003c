//! Pauses the agent while its threads would be in the way of something that the host does.

use super::{PROCESS, Phase, STATE, TIMEOUT, start_again, stop};
use crate::{agent_threads, signal_exclusion};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use swipr_os::own_threads;
use swipr_os::{process, threads};

/// How long the agent's threads may take to be gone once the agent has ended.
const LINGERING: Duration = Duration::from_secs(1);
/// How often a waiting thread checks.
const POLL_INTERVAL: Duration = Duration::from_micros(100);
/// A thread of the agent that is just starting or exiting looks like one of the host's. So the
/// threads are counted up to so many times, for some 15 ms. (Three times were too few on a busy
/// machine: a thread of the agent kept what the host gave up, and glibc aborted the process.)
const LOOKS: u32 = 100;

/// The agent ran, and is paused now.
#[derive(Debug)]
pub struct Paused(());

impl Paused {
    /// Starts the agent again, with the configuration that it had.
    pub fn resume(self) {
        start_again(|_| true);
    }
}

/// The host is about to change what the process may do: waits a moment for a start that is under
/// way.
pub fn settle_before_change() {
    if may_run_here() {
        STATE.settled_soon();
    }
}

/// Whether there may be an agent in this process, and the calling thread is the host's.
fn may_run_here() -> bool {
    // A child by vfork has its parent's memory, and one by clone(2) a copy of it in which there is
    // no agent.
    STATE.phase() != Phase::Idle
        && !signal_exclusion::is_in_sandbox()
        && PROCESS.load(Relaxed) == process::pid()
        && !own_threads::contains(process::tid())
}

/// Ends the agent if it runs in this process. Returns when none of its threads is left, or after a
/// bounded time. `None`: there was none, or it does not end (then it stays off). Waits for a start
/// that is under way: else the host's next call would have the agent's threads killed, and the host
/// with them.
pub fn pause() -> Option<Paused> {
    let runs = may_run_here() && STATE.settled(Instant::now() + TIMEOUT) == Phase::Running;
    if runs { end() } else { None }
}

fn end() -> Option<Paused> {
    let of_agent: Vec<u32> = own_threads::ids().collect();
    stop().ok()?;
    let deadline = Instant::now() + LINGERING;
    while of_agent.iter().any(|&tid| threads::cpu_ns(tid).is_some()) && Instant::now() < deadline {
        process::sleep(POLL_INTERVAL);
    }
    Some(Paused(()))
}

/// The same, if the host has no thread but the calling one. A start that takes longer than a moment
/// is given up: its threads would keep what the host is about to give up.
pub fn pause_if_only_thread() -> Option<Paused> {
    if !may_run_here() {
        return None;
    }
    let phase = STATE.settled_soon();
    let is_only = || {
        (0..LOOKS).any(|look| {
            if look > 0 {
                process::sleep(POLL_INTERVAL);
            }
            threads::count().is_some_and(|count| count <= agent_threads::count() + 1)
        })
    };
    if !matches!(phase, Phase::Starting | Phase::Running) || !is_only() {
        return None;
    }
    if STATE.give_up_start() {
        super::log_line(
            "not profiled: the agent had not started when the program changed its rights or name spaces",
        );
        return None;
    }
    end()
}
