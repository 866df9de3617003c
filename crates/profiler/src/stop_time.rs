//! When a recording was told to end. On a busy machine the sampler learns of it later: what
//! happens meanwhile, as the wait of exit(3) for the recording, is not part of it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use swipr_os::process::monotonic_ns;

/// Set once: the first time counts. Takes no lock, so that a signal handler may set it.
#[derive(Debug, Default)]
pub struct StopTime(AtomicU64);

impl StopTime {
    /// Now.
    pub fn set(&self) {
        self.set_to(monotonic_ns());
    }

    /// In monotonic time.
    pub(crate) fn set_to(&self, ns: u64) {
        _ = self.0.compare_exchange(0, ns.max(1), Relaxed, Relaxed);
    }

    /// In monotonic time; `None`: not yet.
    pub fn get(&self) -> Option<u64> {
        Some(self.0.load(Relaxed)).filter(|ns| *ns > 0)
    }
}
