//! Linkers' names: the readable form of any of them is found soon, is not too long, and is the same
//! each time.

use swipr_symbols::demangle::demangle;

/// Longest readable form.
const MAX_BYTES: usize = 16 * 1024;

/// See the module's text.
pub fn check(bytes: &[u8]) {
    let name = String::from_utf8_lossy(bytes);
    for name in [name.as_ref(), &format!("_Z{name}"), &format!("_R{name}")] {
        let readable = demangle(name);
        assert!(readable.as_ref().is_none_or(|readable| readable.len() <= MAX_BYTES));
    }
}
