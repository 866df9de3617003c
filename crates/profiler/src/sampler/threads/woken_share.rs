//! Which share of a thread's waits for a CPU is behind a block in which it was not seen: as often
//! as it has left its CPUs by itself.

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
    /// How often it was seen blocked and has run again, since the kernel was asked.
    seen: u64,
}

impl WokenShare {
    /// The thread was seen blocked, and has run again: its wait in between is known.
    pub fn was_seen(&mut self) {
        self.seen += 1;
    }

    /// Of the thread, which waits; `None`: the kernel does not say.
    pub fn of(&mut self, tid: u32) -> Option<f32> {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.read_ns) >= INTERVAL_NS {
            self.read_ns = now_ns;
            let switches = Switches::of(tid)?;
            let mut before = self.switches;
            before.voluntary += std::mem::take(&mut self.seen);
            self.share = switches.voluntary_share(before).or(self.share);
            self.switches = switches;
        }
        self.share
    }
}
