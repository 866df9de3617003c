//! A bounded list of frames that keeps both ends of a deep stack.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Frames that are kept of one stack.
pub const CAPACITY: usize = 1024;
/// The first so many always stay; the others go to a ring that holds the last ones.
const HEAD: usize = 512;
const RING: usize = CAPACITY - HEAD;

/// Set in a frame's word when its address is an instruction and not a return address: in the
/// innermost frame, in a frame that a signal interrupted, and in the trampoline behind a signal
/// handler. (Bit 63: user addresses do not have it.)
pub const EXACT: u64 = 1 << 63;

/// Room for the frames of one stack. Atomics because a handler writes what
/// another thread reads later; the hand-over is ordered by the slot's state.
pub type Storage = [AtomicU64; CAPACITY];

/// Writes frames into a [`Storage`], leaf first.
#[derive(Debug)]
pub struct Frames<'a> {
    storage: &'a Storage,
    total: usize,
}

impl<'a> Frames<'a> {
    /// An empty list in `storage`.
    pub fn new(storage: &'a Storage) -> Frames<'a> {
        Frames { storage, total: 0 }
    }

    /// Adds the next outer frame: its address, with [`EXACT`] where that holds.
    #[inline(always)]
    pub fn push(&mut self, address: u64) {
        if let Some(word) = self.storage.get(place(self.total)) {
            word.store(address, Relaxed);
        }
        self.total += 1;
    }

    /// Sets bits of the frame that was pushed last.
    pub fn mark_last(&mut self, bits: u64) {
        if let Some(word) = self.total.checked_sub(1).and_then(|last| self.storage.get(place(last))) {
            word.store(word.load(Relaxed) | bits, Relaxed);
        }
    }

    /// Replaces the frame that was pushed last.
    pub fn set_last(&mut self, word: u64) {
        if let Some(last) = self.total.checked_sub(1).and_then(|last| self.storage.get(place(last))) {
            last.store(word, Relaxed);
        }
    }

    /// The address of the frame before the one that was pushed last; 0: there is none.
    pub fn before_last(&self) -> u64 {
        let word = self.total.checked_sub(2).and_then(|number| self.storage.get(place(number)));
        word.map_or(0, |word| word.load(Relaxed) & !EXACT)
    }

    /// All frames that were pushed, also those no longer kept.
    pub fn total(&self) -> usize {
        self.total
    }
}

/// Where a frame is in the list.
#[inline(always)]
pub(crate) fn place(number: usize) -> usize {
    if number < HEAD { number } else { HEAD + number % RING }
}

/// How many of `total` frames are not kept.
pub fn elided(total: usize) -> usize {
    total.saturating_sub(CAPACITY)
}

/// The kept frames of a list of `total`, leaf first. The elided ones lie
/// between the 512th and the 513th.
pub fn kept(storage: &Storage, total: usize) -> impl Iterator<Item = u64> + '_ {
    let head = total.min(HEAD);
    let tail = total.saturating_sub(HEAD).min(RING);
    let first_of_tail = total - tail;
    (0..head)
        .chain((first_of_tail..total).map(|n| HEAD + n % RING))
        .filter_map(|at| storage.get(at).map(|word| word.load(Relaxed)))
}

/// The number among the kept frames of the frame with this number among all of `total`.
pub fn kept_number(number: usize, total: usize) -> Option<usize> {
    let elided = elided(total);
    match number {
        _ if number >= total => None,
        _ if number < HEAD => Some(number),
        _ => number.checked_sub(elided).filter(|&at| at >= HEAD),
    }
}

/// How many frames stand before the elided ones.
pub const BEFORE_ELIDED: usize = HEAD;

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn pushed(total: u64) -> (usize, Vec<u64>) {
        let storage: Storage = [const { AtomicU64::new(0) }; CAPACITY];
        let mut frames = Frames::new(&storage);
        (0..total).for_each(|n| frames.push(n));
        (elided(frames.total()), kept(&storage, frames.total()).collect())
    }

    #[test]
    fn the_frame_before_the_last_one_is_known() {
        let storage: Storage = [const { AtomicU64::new(0) }; CAPACITY];
        let mut frames = Frames::new(&storage);
        let before_last = [EXACT | 7, 8, 9].map(|address| {
            frames.push(address);
            frames.before_last()
        });
        assert_eq!(before_last, [0, 7, 8]);
    }

    #[test]
    fn shallow_stacks_are_kept_whole() {
        for total in [0, 1, 511, 512, 513, 1023, 1024] {
            assert_eq!(pushed(total), (0, (0..total).collect()));
        }
    }

    #[test]
    fn deep_stacks_keep_both_ends() {
        for total in [1025, 1536, 5000, 16_384] {
            let (elided, frames) = pushed(total);
            assert_eq!(elided as u64, total - 1024);
            let expected: Vec<u64> = (0..512).chain(total - 512..total).collect();
            assert_eq!(frames, expected);
        }
    }
}
