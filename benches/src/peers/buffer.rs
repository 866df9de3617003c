//! A place for the frames that a peer finds in a signal handler.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Frames that a peer is asked for at most.
pub const CAPACITY: usize = 32 * 1024;

/// Where a peer leaves its frames for another thread to read: one writer or reader at a time.
#[derive(Debug)]
pub struct Buffer {
    frames: UnsafeCell<[u64; CAPACITY]>,
    count: AtomicUsize,
}

// SAFETY: `fill` and `stack` leave it to their callers that only one of them runs at a time.
unsafe impl Sync for Buffer {}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::new()
    }
}

impl Buffer {
    /// An empty one.
    pub const fn new() -> Buffer {
        Buffer { frames: UnsafeCell::new([0; CAPACITY]), count: AtomicUsize::new(0) }
    }

    /// Lets `take` write frames and say how many.
    ///
    /// # Safety
    /// Nobody else uses this buffer meanwhile.
    pub unsafe fn fill(&self, take: impl FnOnce(&mut [u64]) -> usize) {
        // SAFETY: the caller is the only user.
        let count = take(unsafe { &mut *self.frames.get() });
        self.count.store(count, Release);
    }

    /// The frames from the interrupted `pc` on (the handler's own come before), without the zero
    /// that some write behind the last; all of them if the pc is not among them.
    ///
    /// # Safety
    /// Nobody fills this buffer meanwhile.
    pub unsafe fn stack(&self, pc: u64) -> Vec<u64> {
        let count = self.count.load(Acquire);
        // SAFETY: the caller is the only user.
        let frames = unsafe { &*self.frames.get() };
        from_interrupted(frames.get(..count).unwrap_or(&[]), pc)
    }
}

fn from_interrupted(frames: &[u64], pc: u64) -> Vec<u64> {
    let start = frames.iter().position(|&frame| frame == pc).unwrap_or(0);
    let mut stack: Vec<u64> = frames.iter().skip(start).copied().collect();
    while stack.last() == Some(&0) {
        stack.pop();
    }
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_begins_where_the_thread_was_interrupted() {
        assert_eq!(from_interrupted(&[1, 2, 3, 4, 0, 0], 3), [3, 4]);
        assert_eq!(from_interrupted(&[1, 2], 9), [1, 2]);
    }
}
