//! Whether two threads have the same alternate stack. A handler that runs there in both at once
//! overwrites the frame of one with that of the other. The workers of Varnish have the same one,
//! for a handler that ends the program.
//!
//! No lock, no allocation: the host may call sigaltstack(2) anywhere.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use swipr_os::{process, threads};

/// Stacks are found by a hash of their address. Of two with the same hash, the later one is known.
const PLACES: usize = 1024;

/// A stack's address, and its thread: the id, and the control block (pthread_self(3)).
struct Place {
    stack: AtomicU64,
    thread: AtomicU32,
    block: AtomicU64,
}

impl Place {
    const fn empty() -> Place {
        Place { stack: AtomicU64::new(0), thread: AtomicU32::new(0), block: AtomicU64::new(0) }
    }
}

/// The stacks of a process, by the hashes of their addresses.
struct Stacks([Place; PLACES]);

static KNOWN: Stacks = Stacks::empty();

thread_local! {
    /// The calling thread's; 0: none.
    static MINE: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread's; 0: none.
pub fn own() -> u64 {
    MINE.get()
}

/// The calling thread is to have this stack; 0: none. Returns whether another thread has it.
pub fn take(stack: u64) -> bool {
    KNOWN.take(stack)
}

/// In the child of a fork: the thread that forked keeps its stack, under a new id.
pub fn inherit() {
    KNOWN.inherit();
}

impl Stacks {
    const fn empty() -> Stacks {
        Stacks([const { Place::empty() }; PLACES])
    }

    fn place(&self, stack: u64) -> Option<&Place> {
        self.0.get((stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize)
    }

    fn take(&self, stack: u64) -> bool {
        let mine = MINE.replace(stack);
        if mine == stack {
            return false;
        }
        if let Some(place) = self.place(mine).filter(|_| mine != 0) {
            _ = place.stack.compare_exchange(mine, 0, SeqCst, SeqCst);
        }
        let Some(place) = self.place(stack).filter(|_| stack != 0) else { return false };
        let is_known = place.stack.swap(stack, SeqCst) == stack;
        let thread = place.thread.swap(process::tid(), SeqCst);
        // SAFETY: no preconditions.
        let block = unsafe { libc::pthread_self() };
        // Where it has the same block, the other thread was joined, though the kernel may still
        // have it: the stack lies in thread-local memory.
        let is_same_block = place.block.swap(block, SeqCst) == block;
        // 0: it is just being noted down. Threads may end without a word.
        is_known && !is_same_block && (thread == 0 || threads::cpu_ns(thread).is_some())
    }

    fn inherit(&self) {
        let mine = MINE.get();
        let is_mine = |place: &&Place| mine != 0 && place.stack.load(SeqCst) == mine;
        if let Some(place) = self.place(mine).filter(is_mine) {
            place.thread.store(process::tid(), SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With stacks of its own: the threads of the other tests have theirs in the process's.
    #[test]
    fn a_stack_is_shared_if_another_living_thread_has_it() {
        let stacks: &'static Stacks = Box::leak(Box::new(Stacks::empty()));
        // The kernel has a thread a little longer than the one that joins it waits.
        let in_thread = |taken: [u64; 3]| {
            let run = move || (taken.map(|stack| stacks.take(stack)), process::tid());
            let (shared, thread) = std::thread::spawn(run).join().unwrap();
            while threads::cpu_ns(thread).is_some() {
                std::thread::yield_now();
            }
            shared
        };
        assert_eq!(in_thread([0x10_0000, 0x10_0000, 0]), [false; 3]);
        // Given back, and that of a thread that has ended.
        assert_eq!(in_thread([0x10_0000, 0x20_0000, 0x30_0000]), [false; 3]);
        assert_eq!(in_thread([0x30_0000, 0x20_0000, 0x10_0000]), [false; 3]);
        stacks.take(0x10_0000);
        assert_eq!(in_thread([0x20_0000, 0x10_0000, 0]), [false, true, false]);
        // As the child of a fork finds it: its thread had another id.
        stacks.take(0x10_0000 + 1);
        stacks.take(0x10_0000);
        stacks.place(0x10_0000).unwrap().thread.store(u32::MAX, SeqCst);
        stacks.inherit();
        assert_eq!(in_thread([0x20_0000, 0x10_0000, 0]), [false, true, false]);
        stacks.take(0);
    }
}
