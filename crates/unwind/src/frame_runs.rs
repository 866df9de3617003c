//! Where a walk followed frame pointers, because no table describes the code: what a compiler made
//! while the program runs. Its frames are read by where they are.

use crate::frames::{self, Storage, kept_number, place};
use core::sync::atomic::Ordering::Relaxed;

/// Runs that are kept of one walk.
const MAX_RUNS: usize = 32;

/// Frames that follow one another by their frame pointers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct FrameRun {
    /// The number of the innermost one among the frames of the walk.
    pub first: u32,
    /// How many there are.
    pub length: u32,
    /// The frame pointer of the innermost one.
    pub frame_pointer: u64,
}

/// The runs of one walk, leaf first; zeroed memory has none.
#[derive(Debug)]
#[repr(C)]
pub struct FrameRuns {
    /// All runs, also those that are not kept.
    count: u32,
    runs: [FrameRun; MAX_RUNS],
}

impl FrameRuns {
    pub(crate) const fn new() -> FrameRuns {
        let none = FrameRun { first: 0, length: 0, frame_pointer: 0 };
        FrameRuns { count: 0, runs: [none; MAX_RUNS] }
    }

    /// A walk begins.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.count = 0;
    }

    /// The walk left the frame of that number by its frame pointer.
    pub fn note(&mut self, number: usize, frame_pointer: u64) {
        let number = number as u32;
        let last = (self.count as usize).checked_sub(1).and_then(|last| self.runs.get_mut(last));
        match last {
            Some(run) if run.first + run.length == number => run.length += 1,
            _ => {
                if let Some(place) = self.runs.get_mut(self.count as usize) {
                    *place = FrameRun { first: number, length: 1, frame_pointer };
                }
                self.count += 1;
            }
        }
    }

    /// Those that are kept.
    pub fn kept(&self) -> &[FrameRun] {
        self.runs.get(..self.count as usize).unwrap_or(&self.runs)
    }

    /// Whether some are not.
    pub fn are_cut(&self) -> bool {
        self.count as usize > MAX_RUNS
    }
}

/// The native frames of a thread that stands still.
#[derive(Clone, Copy, Debug)]
pub struct NativeFrames<'a> {
    /// Their addresses.
    pub storage: &'a Storage,
    /// How many were walked.
    pub total: usize,
    /// Where the walk followed frame pointers.
    pub runs: &'a FrameRuns,
    /// The thread's stack pointer.
    pub sp: u64,
}

impl NativeFrames<'_> {
    /// The kept words, leaf first.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        frames::kept(self.storage, self.total)
    }

    /// The number among the kept frames of that frame.
    pub fn kept(&self, number: usize) -> Option<usize> {
        kept_number(number, self.total)
    }

    /// The word of the frame with that number; `None`: it was not kept, or there is none.
    pub fn word(&self, number: usize) -> Option<u64> {
        kept_number(number, self.total)?;
        Some(self.storage.get(place(number))?.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::frames::{CAPACITY, Frames};
    use core::sync::atomic::AtomicU64;

    #[test]
    fn frames_in_a_row_are_one_run_and_too_many_runs_are_told() {
        let mut runs = FrameRuns::new();
        for number in [1, 2, 3, 7, 8, 10] {
            runs.note(number, 0x1000 + number as u64);
        }
        let found: std::vec::Vec<_> =
            runs.kept().iter().map(|run| (run.first, run.length, run.frame_pointer)).collect();
        assert_eq!(found, [(1, 3, 0x1001), (7, 2, 0x1007), (10, 1, 0x100a)]);
        (0..100).for_each(|number| runs.note(100 + 2 * number, 0));
        assert_eq!((runs.kept().len(), runs.are_cut()), (MAX_RUNS, true));
        runs.begin();
        assert_eq!((runs.kept().len(), runs.are_cut()), (0, false));
    }

    #[test]
    fn words_of_a_deep_stack_are_found_at_both_ends() {
        let storage: Storage = [const { AtomicU64::new(0) }; CAPACITY];
        let mut frames = Frames::new(&storage);
        (0..2000).for_each(|n| frames.push(n));
        let runs = FrameRuns::new();
        let native = NativeFrames { storage: &storage, total: frames.total(), runs: &runs, sp: 0 };
        let words = [0, 511, 512, 1487, 1488, 1999, 2000].map(|number| native.word(number));
        assert_eq!(words, [Some(0), Some(511), None, None, Some(1488), Some(1999), None]);
        let numbers = [0, 511, 512, 1488, 1999].map(|number| kept_number(number, 2000));
        assert_eq!(numbers, [Some(0), Some(511), None, Some(512), Some(1023)]);
    }
}
