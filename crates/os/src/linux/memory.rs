//! Memory of the agent's own, apart from the host's.
//!
//! A host may unmap memory and map it again at the same place. One that has a single thread, as far
//! as it knows, relies on nothing else having been mapped there meanwhile. It may map over what it
//! finds (`MAP_FIXED`), and the agent's memory would be gone without an error. So the agent's
//! memory is not where the kernel puts mappings without an address, but in a part of the address
//! space far below. The address is a hint (mmap(2)): where something is already, the kernel puts
//! the memory elsewhere. The stacks of the agent's threads are not there: the C library maps them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Distance from the library's data to that part: more than most hosts map, and less than what lies
/// below, with sanitizers and on aarch64 (39 bits), too. The place stays as random as the kernel
/// made it.
const DISTANCE: usize = 1 << 38;
/// Length of that part. Addresses are used from its beginning to its end, and then again from its
/// beginning: unmapped places are not looked for.
const LENGTH: usize = 1 << 36;
/// Offset in it of the next mapping.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory, of whole pages. `None`: there is none.
pub fn map(bytes: usize) -> Option<*mut u8> {
    map_with(bytes, 0)
}

/// As [`map`], with MAP_NORESERVE: only what is written to counts as committed memory.
pub fn map_forever(bytes: usize) -> Option<*mut u8> {
    map_with(bytes, libc::MAP_NORESERVE)
}

fn map_with(bytes: usize, flags: libc::c_int) -> Option<*mut u8> {
    // SAFETY: a new private mapping; nothing that is there already is replaced.
    let memory = unsafe {
        libc::mmap(
            place_for(bytes, (&raw const NEXT).addr()),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
            -1,
            0,
        )
    };
    (memory != libc::MAP_FAILED).then_some(memory.cast())
}

/// The address for a mapping, from `here`, an address in the library's data. Null: the kernel may
/// choose, because that part would lie where addresses are scarce: where brk(2) gets its memory, or
/// what code reaches with 32 bits.
fn place_for(bytes: usize, here: usize) -> *mut c_void {
    const LARGEST_PAGE: usize = 1 << 16;
    let pages = bytes.next_multiple_of(LARGEST_PAGE);
    match (here & !(LARGEST_PAGE - 1)).checked_sub(DISTANCE) {
        Some(start) if start >= LENGTH => {
            std::ptr::without_provenance_mut(start + NEXT.fetch_add(pages, Relaxed) % LENGTH)
        }
        _ => std::ptr::null_mut(),
    }
}

/// Gives pages back.
///
/// # Safety
/// They are of [`map`], and nothing uses them.
pub unsafe fn unmap(memory: *mut u8, bytes: usize) -> bool {
    // SAFETY: the caller's contract.
    unsafe { libc::munmap(memory.cast(), bytes) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1 << 17;

    #[test]
    fn memory_lies_apart_and_side_by_side_as_long_as_nobody_else_is_there() {
        let here = (&raw const NEXT).addr();
        let places: Vec<usize> = (0..4).filter_map(|_| map(BYTES)).map(|memory| memory.addr()).collect();
        assert_eq!(places.len(), 4);
        for &place in &places {
            let distance = here.abs_diff(place);
            assert!((DISTANCE - LENGTH..=DISTANCE + (1 << 16)).contains(&distance), "{distance:x}");
            // SAFETY: mapped above.
            assert!(unsafe { unmap(std::ptr::with_exposed_provenance_mut(place), BYTES) });
        }
    }

    #[test]
    fn low_addresses_are_not_for_us() {
        assert!(place_for(BYTES, 0x40_0000).is_null(), "a program at fixed addresses");
        assert!(place_for(BYTES, DISTANCE + 0x3e6_0000).is_null(), "right above it");
        assert!(place_for(BYTES, DISTANCE + LENGTH).addr() >= LENGTH);
    }
}
