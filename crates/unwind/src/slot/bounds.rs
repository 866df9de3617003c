//! Where a thread's stack is, as far as known.

/// Where a thread's stack is; `low` = `high`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackBounds {
    /// First address of the mapping. Other things may lie in it, too: memory that a program got by
    /// mmap(2), other threads' stacks, those of coroutines.
    pub low: u64,
    /// The address behind its last.
    pub high: u64,
    /// The lower end of what is sure to be this thread's own stack; `own_low` = `own_high`: not
    /// known. While the thread is at a stack pointer in there, all above that stays mapped: frames
    /// that are still in use.
    pub own_low: u64,
    /// Its upper end.
    pub own_high: u64,
}

impl StackBounds {
    /// A mapping, of which nothing else is known.
    pub fn of_mapping(low: u64, high: u64) -> StackBounds {
        StackBounds { low, high, ..StackBounds::default() }
    }

    /// The kernel's `[stack]` of the first thread: all of it is the stack.
    pub fn of_first_thread(low: u64, high: u64) -> StackBounds {
        StackBounds { low, high, own_low: low, own_high: high }
    }

    /// The same, if the kernel's `[stack]` has grown to `sp` since: `is_mapped` says of two pages
    /// whether all memory between them is.
    #[inline(always)]
    pub fn grown_to(self, sp: u64, is_mapped: impl FnOnce(u64, u64) -> bool) -> StackBounds {
        const PAGE: u64 = 4096;
        let low = sp & !(PAGE - 1);
        // Above another thread's own stack is its control block, in the same mapping.
        let is_below = self.own_high == self.high && sp < self.low;
        if is_below && is_mapped(low, self.low) { StackBounds { low, own_low: low, ..self } } else { self }
    }

    /// Whether `sp` is in that mapping.
    pub fn contains(&self, sp: u64) -> bool {
        (self.low..self.high).contains(&sp)
    }

    /// Whether the mapping is the same.
    pub fn has_mapping_of(&self, other: &StackBounds) -> bool {
        (self.low, self.high) == (other.low, other.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_threads_stack_may_have_grown_and_no_others() {
        let first = StackBounds::of_first_thread(0x9000, 0xa000);
        let grown = first.grown_to(0x5678, |from, to| (from, to) == (0x5000, 0x9000));
        assert_eq!(grown, StackBounds::of_first_thread(0x5000, 0xa000));
        assert_eq!(first.grown_to(0x5678, |_, _| false), first, "something else is between");
        assert_eq!(first.grown_to(0x9678, |_, _| true), first);
        let other = StackBounds { own_high: 0x9fc0, ..first };
        assert_eq!(other.grown_to(0x5678, |_, _| true), other);
        let unknown = StackBounds::of_mapping(0x9000, 0xa000);
        assert_eq!(unknown.grown_to(0x5678, |_, _| true), unknown);
    }
}
