//! Programs that are started in order to be recorded: the recording must have their beginning and
//! their end.
//!
//! Only if `SWIPR_RECORDER` says so, which `swipr run` sets. The constructor, and the child of a
//! fork, wait until the recording samples, so that it has the first function of `main`. exit(3)
//! waits until the recordings have been handed over. Each wait has a bound, and ends at once if no
//! recorder can come: it has ended, or the agent does not listen. Not here: which processes wait
//! (`config/recorder.rs`).

use std::time::{Duration, Instant};
use swipr_os::disabled;
use swipr_os::process;

/// How long a recorder that exists may take to come: milliseconds, on a busy machine seconds.
const AT_START: Duration = Duration::from_secs(10);
/// How long handing over may take: milliseconds, but on a busy machine names take long to find.
const AT_EXIT: Duration = Duration::from_secs(2);
/// How often a waiting thread checks.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// The agent was started: waits until `is_sampled`, which is also true if the agent is gone.
pub fn at_start(recorder: u32, is_sampled: impl Fn() -> bool) {
    wait(AT_START, || is_sampled() || process::is_gone(recorder));
}

/// The process ends, and its recordings were stopped: waits until they `have_ended`.
pub fn at_exit(have_ended: impl Fn() -> bool) {
    wait(AT_EXIT, have_ended);
}

fn wait(at_most: Duration, is_over: impl Fn() -> bool) {
    let deadline = Instant::now() + at_most;
    while !is_over() && !disabled::is_disabled() && Instant::now() < deadline {
        process::sleep(POLL_INTERVAL);
    }
}
