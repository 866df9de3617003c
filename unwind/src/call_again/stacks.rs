//! Where threads' stacks are: for a handler that comes too late for its slot, which may be lent to another thread by then.

use crate::slot::{Extent, StackBounds};
use core::sync::atomic::{AtomicU64, Ordering::*, fence};

/// The stacks of threads that were asked, at their ids. Two that share a place forget each other's.
static STACKS: [Stack; 1024] = [const { Stack::new() }; 1024];

/// Written by the sampler.
struct Stack {
    /// The thread's id; 0 while the rest is being written.
    tid: AtomicU64,
    low: AtomicU64,
    high: AtomicU64,
    is_whole: AtomicU64,
}

impl Stack {
    const fn new() -> Stack {
        Stack {
            tid: AtomicU64::new(0),
            low: AtomicU64::new(0),
            high: AtomicU64::new(0),
            is_whole: AtomicU64::new(0),
        }
    }

    fn note(&self, tid: u32, bounds: StackBounds) {
        self.tid.store(0, Relaxed);
        fence(Release);
        self.low.store(bounds.low, Relaxed);
        self.high.store(bounds.high, Relaxed);
        self.is_whole.store(u64::from(bounds.extent == Extent::Whole), Relaxed);
        self.tid.store(u64::from(tid), Release);
    }

    fn of(&self, tid: u32) -> Option<StackBounds> {
        let is_its = |found: u64| found == u64::from(tid);
        let before = self.tid.load(Acquire);
        let (low, high) = (self.low.load(Relaxed), self.high.load(Relaxed));
        let extent = if self.is_whole.load(Relaxed) != 0 { Extent::Whole } else { Extent::Shared };
        fence(Acquire);
        (is_its(before) && is_its(self.tid.load(Relaxed))).then_some(StackBounds { low, high, extent })
    }
}

/// Sampler: a thread is about to be asked.
pub fn note(tid: u32, bounds: StackBounds) {
    if let Some(stack) = STACKS.get(tid as usize % STACKS.len()) {
        stack.note(tid, bounds);
    }
}

/// The stack of a thread, if it is known.
pub fn bounds(tid: u32) -> Option<StackBounds> {
    STACKS.get(tid as usize % STACKS.len())?.of(tid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_its_threads() {
        let bounds_of = |low| StackBounds { low, high: 0x9000, extent: Extent::Whole };
        assert_eq!(bounds(5000), None);
        note(5000, bounds_of(0x1000));
        assert_eq!(bounds(5000), Some(bounds_of(0x1000)));
        note(5000 + STACKS.len() as u32, bounds_of(0x2000));
        assert_eq!(bounds(5000), None);
    }
}
