//! Fault injection for tests: `SWIPR_TEST_FAULT` says which fault. Not in released libraries.
//!
//! `memory:N`: the heap refuses everything from its Nth call on. `panic:NAME`: the thread of that
//! name panics in a recording, after its first samples (`server`: at a request for `/status`).
//! `imports`: the agent's calls go where the loader has bound them, to the program's functions of
//! the same names as well: so it may be slow to start, and have another time of day.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The variable, read once.
fn wanted() -> &'static str {
    static TEXT: OnceLock<([u8; 64], usize)> = OnceLock::new();
    let (bytes, length) = TEXT.get_or_init(|| {
        let mut text = [0; 64];
        let mut length = 0;
        // SAFETY: a C string; the answer is null or a C string of the environment, read before the
        // program runs.
        let found = unsafe { libc::getenv(c"SWIPR_TEST_FAULT".as_ptr()) };
        if !found.is_null() {
            // SAFETY: a C string, as getenv(3) says.
            let found = unsafe { std::ffi::CStr::from_ptr(found) }.to_bytes();
            length = found.len().min(text.len());
            text[..length].copy_from_slice(&found[..length]);
        }
        (text, length)
    });
    std::str::from_utf8(&bytes[..*length]).unwrap_or_default()
}

/// Whether the heap has anything to give.
pub fn heap_works() -> bool {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let last = wanted().strip_prefix("memory:").and_then(|number| number.parse::<u64>().ok());
    last.is_none_or(|last| CALLS.fetch_add(1, Relaxed) < last)
}

/// Whether the agent's calls are to go to the C library.
pub fn binds_imports() -> bool {
    wanted() != "imports"
}

/// Panics where the thread of that name is to.
pub fn may_panic(name: &str) {
    if wanted().strip_prefix("panic:") == Some(name) {
        panic!("as the test wants it");
    }
}
