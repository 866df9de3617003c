//! In the place of the system: futex(2), which looks at the word and begins to wait as if both were
//! one.

use crate::atomic::{AtomicU32, Ordering::Relaxed};
use loom::sync::{Condvar, Mutex};
use std::time::Duration;

loom::lazy_static! {
    /// The kernel's lock for the queue of a word; there is one word.
    static ref QUEUE: Mutex<()> = Mutex::new(());
    static ref WOKEN: Condvar = Condvar::new();
}

pub fn wait(word: &AtomicU32, expected: u32, _at_most: Duration) {
    let queue = QUEUE.lock().unwrap();
    if word.load(Relaxed) == expected {
        drop(WOKEN.wait(queue).unwrap());
    }
}

pub fn wake_one(_word: &AtomicU32) {
    drop(QUEUE.lock().unwrap());
    WOKEN.notify_one();
}
