//! Pauses the agent while its threads would be in the way of something that the host does.

use super::{Instance, Phase, STATE, TIMEOUT, start_again, stop_until, wake};
use crate::{agent_threads, signal_exclusion};
use std::time::{Duration, Instant};
use swipr_os::own_threads;
use swipr_os::process;
use swipr_os::threads;
use swipr_unwind::memory::guarded_copy;

/// How often a waiting thread checks.
const POLL_INTERVAL: Duration = Duration::from_micros(100);
/// How often a call of the host's checks whether a start that was given up has ended: that takes 15
/// ms. Counted, not timed, as in `phase`.
const HOST_POLLS: u32 = 100;

/// The agent ran, and is paused now.
#[derive(Debug)]
pub struct Paused(());

impl Paused {
    /// Starts the agent again, with the configuration that it had.
    pub fn resume(self) {
        start_again(|_| true);
    }
}

/// The host is about to change its users. Waits a moment for a start that is under way.
///
/// Waits longer for threads of an agent that was given up: they have no capabilities that the host
/// kept, and glibc aborts a process in which one thread may not do what the others may.
pub fn settle_before_change() {
    if is_hosts_thread() && matches!(STATE.wait_briefly(), Phase::GivenUp | Phase::Idle) {
        wait_until_gone(Instant::now() + TIMEOUT);
    }
}

/// The host is about to limit a resource of the process `of` (0: its own), by the `rlimit` at that
/// address: if its user may have no more threads then than the process has, those that the agent
/// may need are started before. Others would be threads less for the host.
pub fn keep_threads_before_limit(of: u32, resource: u32, limit: u64) {
    let mut soft = [0; 8];
    if resource == libc::RLIMIT_NPROC
        && guarded_copy(limit, &mut soft) == soft.len()
        && is_hosts_thread()
        && [0, process::pid()].contains(&of)
        && threads::count().is_none_or(|count| u64::from_ne_bytes(soft) <= count)
        && matches!(STATE.wait_briefly(), Phase::Running)
    {
        agent_threads::want_spare(wake);
    }
}

/// Whether the agent was started in this process, and the calling thread is the host's.
fn is_hosts_thread() -> bool {
    // A child by vfork has its parent's memory, and one by clone(2) a copy of it in which there is
    // no agent.
    !signal_exclusion::is_in_sandbox()
        && Instance::get().is_some_and(Instance::is_of_this_process)
        && !own_threads::contains(process::tid())
}

/// Waits until none of the agent's threads is left.
fn wait_until_gone(deadline: Instant) {
    while agent_threads::any_exists() && Instant::now() < deadline {
        process::sleep(POLL_INTERVAL);
    }
}

/// Ends the agent if it runs in this process. Returns when none of its threads is left, or after a
/// bounded time. `None`: there was none, or it does not end (then it stays off). Waits for a start
/// that is under way: else the host's next call would have the agent's threads killed, and the host
/// with them.
pub fn pause() -> Option<Paused> {
    let deadline = Instant::now() + TIMEOUT;
    let runs = is_hosts_thread() && STATE.wait_until_started(deadline) == Phase::Running;
    if runs { end(deadline) } else { None }
}

/// The same, if one of the agent's threads is such.
pub fn pause_if_thread(is_such: impl Fn(u32) -> bool) -> Option<Paused> {
    if is_hosts_thread() && own_threads::ids().any(is_such) { pause() } else { None }
}

fn end(deadline: Instant) -> Option<Paused> {
    stop_until(deadline).ok()?;
    wait_until_gone(deadline);
    Some(Paused(()))
}

/// The same, if the host has no thread but the calling one. A start that takes longer than a moment
/// is given up: its threads would keep what the host is about to give up.
pub fn pause_if_only_thread() -> Option<Paused> {
    if !is_hosts_thread() {
        return None;
    }
    let phase = STATE.wait_briefly();
    if !matches!(phase, Phase::Starting | Phase::Running) || !agent_threads::host_has_one_thread() {
        return None;
    }
    if STATE.give_up_start() {
        super::log_line(
            "not profiled: the agent had not started when the program changed its rights or name spaces",
        );
        let mut polls = 0..HOST_POLLS;
        while agent_threads::any_exists() && polls.next().is_some() {
            process::sleep(POLL_INTERVAL);
        }
        return None;
    }
    end(Instant::now() + TIMEOUT)
}
