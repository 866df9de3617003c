//! Where the stack of a thread is that the C library has made: from the lower end that is noted in
//! the thread's control block, up to that block, which is at the stack's upper end, even of a
//! stack that the program allocated (glibc's allocate_stack, also for pthread_attr_setstack(3)).
//!
//! A thread that is at a stack pointer in there needs all above it to go on, so it stays mapped.
//! The mapping alone does not say that: between another stack in it, as a coroutine's, and the
//! control block may be a guard that madvise(2) has made, or memory that is unmapped meanwhile.

use crate::thread_data;
use std::ops::Range;
use swipr_unwind::arch;
use swipr_unwind::memory::guarded_copy_or_file;

/// Where the C library keeps them.
#[derive(Debug)]
pub struct OwnStacks {
    /// From the control block to what the thread pointer points to: other processors have the block
    /// below it.
    pointer_at: u64,
    tid_at: u64,
    stack_at: u64,
    memory_file: i32,
}

impl OwnStacks {
    /// `None`: it is not known, or this is the first thread. `memory_file` as for
    /// [`guarded_copy_or_file`].
    pub fn new(memory_file: i32) -> Option<OwnStacks> {
        let tid_at = thread_data::of_tid_by(memory_file)?;
        let stack_at = thread_data::of_stack(memory_file)?;
        // SAFETY: asks for a value that this thread has.
        let block = unsafe { libc::pthread_self() };
        let pointer_at = arch::thread_pointer().wrapping_sub(block);
        Some(OwnStacks { pointer_at, tid_at, stack_at, memory_file })
    }

    /// The stack of a thread that has this thread pointer.
    pub fn of(&self, tid: u32, thread_pointer: u64) -> Option<Range<u64>> {
        let block = thread_pointer.wrapping_sub(self.pointer_at);
        let is_its = self.bytes(block, self.tid_at).map(u32::from_ne_bytes) == Some(tid);
        let words = [0, 8, 16].map(|at| self.bytes(block, self.stack_at + at));
        let [low, length, guard] = words.map(|word| word.map_or(0, u64::from_ne_bytes));
        thread_data::own_stack([low, length, guard], block).filter(|_| is_its)
    }

    fn bytes<const COUNT: usize>(&self, block: u64, at: u64) -> Option<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        let read = guarded_copy_or_file(block.wrapping_add(at), &mut bytes, self.memory_file);
        (read == COUNT).then_some(bytes)
    }
}
