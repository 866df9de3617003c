//! Which reader has which blocks.

use super::Blocks;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering::*};

/// Blocks for handlers: one that finds none free reads no frames.
#[derive(Debug)]
pub struct Pool {
    taken: [AtomicBool; Pool::SIZE],
    blocks: [UnsafeCell<Blocks>; Pool::SIZE],
}

// SAFETY: blocks are reached by the one thread that has set their `taken`.
unsafe impl Sync for Pool {}

impl Pool {
    /// Handlers that can read at the same time. A tick of the kernel comes to all processors at
    /// once. Memory of those that are never used is never touched.
    pub const SIZE: usize = 64;

    /// In a child of fork: handlers of threads that are not there have no blocks.
    pub fn reset(&self) {
        self.taken.iter().for_each(|taken| taken.store(false, Relaxed));
    }

    /// Calls `read` with blocks that nobody else uses meanwhile; `None`: there are none.
    pub fn with<T>(&self, read: impl FnOnce(&mut Blocks) -> T) -> Option<T> {
        let free = |taken: &&AtomicBool| taken.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        let at = self.taken.iter().position(|taken| free(&taken))?;
        let (taken, blocks) = (self.taken.get(at)?, self.blocks.get(at)?);
        // SAFETY: this thread has set `taken`, and nobody else uses them until it is cleared.
        let result = read(unsafe { &mut *blocks.get() });
        taken.store(false, Release);
        Some(result)
    }
}
