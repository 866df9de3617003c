//! What the mappings say of calls that were cut short: where the C library's code is, in which alone they are made again, and whether the program
//! has rings of io_uring(7), with which they are not.

use crate::platform::maps::{Mapping, find};
use swipr_unwind::call_again::{note_library, note_rings};

/// As the kernel names a ring's memory.
const RING: &str = "anon_inode:[io_uring]";

/// Tells those who make calls again.
pub fn tell(maps: &[Mapping]) {
    // Functions of libc, and of libpthread where that is a file of its own (glibc before 2.34), that nobody puts others before.
    let of_library = [
        libc::gnu_get_libc_version as *const () as u64,
        libc::pthread_barrierattr_getpshared as *const () as u64,
    ];
    for (at, function) in of_library.into_iter().enumerate() {
        if let Some(code) = find(maps, function).filter(|mapping| is_the_librarys(mapping)) {
            note_library(at, code.low..code.high);
        }
    }
    if maps.iter().any(|mapping| mapping.path == RING) {
        note_rings();
    }
}

/// A program that is not position-independent may have a function's address in itself.
fn is_the_librarys(mapping: &Mapping) -> bool {
    let name = mapping.file_path().and_then(|path| path.rsplit('/').next()).unwrap_or("");
    mapping.executable
        && (name.starts_with("libc.") || name.starts_with("libc-") || name.starts_with("libpthread"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::maps;

    #[test]
    fn this_tests_c_library_is_found() {
        let maps = maps::read().expect("the mappings");
        let code = find(&maps, libc::gnu_get_libc_version as *const () as u64).expect("a mapping");
        assert!(is_the_librarys(code), "{code:?}");
        let own = find(&maps, tell as *const () as u64).expect("a mapping");
        assert!(own.executable && !is_the_librarys(own), "{own:?}");
    }
}
