//! Profiles that wait to be sent: a bounded queue, whose oldest goes when there is no more room,
//! and how long to wait after a failure. What went for want of room, or was still there at the end,
//! is what was added and not delivered.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Waits grow from this …
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// … by half and half again up to this.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// See the module's text.
#[derive(Debug)]
pub struct Queue<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
    most: usize,
}

#[derive(Debug)]
struct Inner<T> {
    waiting: VecDeque<T>,
    added: u64,
    closed: bool,
}

impl<T> Queue<T> {
    /// Holds at most so many.
    pub fn new(most: usize) -> Queue<T> {
        let inner = Inner { waiting: VecDeque::new(), added: 0, closed: false };
        Queue { inner: Mutex::new(inner), changed: Condvar::new(), most: most.max(1) }
    }

    /// Adds one. The oldest goes for it where there is no room.
    pub fn add(&self, item: T) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.waiting.len() >= self.most {
            inner.waiting.pop_front();
        }
        inner.added += 1;
        inner.waiting.push_back(item);
        self.changed.notify_all();
    }

    /// Nothing more will come.
    pub fn close(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.changed.notify_all();
    }

    /// The oldest; waits for one. None when nothing more will come.
    pub fn take(&self) -> Option<T> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(item) = inner.waiting.pop_front() {
                return Some(item);
            }
            if inner.closed {
                return None;
            }
            inner = self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Puts one back that could not be sent, unless there is no room for it.
    pub fn put_back(&self, item: T) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.waiting.len() < self.most {
            inner.waiting.push_front(item);
        }
    }

    /// Waits for so long, or until nothing more will come.
    pub fn rest(&self, time: Duration) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(inner, time, |inner| !inner.closed));
    }

    /// Whether nothing more will come.
    pub fn is_closed(&self) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).closed
    }

    /// How many were added.
    pub fn added(&self) -> u64 {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).added
    }
}

/// How long to wait after so many failures in a row.
pub fn wait_after(failures: u32) -> Duration {
    let factor = 1.5_f64.powi(failures.saturating_sub(1).min(30) as i32);
    FIRST_WAIT.mul_f64(factor).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_where_there_is_no_room() {
        let queue = Queue::new(2);
        (1..=3).for_each(|number| queue.add(number));
        assert_eq!((queue.added(), queue.take()), (3, Some(2)));
        queue.put_back(2);
        queue.put_back(1);
        assert_eq!(queue.added(), 3);
        queue.close();
        assert_eq!([queue.take(), queue.take(), queue.take()], [Some(2), Some(3), None]);
    }

    #[test]
    fn waits_grow_up_to_a_minute() {
        assert_eq!(wait_after(1), Duration::from_millis(500));
        assert!((1..40).all(|failures| wait_after(failures) <= wait_after(failures + 1)));
        assert_eq!(wait_after(1000), Duration::from_secs(60));
    }
}
