//! A bell: one thread waits until another rings, and neither ever holds anything that the other
//! waits for.
//!
//! Not a condition variable: its lock could be held by a thread that does not get to run.

use crate::atomic::{AtomicU32, Ordering::*};
use crate::futex;
use std::time::{Duration, Instant};

/// How often it rang, modulo 2³².
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Bell {
    /// Wakes who waits. What was done before is seen by whom it wakes.
    pub fn ring(&self) {
        // Release: pairs with the load in `wait_for`.
        self.0.fetch_add(1, Release);
        futex::wake_one(&self.0);
    }

    /// What `look` finds, which is asked again whenever it rang; `None` after that time.
    pub fn wait_for<T>(&self, at_most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + at_most;
        loop {
            // Acquire: who sees the number sees what was done before the bell rang. Before the
            // look: what comes behind it rings again.
            let rung = self.0.load(Acquire);
            let found = look();
            let left = deadline.saturating_duration_since(Instant::now());
            if found.is_some() || left.is_zero() {
                return found;
            }
            futex::wait(&self.0, rung, left);
        }
    }
}
