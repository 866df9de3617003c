//! A bell: one thread waits until another rings, and neither ever holds anything that the other waits for (futex(2)).
//!
//! Not a condition variable: its lock could be held by a thread that does not get to run. Not a channel of the standard library's: what that
//! keeps for each thread is registered with the C library, in memory of the host's malloc.

use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

/// How often it rang, modulo 2³².
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    /// How often it rang so far, for [`Bell::wait`].
    pub fn rung(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Wakes who waits.
    pub fn ring(&self) {
        // Release: pairs with `rung`; who sees the number sees what was done before.
        self.0.fetch_add(1, Release);
        let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word is alive; one thread is woken at most.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), wake, 1) };
    }

    /// Waits until it rang since it had rung `seen` times, at most so long. May return earlier.
    pub fn wait(&self, seen: u32, at_most: Duration) {
        let time = libc::timespec {
            tv_sec: at_most.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word is alive, and the time is valid.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), wait, seen, &raw const time) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn who_waits_is_woken_and_a_ring_before_is_not_missed() {
        let bell = Bell::default();
        let seen = bell.rung();
        std::thread::scope(|scope| {
            scope.spawn(|| bell.ring());
            let deadline = Instant::now() + Duration::from_secs(30);
            while bell.rung() == seen && Instant::now() < deadline {
                bell.wait(seen, Duration::from_secs(30));
            }
        });
        assert_ne!(bell.rung(), seen);
        bell.wait(seen, Duration::from_secs(3600)); // returns at once
    }
}
