//! Where the C library's code is.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering::*};

/// What is known of one file: the first address and that behind the last; nothing, while the second is zero.
struct Code {
    start: AtomicU64,
    end: AtomicU64,
}

/// libc, and libpthread where it is a file of its own (glibc before 2.34).
static LIBRARY: [Code; 2] = [const { Code { start: AtomicU64::new(0), end: AtomicU64::new(0) } }; 2];

/// See [`super::note_library`]. Such code stays where it is: what is noted again is the same.
pub fn note(at: usize, code: Range<u64>) {
    if let Some(place) = LIBRARY.get(at) {
        place.start.store(code.start, Relaxed);
        place.end.store(code.end, Release);
    }
}

/// Whether an address is in it.
pub fn has(address: u64) -> bool {
    LIBRARY.iter().any(|code| {
        let end = code.end.load(Acquire);
        (code.start.load(Relaxed)..end).contains(&address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_noted_is_the_librarys() {
        assert!(!has(0x7000));
        note(0, 0x7000..0x8000);
        note(1, 0x2000..0x3000);
        note(2, 0..u64::MAX);
        assert_eq!([0x6fff, 0x7000, 0x7fff, 0x8000, 0x2000].map(has), [false, true, true, false, true]);
    }
}
