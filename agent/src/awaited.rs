//! Programs that are started in order to be recorded: nothing of their beginning and of their end is to be missed.
//!
//! Only where `SWIPR_RECORDER` asks, as `swipr run` does: the constructor waits until the recording samples, so that the
//! first function of `main` is seen; and exit(3) waits until the recordings have been handed over. Both waits have a
//! bound, and the process goes on as without them when nobody comes. Not here: who is meant (`config/recorder.rs`).

#[cfg(feature = "preload")]
use crate::config::Config;
use crate::platform::process;
use crate::{life, off};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long a recorder may take to come.
#[cfg(feature = "preload")]
const AT_START: Duration = Duration::from_secs(2);
/// How long handing over may take.
const AT_EXIT: Duration = Duration::from_millis(500);
/// How often it is looked.
const OFTEN: Duration = Duration::from_micros(500);

/// Whether this process waits. A copy made by fork does not: its beginning is over.
static WAITS: AtomicBool = AtomicBool::new(false);

/// The constructor has started the agent: waits until it is recorded, if that is wanted.
#[cfg(feature = "preload")]
pub fn at_start(config: &Config) {
    if config.awaited.is_some_and(|awaited| awaited.is_meant(process::parent())) {
        WAITS.store(true, Relaxed);
        wait(AT_START, life::is_sampling);
    }
}

/// The process ends, and its recordings have been told to.
pub fn at_exit() {
    if WAITS.load(Relaxed) {
        wait(AT_EXIT, || !life::is_handing_over());
    }
}

/// In the child of a fork.
pub fn forget_in_child() {
    WAITS.store(false, Relaxed);
}

fn wait(at_most: Duration, is_over: impl Fn() -> bool) {
    let deadline = Instant::now() + at_most;
    while !is_over() && !off::is_off() && Instant::now() < deadline {
        process::sleep(OFTEN);
    }
}
