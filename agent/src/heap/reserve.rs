//! Memory for the time when there is none: given out once, never taken back.
//!
//! It lies in the library's zeroed data: address space from the start, memory only once it is used.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const BYTES: usize = 256 << 10;
/// The part that only threads of the host may use.
const FOR_THE_HOST: usize = 64 << 10;

/// Which kind of thread needs memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// A thread of the agent.
    Agent,
    /// A thread of the host, in one of the agent's functions.
    Host,
}

/// See the module's text.
#[repr(align(64))]
pub struct Reserve {
    memory: UnsafeCell<[u8; BYTES]>,
    used: AtomicUsize,
}

// SAFETY: each byte is given out once, to the thread that moved `used` past it.
unsafe impl Sync for Reserve {}

/// The heap's.
pub static RESERVE: Reserve = Reserve::new();

impl Reserve {
    const fn new() -> Reserve {
        Reserve { memory: UnsafeCell::new([0; BYTES]), used: AtomicUsize::new(0) }
    }

    /// Zeroed memory; null: there is not so much left.
    pub fn take(&self, layout: Layout, user: User) -> *mut u8 {
        let start: *mut u8 = self.memory.get().cast();
        let limit = if user == User::Host { BYTES } else { BYTES - FOR_THE_HOST };
        let place = |used: usize| {
            let padding = start.wrapping_add(used).align_offset(layout.align());
            let begin = used.checked_add(padding)?;
            Some((begin, begin.checked_add(layout.size()).filter(|&end| end <= limit)?))
        };
        let taken = self.used.fetch_update(Relaxed, Relaxed, |used| place(used).map(|(_, end)| end));
        match taken.ok().and_then(place) {
            Some((begin, _)) => start.wrapping_add(begin),
            None => std::ptr::null_mut(),
        }
    }

    /// Whether memory came from here.
    pub fn holds(&self, memory: *mut u8) -> bool {
        (memory as usize).wrapping_sub(self.memory.get() as usize) < BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_out_is_aligned_apart_and_ends() {
        static RESERVE: Reserve = Reserve::new();
        let layout = |size, align| Layout::from_size_align(size, align).unwrap();
        let mut end = 0;
        for (size, align) in [(1, 1), (8, 8), (3, 1), (4096, 4096), (1, 1), (64, 64)] {
            let memory = RESERVE.take(layout(size, align), User::Agent);
            assert!(RESERVE.holds(memory) && (memory as usize).is_multiple_of(align));
            assert!(memory as usize >= end);
            end = memory as usize + size;
        }
        let big = layout(BYTES - FOR_THE_HOST, 1);
        assert!(RESERVE.take(big, User::Agent).is_null(), "the rest is smaller");
        assert!(!RESERVE.take(big, User::Host).is_null(), "not for the host");
        assert!(RESERVE.take(layout(1, 1), User::Agent).is_null(), "the last part is the host's");
        assert!(!RESERVE.take(layout(1, 1), User::Host).is_null());
        assert!(RESERVE.take(layout(isize::MAX as usize, 1), User::Host).is_null());
        assert!(!RESERVE.holds(std::ptr::null_mut()));
    }
}
