//! Programs that are started in order to be recorded: the recording must have their beginning and
//! their end.
//!
//! Only if `SWIPR_RECORDER` says so, which `swipr run` sets. The constructor, and the child of a
//! fork, wait until the recording samples, so that it has the first function of `main`. exit(3)
//! waits until the recordings have been handed over. Each wait has a bound, and ends at once if no
//! recorder can come: it has ended, or the agent does not listen. Not here: which processes wait
//! (`config/recorder.rs`).

use crate::config::{Config, WaitingFor};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use swipr_os::disabled;
use swipr_os::process;

/// How long a recorder that exists may take to come: milliseconds, on a busy machine seconds.
const AT_START: Duration = Duration::from_secs(10);
/// How long handing over may take: milliseconds, but on a busy machine names take long to find.
const AT_EXIT: Duration = Duration::from_secs(2);
/// How often a waiting thread checks.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Whether this process waits.
static WAITS: AtomicBool = AtomicBool::new(false);

/// The constructor has started the agent. If this process is to wait: waits until `is_sampled`,
/// which is also true if the agent is gone.
pub fn at_start(config: &Config, is_sampled: fn() -> bool) {
    if let Some(awaited) = config.awaited.filter(|awaited| awaited.is_meant(process::parent())) {
        wait_for(awaited.recorder(), is_sampled);
    }
}

/// The same in the child of a fork, where the agent was started again.
pub fn after_fork(config: &Config, is_sampled: fn() -> bool) {
    if let Some(WaitingFor::Descendants(recorder)) = config.awaited {
        wait_for(recorder, is_sampled);
    }
}

fn wait_for(recorder: u32, is_sampled: fn() -> bool) {
    WAITS.store(true, Relaxed);
    wait(AT_START, || is_sampled() || process::is_gone(recorder));
}

/// The process ends, and its recordings were stopped: waits until they `have_ended`.
pub fn at_exit(have_ended: impl Fn() -> bool) {
    if WAITS.load(Relaxed) {
        wait(AT_EXIT, have_ended);
    }
}

/// In the child of a fork: it does not wait, unless [`after_fork`] decides so.
pub fn forget_in_child() {
    WAITS.store(false, Relaxed);
}

fn wait(at_most: Duration, is_over: impl Fn() -> bool) {
    let deadline = Instant::now() + at_most;
    while !is_over() && !disabled::is_disabled() && Instant::now() < deadline {
        process::sleep(POLL_INTERVAL);
    }
}
