//! The product's walk alone, timed inside a signal handler: the first time and warm.

use crate::ticks;
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::*};
use swipr_unwind::arch::Native;
use swipr_unwind::frames::{CAPACITY, Frames, Storage};
use swipr_unwind::memory::OwnStack;
use swipr_unwind::registers::Registers;
use swipr_unwind::walk::Workspace;
use swipr_unwind::{published, walk};

/// Warm walks of which the mean is taken.
const WARM: u64 = 4;
/// Bytes of the context that are read: all general registers.
const CONTEXT_BYTES: u64 = 512;

/// The interrupted registers out of a handler's context.
pub fn interrupted(context: u64) -> Option<Registers> {
    // SAFETY: the kernel's context is larger than CONTEXT_BYTES.
    let mut memory = unsafe { OwnStack::of_context(context, CONTEXT_BYTES, &mut []) };
    Registers::from_context::<Native, _>(&mut memory, context)
}

/// The interrupted pc out of a handler's context; 0 if it cannot be read.
pub fn interrupted_pc(context: u64) -> u64 {
    interrupted(context).map_or(0, |registers| registers.pc)
}

/// A place for a walk's frames, and what the walk took.
#[derive(Debug)]
pub struct Timed {
    frames: Storage,
    room: UnsafeCell<Workspace>,
    /// Frames of the last walk.
    pub total: AtomicU64,
    /// Ticks of the first walk.
    pub first: AtomicU64,
    /// Ticks of a later one.
    pub warm: AtomicU64,
}

// SAFETY: all else are atomics; the room is used in `Timed::walk` only, one walk at a time.
unsafe impl Sync for Timed {}

impl Default for Timed {
    fn default() -> Timed {
        Timed::new()
    }
}

impl Timed {
    /// Nothing measured yet.
    pub const fn new() -> Timed {
        Timed {
            frames: [const { AtomicU64::new(0) }; CAPACITY],
            room: UnsafeCell::new(Workspace::new()),
            total: AtomicU64::new(0),
            first: AtomicU64::new(0),
            warm: AtomicU64::new(0),
        }
    }

    /// Walks the interrupted stack, whose mapping is `low..high`, once and then some more times.
    ///
    /// # Safety
    /// In a signal handler, `context` being its `ucontext` and `low..high` the mapping of the
    /// interrupted stack; nobody else measures here, no other handler runs, and nobody publishes
    /// other tables meanwhile.
    pub unsafe fn measure(&self, context: u64, low: u64, high: u64) {
        let started = ticks::now();
        // SAFETY: as this function's own.
        unsafe { self.walk(context, low, high) };
        let again = ticks::now();
        for _ in 0..WARM {
            // SAFETY: as this function's own.
            unsafe { self.walk(context, low, high) };
        }
        let ended = ticks::now();
        self.first.store(again.wrapping_sub(started), Relaxed);
        self.warm.store(ended.wrapping_sub(again) / WARM, Relaxed);
    }

    /// # Safety
    /// As [`Timed::measure`].
    #[inline(never)]
    unsafe fn walk(&self, context: u64, low: u64, high: u64) {
        // SAFETY: nobody publishes meanwhile, so the snapshot stays.
        let Some(rules) = (unsafe { published::current() }) else { return };
        let Some(start) = interrupted(context) else { return };
        // SAFETY: the kernel's context is larger than CONTEXT_BYTES.
        let mut memory = unsafe { OwnStack::of_context(context, CONTEXT_BYTES, &mut []) };
        // SAFETY: the caller vouches for the range; the interrupted thread stands on it.
        unsafe { memory.set_stack(start.sp, low, high) };
        let mut frames = Frames::new(&self.frames);
        // SAFETY: nobody else walks here.
        let room = unsafe { &mut *self.room.get() };
        // SAFETY: no signal handler runs, says the caller.
        black_box(unsafe {
            walk::walk_interrupted::<Native, _>(&rules, &mut memory, context, high, &mut frames, room)
        });
        self.total.store(frames.total() as u64, Relaxed);
    }
}
