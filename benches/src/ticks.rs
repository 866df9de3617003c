//! A clock that costs a few nanoseconds to read, and what its ticks are worth.

use std::time::{Duration, Instant};

/// Ticks since some time in the past: the time stamp counter on x86-64, else nanoseconds.
#[inline(always)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction, and user space may use it unless prctl(2) forbade
    // it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return swipr_os::process::monotonic_ns();
}

/// How long a tick is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    ns_per_tick: f64,
}

impl Scale {
    /// Compares the ticks with the system's clock for a fifth of a second.
    pub fn measured() -> Scale {
        let (time, ticks) = (Instant::now(), now());
        std::thread::sleep(Duration::from_millis(200));
        let (elapsed, end) = (time.elapsed(), now());
        Scale { ns_per_tick: elapsed.as_nanos() as f64 / end.wrapping_sub(ticks).max(1) as f64 }
    }

    /// Nanoseconds from one reading to a later one.
    pub fn ns(&self, from: u64, to: u64) -> f64 {
        to.wrapping_sub(from) as f64 * self.ns_per_tick
    }

    /// So many nanoseconds, in ticks.
    pub fn ticks(&self, ns: f64) -> u64 {
        (ns / self.ns_per_tick) as u64
    }
}
