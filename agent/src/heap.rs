//! The shared library's own heap.
//!
//! The agent never enters the host's malloc: it may not be initialised yet, may be instrumented, or may be the
//! very thing that is broken. dlmalloc gets its memory from mmap.
//!
//! When there is no memory left, Rust's standard library would abort the process. So the agent turns itself off, and
//! what it still needs to say so comes from a reserve. A thread of the agent that needs more than that ends
//! on the spot: it holds its locks for ever, which is why nobody waits for one without a bound (`locks.rs`). A thread
//! of the host cannot be ended; what the agent does on one needs a few KiB, and the last of the reserve is theirs.

mod reserve;

use crate::platform::process;
use crate::{agent_threads, off};
use dlmalloc::GlobalDlmalloc;
use reserve::{RESERVE, User};
use std::alloc::{GlobalAlloc, Layout};

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// Memory of dlmalloc's, or from the reserve where it has none.
fn or_reserved(memory: *mut u8, layout: Layout) -> *mut u8 {
    if !memory.is_null() {
        return memory;
    }
    off::turn(format_args!("there is no memory: {} bytes were refused", layout.size()));
    let is_ours = agent_threads::contains(process::tid());
    let reserved = RESERVE.take(layout, if is_ours { User::Agent } else { User::Host });
    if reserved.is_null() && is_ours {
        agent_threads::end_this_one();
    }
    reserved
}

/// dlmalloc's turn; in a build for tests it may have to fail.
fn may_give() -> bool {
    #[cfg(feature = "fault-injection")]
    return crate::injected::heap_works();
    #[cfg(not(feature = "fault-injection"))]
    true
}

// SAFETY: memory is dlmalloc's or the reserve's, and goes back where it came from; the reserve's is zeroed, aligned
// and given out once.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = match may_give() {
            // SAFETY: the caller's contract.
            true => unsafe { GlobalDlmalloc.alloc(layout) },
            false => std::ptr::null_mut(),
        };
        or_reserved(memory, layout)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !RESERVE.holds(memory) {
            // SAFETY: the caller's contract; not the reserve's, so dlmalloc's.
            unsafe { GlobalDlmalloc.dealloc(memory, layout) }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let memory = match may_give() {
            // SAFETY: the caller's contract.
            true => unsafe { GlobalDlmalloc.alloc_zeroed(layout) },
            false => std::ptr::null_mut(),
        };
        or_reserved(memory, layout)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if may_give() && !RESERVE.holds(memory) {
            // SAFETY: the caller's contract; not the reserve's, so dlmalloc's.
            let moved = unsafe { GlobalDlmalloc.realloc(memory, layout, new_size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's contract: the size is not 0 and, rounded up to the alignment, fits.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both have so many bytes, and they are different; the old memory is the caller's to give back.
            unsafe {
                std::ptr::copy_nonoverlapping(memory, new, layout.size().min(new_size));
                self.dealloc(memory, layout);
            }
        }
        new
    }
}

/// Makes the heap usable in forked children. Before any other fork handler of ours is
/// registered, so that those may use the heap.
pub fn prepare_for_fork() {
    // SAFETY: called once, from the constructor, while this is the only user of the heap.
    unsafe { dlmalloc::enable_alloc_after_fork() }
}
