//! Which share of a thread's waits for a CPU is behind a block: as often as it has left its CPUs by
//! itself.

use swipr_os::process::monotonic_ns;
use swipr_os::threads::Switches;

/// The kernel is asked so often at most.
const INTERVAL_NS: u64 = 50_000_000;

/// The share, as of the last time that the thread waited.
#[derive(Debug, Default)]
pub struct WokenShare {
    read_ns: u64,
    switches: Switches,
    share: Option<f32>,
}

impl WokenShare {
    /// Of the thread, which waits; `None`: the kernel does not say.
    pub fn of(&mut self, tid: u32) -> Option<f32> {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.read_ns) >= INTERVAL_NS {
            self.read_ns = now_ns;
            let switches = Switches::of(tid)?;
            self.share = switches.voluntary_share(self.switches).or(self.share);
            self.switches = switches;
        }
        self.share
    }
}
