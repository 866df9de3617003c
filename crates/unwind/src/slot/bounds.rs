//! Where a thread's stack is, as far as known.

/// What is known of the mapping that a thread's stack is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Extent {
    /// Other things may lie in it, too: memory that a program got by mmap(2) and gave to a thread
    /// as its stack.
    #[default]
    Shared = 0,
    /// All of it is the stack: the kernel's `[stack]` of the first thread.
    Whole = 1,
}

/// Where a thread's stack is; `low` = `high`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackBounds {
    /// First address of the mapping.
    pub low: u64,
    /// The address behind its last.
    pub high: u64,
    /// What else may lie in the mapping.
    pub extent: Extent,
}

impl StackBounds {
    /// Up to where memory above `sp` stays mapped as long as the thread is at `sp`; 0: not known.
    /// The C library puts the thread's control block, which `thread_pointer` points to, at the
    /// upper end of the stack, even of a stack that the program allocated (glibc's allocate_stack,
    /// also for pthread_attr_setstack(3)). From `sp` to there are frames still in use. Beyond that,
    /// only memory of the kernel's own `[stack]` is sure to stay.
    #[inline(always)]
    pub fn in_use_up_to(&self, sp: u64, thread_pointer: u64) -> u64 {
        if !self.contains(sp) {
            0
        } else if self.extent == Extent::Whole {
            self.high
        } else if self.low < thread_pointer && sp < thread_pointer && thread_pointer < self.high {
            thread_pointer
        } else {
            0
        }
    }

    /// The same, if the kernel's `[stack]` has grown to `sp` since: `is_mapped` says of two pages
    /// whether all memory between them is.
    #[inline(always)]
    pub fn grown_to(self, sp: u64, is_mapped: impl FnOnce(u64, u64) -> bool) -> StackBounds {
        const PAGE: u64 = 4096;
        let low = sp & !(PAGE - 1);
        let is_below = self.extent == Extent::Whole && sp < self.low;
        if is_below && is_mapped(low, self.low) { StackBounds { low, ..self } } else { self }
    }

    /// Whether `sp` is in that mapping.
    pub fn contains(&self, sp: u64) -> bool {
        (self.low..self.high).contains(&sp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_above_the_control_block_is_not_believed_to_stay() {
        let shared = StackBounds { low: 0x1000, high: 0x9000, extent: Extent::Shared };
        assert_eq!(shared.in_use_up_to(0x2000, 0x4fc0), 0x4fc0);
        assert_eq!(shared.in_use_up_to(0x5000, 0x4fc0), 0, "a stack of its own, in the same mapping");
        assert_eq!(shared.in_use_up_to(0x2000, 0x20000), 0, "a coroutine's stack");
        assert_eq!(shared.in_use_up_to(0x20000, 0x4fc0), 0);
        let whole = StackBounds { extent: Extent::Whole, ..shared };
        assert_eq!(whole.in_use_up_to(0x2000, 0x20000), 0x9000);
    }

    #[test]
    fn the_first_threads_stack_may_have_grown_and_no_others() {
        let whole = StackBounds { low: 0x9000, high: 0xa000, extent: Extent::Whole };
        let grown = whole.grown_to(0x5678, |from, to| (from, to) == (0x5000, 0x9000));
        assert_eq!(grown, StackBounds { low: 0x5000, ..whole });
        assert_eq!(whole.grown_to(0x5678, |_, _| false), whole, "something else is between");
        assert_eq!(whole.grown_to(0x9678, |_, _| true), whole);
        let shared = StackBounds { extent: Extent::Shared, ..whole };
        assert_eq!(shared.grown_to(0x5678, |_, _| true), shared);
    }
}
