//! A bounded queue from one thread to another. The sender never waits. Each end reports when the
//! other one is gone.
//!
//! It replaces the standard library's channel, which keeps static TLS for each thread. That is
//! taken from the stack of every thread of the host, and registered with the C library, in memory
//! of the host's malloc.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swipr_os::event::Event;
use swipr_os::locks::lock;

/// Why something was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The receiver is behind.
    Full,
    /// There is no receiver any more.
    Gone,
}

#[derive(Debug)]
struct Shared<T> {
    queue: Mutex<VecDeque<T>>,
    capacity: usize,
    came: Event,
    sender_is_gone: AtomicBool,
    receiver_is_gone: AtomicBool,
}

/// The end that sends.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// The end that receives.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

/// A queue of so many at most.
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        queue: Mutex::new(VecDeque::new()),
        capacity,
        came: Event::default(),
        sender_is_gone: AtomicBool::new(false),
        receiver_is_gone: AtomicBool::new(false),
    });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Hands something over, or drops it.
    pub fn send(&self, value: T) -> Result<(), Refused> {
        // Relaxed: nothing that the receiver did before has to be visible.
        if self.0.receiver_is_gone.load(Relaxed) {
            return Err(Refused::Gone);
        }
        let mut queue = lock(&self.0.queue).ok_or(Refused::Gone)?;
        if queue.len() >= self.0.capacity {
            return Err(Refused::Full);
        }
        queue.push_back(value);
        drop(queue);
        self.0.came.set();
        Ok(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // Release: pairs with the load in `look`.
        self.0.sender_is_gone.store(true, Release);
        self.0.came.set();
    }
}

impl<T> Receiver<T> {
    /// The next one, waited for at most so long.
    pub fn receive(&self, at_most: Duration) -> Result<T, RecvTimeoutError> {
        self.0.came.wait_for(at_most, || self.poll()).unwrap_or(Err(RecvTimeoutError::Timeout))
    }

    /// The next one, if it is there.
    pub fn try_receive(&self) -> Option<T> {
        self.poll()?.ok()
    }

    /// `None`: nothing has come yet.
    fn poll(&self) -> Option<Result<T, RecvTimeoutError>> {
        // Acquire, and before the queue is read: what was sent before the sender went is in the
        // queue then.
        let is_last = self.0.sender_is_gone.load(Acquire);
        let next = lock(&self.0.queue).map(|mut queue| queue.pop_front());
        match next {
            Some(Some(value)) => Some(Ok(value)),
            Some(None) if !is_last => None,
            _ => Some(Err(RecvTimeoutError::Disconnected)),
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.receiver_is_gone.store(true, Relaxed);
        // The sender may stay for long.
        drop(lock(&self.0.queue).map(|mut queue| std::mem::take(&mut *queue)));
    }
}
