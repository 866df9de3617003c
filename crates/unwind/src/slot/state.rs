//! The state of one slot: a word of phase and generation, changed by compare-and-swap only. `slot`
//! explains the phases.

use crate::atomic::{AtomicU64, Ordering, Ordering::*};

const FREE: u64 = 0;
const LENT: u64 = 1;
const WRITTEN: u64 = 2;
const DONE: u64 = 3;

const fn word(generation: u32, phase: u64) -> u64 {
    (generation as u64) << 2 | phase
}

/// See the module's text; 0: free, and of the first generation.
#[derive(Debug)]
pub(crate) struct State(pub(crate) AtomicU64);

impl State {
    #[inline(always)]
    fn advance(&self, generation: u32, from: u64, to: u64, success: Ordering) -> bool {
        let next = if to == FREE { generation.wrapping_add(1) } else { generation };
        self.0.compare_exchange(word(generation, from), word(next, to), success, Relaxed).is_ok()
    }

    /// Sampler: the generation to acquire it in, if it is free.
    pub(crate) fn free(&self) -> Option<u32> {
        let word = self.0.load(Relaxed);
        (word & 3 == FREE).then_some((word >> 2) as u32)
    }

    /// Sampler: lends a free slot; releases what was written for the handler.
    pub(crate) fn acquire(&self, generation: u32) -> bool {
        self.advance(generation, FREE, LENT, Release)
    }

    /// Handler: claims a lent slot.
    #[inline(always)]
    pub(crate) fn begin(&self, generation: u32) -> bool {
        self.advance(generation, LENT, WRITTEN, SeqCst)
    }

    /// Handler: releases what it wrote.
    #[inline(always)]
    pub(crate) fn end(&self, generation: u32) {
        self.advance(generation, WRITTEN, DONE, Release);
    }

    /// Sampler: whether the handler has answered; acquires what it wrote.
    pub(crate) fn is_done(&self, generation: u32) -> bool {
        self.0.load(Acquire) == word(generation, DONE)
    }

    /// Whether the slot is lent, and no handler has claimed it.
    pub(crate) fn is_lent(&self) -> bool {
        self.0.load(Acquire) & 3 == LENT
    }

    /// Sampler: frees an answered slot.
    pub(crate) fn release(&self, generation: u32) -> bool {
        self.advance(generation, DONE, FREE, Release)
    }

    /// Sampler: lends an answered slot again; releases what was written for the handler since.
    pub(crate) fn again(&self, generation: u32) -> bool {
        self.advance(generation, DONE, LENT, Release)
    }

    /// Sampler: frees a lent slot that no handler has claimed.
    pub(crate) fn cancel(&self, generation: u32) -> bool {
        self.advance(generation, LENT, FREE, AcqRel)
    }

    /// Whether a handler is between [`State::begin`] and [`State::end`].
    pub(crate) fn is_written(&self) -> bool {
        self.0.load(SeqCst) & 3 == WRITTEN
    }

    /// Frees the slot in whatever phase it is.
    pub(crate) fn reset(&self) {
        let generation = (self.0.load(Relaxed) >> 2) as u32;
        self.0.store(word(generation.wrapping_add(1), FREE), Relaxed);
    }
}
