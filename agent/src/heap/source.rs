//! Where the heap has its memory from.

use dlmalloc::Allocator;
use swipr_os::memory;

/// Pages of the operating system, apart from the host's.
#[derive(Debug)]
pub struct HeapSource;

// SAFETY: pages that nobody else has, until they are given back.
unsafe impl Allocator for HeapSource {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        memory::map(size).map_or((std::ptr::null_mut(), 0, 0), |memory| (memory, size, 0))
    }

    fn remap(&self, memory: *mut u8, old_size: usize, new_size: usize, _can_move: bool) -> *mut u8 {
        // What grows is copied: dlmalloc has no mapping for one piece alone.
        let is_done = new_size <= old_size && self.free_part(memory, old_size, new_size);
        if is_done { memory } else { std::ptr::null_mut() }
    }

    fn free_part(&self, memory: *mut u8, old_size: usize, new_size: usize) -> bool {
        // SAFETY: the end of what is the heap's, which it gives back.
        unsafe { memory::unmap(memory.wrapping_add(new_size), old_size - new_size) }
    }

    fn free(&self, memory: *mut u8, size: usize) -> bool {
        // SAFETY: the heap's, which it gives back.
        unsafe { memory::unmap(memory, size) }
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}
