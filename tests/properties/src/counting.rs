//! How much memory a thread has: an allocator for tests.
//!
//! ```text
//! #[global_allocator]
//! static HEAP: Counting = Counting;
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most of them at a time.
    static HELD: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, counting by thread.
#[derive(Clone, Copy, Debug)]
pub struct Counting;

// SAFETY: the system's allocator does all of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

fn count(bytes: isize) {
    // A thread that ends frees what it had without being counted.
    let _ = HELD.try_with(|held| {
        let now = held.get().0 + bytes;
        held.set((now, held.get().1.max(now)));
    });
}

/// What this thread holds now, and the most that it has held at a time since [`forget_most`].
pub fn held_bytes() -> (isize, isize) {
    HELD.get()
}

/// The most starts again at what is held now.
pub fn forget_most() {
    HELD.set((HELD.get().0, HELD.get().0));
}
