//! The shared library's own heap.
//!
//! The agent never enters the host's malloc: it may not be initialised yet, may be instrumented, or
//! may be the very thing that is broken. dlmalloc gets pages of its own (`source.rs`).
//!
//! When there is no memory left, Rust's standard library would abort the process. So the agent
//! turns itself off, and what it still needs to report that comes from a reserve. A thread of the
//! agent that needs more than that ends on the spot. It holds its locks for ever, so no thread
//! waits for one without a bound (`locks.rs`). A thread of the host cannot be ended. What the agent
//! does on one needs a few KiB, and the last part of the reserve is kept for that.

mod lock;
mod reserve;
mod source;

use dlmalloc::Dlmalloc;
use profiler::for_library::agent_threads;
use reserve::{RESERVE, User};
use source::HeapSource;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use swipr_os::process;
use swipr_os::{disabled, own_threads};

/// What the shared library makes its `#[global_allocator]`.
pub struct Heap(UnsafeCell<Dlmalloc<HeapSource>>);

// SAFETY: reached through `Heap::locked` only, by one thread at a time.
unsafe impl Sync for Heap {}

impl Heap {
    /// An empty one.
    pub const fn new() -> Heap {
        Heap(UnsafeCell::new(Dlmalloc::new_with_allocator(HeapSource)))
    }

    /// What dlmalloc does. `None`: it cannot be reached any more.
    fn locked<T>(&self, body: impl FnOnce(&mut Dlmalloc<HeapSource>) -> T) -> Option<T> {
        let _held = lock::hold()?;
        // SAFETY: the lock is held, and nothing in dlmalloc comes back here.
        Some(body(unsafe { &mut *self.0.get() }))
    }
}

/// Memory of dlmalloc's, or from the reserve where it has none.
fn or_reserved(memory: *mut u8, layout: Layout) -> *mut u8 {
    if !memory.is_null() {
        return memory;
    }
    disabled::disable(format_args!("there is no memory: {} bytes were refused", layout.size()));
    let is_ours = own_threads::contains(process::tid());
    let reserved = RESERVE.take(layout, if is_ours { User::Agent } else { User::Host });
    if reserved.is_null() && is_ours {
        agent_threads::exit_thread();
    }
    reserved
}

/// dlmalloc's turn; in a build for tests it may have to fail.
fn may_give() -> bool {
    #[cfg(feature = "fault-injection")]
    return profiler::for_library::injected::heap_works();
    #[cfg(not(feature = "fault-injection"))]
    true
}

// SAFETY: memory is dlmalloc's or the reserve's, and goes back where it came from; the reserve's is
// zeroed, aligned and given out once.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = match may_give() {
            // SAFETY: the caller's contract.
            true => self.locked(|heap| unsafe { heap.malloc(layout.size(), layout.align()) }),
            false => None,
        };
        or_reserved(memory.unwrap_or(std::ptr::null_mut()), layout)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if !RESERVE.holds(memory) {
            // SAFETY: the caller's contract; not the reserve's, so dlmalloc's.
            self.locked(|heap| unsafe { heap.free(memory, layout.size(), layout.align()) });
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let memory = match may_give() {
            // SAFETY: the caller's contract.
            true => self.locked(|heap| unsafe { heap.calloc(layout.size(), layout.align()) }),
            false => None,
        };
        or_reserved(memory.unwrap_or(std::ptr::null_mut()), layout)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if may_give() && !RESERVE.holds(memory) {
            // SAFETY: the caller's contract; not the reserve's, so dlmalloc's.
            let realloc = |heap: &mut Dlmalloc<HeapSource>| unsafe {
                heap.realloc(memory, layout.size(), layout.align(), new_size)
            };
            if let Some(moved) = self.locked(realloc).filter(|moved| !moved.is_null()) {
                return moved;
            }
        }
        // SAFETY: the caller's contract: the size is not 0 and, rounded up to the alignment, fits.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both have so many bytes, and they are different; the old memory is the
            // caller's to give back.
            unsafe {
                std::ptr::copy_nonoverlapping(memory, new, layout.size().min(new_size));
                self.dealloc(memory, layout);
            }
        }
        new
    }
}

/// Makes the heap usable in forked children. To be called before any other fork handler of the
/// agent is registered, so that those may use the heap.
pub fn prepare_for_fork() {
    lock::watch_forks();
}

/// Whether the heap can be used: not in children of a child that no fork handler has seen.
pub fn is_there() -> bool {
    lock::hold().is_some()
}
