//! An event: one thread waits until another sets it. Neither holds anything that the other waits
//! for.
//!
//! Not a condition variable: its lock could be held by a thread that does not get to run.

use crate::atomic::{AtomicU32, Ordering::*};
use crate::futex;
use std::time::{Duration, Instant};

/// How often it was set, modulo 2³².
#[derive(Debug, Default)]
pub struct Event(AtomicU32);

impl Event {
    /// Wakes the thread that waits, which sees what was done before.
    pub fn set(&self) {
        // Release: pairs with the load in `wait_for`.
        self.0.fetch_add(1, Release);
        futex::wake_one(&self.0);
    }

    /// What `look` finds, which is called again each time the event is set. `None` after that time.
    pub fn wait_for<T>(&self, at_most: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + at_most;
        loop {
            // Acquire: a thread that sees the number sees what was done before the event was set.
            // Loaded before `look`: what happens after it sets the event again.
            let seen = self.0.load(Acquire);
            let found = look();
            let left = deadline.saturating_duration_since(Instant::now());
            if found.is_some() || left.is_zero() {
                return found;
            }
            futex::wait(&self.0, seen, left);
        }
    }
}
