//! Fault injection for tests: `SWIPR_TEST_FAULT` says which fault. Not in released libraries.
//!
//! `memory:N`: the heap refuses everything from its Nth call on. `panic:NAME`: the thread of that
//! name panics in a recording, after its first samples (`server`: at a request for `/status`).
//! `imports`: the agent's calls go where the loader has bound them, to the program's functions of
//! the same names as well: so it may be slow to start, and have another time of day.

use std::ffi::{CStr, c_char};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The variable, read once.
fn wanted() -> &'static str {
    static TEXT: OnceLock<([u8; 64], usize)> = OnceLock::new();
    let (bytes, length) = TEXT.get_or_init(|| {
        let mut text = [0; 64];
        let mut length = 0;
        if let Some(found) = value_of_variable() {
            length = found.len().min(text.len());
            text[..length].copy_from_slice(&found[..length]);
        }
        (text, length)
    });
    std::str::from_utf8(&bytes[..*length]).unwrap_or_default()
}

/// Without a function of the C library, for which the program may have one of its own.
fn value_of_variable() -> Option<&'static [u8]> {
    unsafe extern "C" {
        /// The environment of this process (environ(7)).
        static environ: *const *const c_char;
    }
    // SAFETY: an array of C strings that ends with null, or null; read before the program runs.
    let entry = |at| unsafe { environ.as_ref().and_then(|_| environ.add(at).read().as_ref()) };
    let mut entries = (0..).map_while(entry);
    // SAFETY: as above.
    entries.find_map(|entry| unsafe { CStr::from_ptr(entry) }.to_bytes().strip_prefix(b"SWIPR_TEST_FAULT="))
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
