//! The handler's clock in nanoseconds.

use swipr_os::process;
use swipr_unwind::arch;

/// Converts [`arch::ticks`] to nanoseconds, by comparison with the system's clock since this was
/// made.
#[derive(Debug)]
pub struct TickScale {
    started_ticks: u64,
    started_ns: u64,
}

impl Default for TickScale {
    fn default() -> TickScale {
        TickScale { started_ticks: arch::ticks(), started_ns: process::monotonic_ns() }
    }
}

impl TickScale {
    /// So many of the handler's ticks.
    pub fn ns(&self, ticks: u64) -> u64 {
        let passed = arch::ticks().wrapping_sub(self.started_ticks).max(1);
        let ns = process::monotonic_ns().saturating_sub(self.started_ns);
        (u128::from(ticks) * u128::from(ns) / u128::from(passed)) as u64
    }
}
