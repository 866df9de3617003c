//! The shared library's own heap.
//!
//! The agent never enters the host's malloc: it may not be initialised yet, may be instrumented, or may be the
//! very thing that is broken. dlmalloc gets its memory from mmap. When there is no memory left, Rust's
//! standard library would abort the process; a thread of the agent ends itself instead, and the host goes
//! on unprofiled.

use crate::agent_threads;
use crate::platform::process;
use dlmalloc::GlobalDlmalloc;
use std::alloc::{GlobalAlloc, Layout};

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// The agent's threads do not survive the end of memory.
fn checked(memory: *mut u8) -> *mut u8 {
    if memory.is_null() && agent_threads::contains(process::tid()) {
        process::end_thread();
    }
    memory
}

// SAFETY: all calls go to dlmalloc; `checked` changes nothing or does not return.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        checked(unsafe { GlobalDlmalloc.alloc(layout) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { GlobalDlmalloc.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        checked(unsafe { GlobalDlmalloc.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's contract.
        checked(unsafe { GlobalDlmalloc.realloc(memory, layout, new_size) })
    }
}

/// Makes the heap usable in forked children. Before any other fork handler of ours is
/// registered, so that those may use the heap.
pub fn prepare_for_fork() {
    // SAFETY: called once, from the constructor, while this is the only user of the heap.
    unsafe { dlmalloc::enable_alloc_after_fork() }
}
