//! Recordings must have a program's end, and those for which it was started its beginning.
//!
//! If `SWIPR_RECORDER` says so, which `swipr run` sets, the constructor and the child of a fork
//! wait until the recording samples, so that it has the first function of `main`. exit(3) waits
//! until recordings have been handed over, _exit(2) only for that recorder. Each wait has a bound,
//! and ends at once if there is none to wait for: it has ended, or the agent does not listen. Not
//! here: which processes wait for a recorder (`config/recorder.rs`).

use std::time::{Duration, Instant};
use swipr_os::disabled;
use swipr_os::process;

/// How long a recorder that exists may take to come: milliseconds, on a busy machine seconds.
const AT_START: Duration = Duration::from_secs(10);
/// How long handing over may take: milliseconds, but on a busy machine names take long to find.
const AT_EXIT: Duration = Duration::from_secs(2);
/// The same where the program was not started to be recorded.
const AT_EXIT_OF_OTHERS: Duration = Duration::from_secs(1);
/// How often a waiting thread checks.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// The agent was started: waits until `is_sampled`, which is also true if the agent is gone.
pub fn at_start(recorder: u32, is_sampled: impl Fn() -> bool) {
    wait(AT_START, || is_sampled() || process::is_gone(recorder));
}

/// The process ends, and its recordings were stopped: waits until they `have_ended`. `is_started`:
/// it was started to be recorded.
pub fn at_exit(is_started: bool, have_ended: impl Fn() -> bool) {
    wait(if is_started { AT_EXIT } else { AT_EXIT_OF_OTHERS }, have_ended);
}

fn wait(at_most: Duration, is_over: impl Fn() -> bool) {
    let deadline = Instant::now() + at_most;
    while !is_over() && !disabled::is_disabled() && Instant::now() < deadline {
        process::sleep(POLL_INTERVAL);
    }
}
