//! `SWIPR_FOLLOW=none`: programs that this process executes are not to load the library. So its
//! name is removed from the list that the next program's loader reads, in the environment.
//! Everything else there stays.
//!
//! Done in the constructor, where the program has one thread. The text is changed in place, which
//! needs no memory of the host's.

use profiler::for_library::config::AUTOSTART;
use std::ffi::{CStr, c_char};
use swipr_os::this_library::is_this_library;

unsafe extern "C" {
    /// The environment of this process (environ(7)).
    static mut environ: *mut *mut c_char;
}

/// Removes the library's name from LD_PRELOAD, and turns SWIPR_AUTOSTART off, by which a library
/// that /etc/ld.so.preload loads starts.
pub fn strip() {
    // SAFETY: the C library's variable; nothing else runs yet.
    let mut place = unsafe { environ };
    while !place.is_null() {
        // SAFETY: an array that ends with null.
        let entry = unsafe { *place };
        if entry.is_null() {
            return;
        }
        // SAFETY: a C string, in memory of the process that it may write to (execve(2) put it on
        // the stack).
        let text = unsafe { CStr::from_ptr(entry) }.to_bytes();
        if let Some(changed) = without_us(text) {
            // SAFETY: not longer than what is there.
            unsafe {
                entry.cast::<u8>().copy_from_nonoverlapping(changed.as_ptr(), changed.len());
                *entry.add(changed.len()) = 0;
            }
        }
        // SAFETY: this entry was not the last.
        place = unsafe { place.add(1) };
    }
}

/// The entry without this library; `None`: it stays as it is. Never longer.
fn without_us(entry: &[u8]) -> Option<Vec<u8>> {
    let at = entry.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (entry.get(..at)?, entry.get(at + 1..)?);
    let changed = match name {
        b"LD_PRELOAD" => {
            let others = value.split(|byte| b": ".contains(byte)).filter(|path| !is_this_library(path));
            others.collect::<Vec<_>>().join(&b':')
        }
        name if name == AUTOSTART.as_bytes() && !value.is_empty() => b"0".to_vec(),
        _ => return None,
    };
    Some([name, b"=", &changed].concat()).filter(|changed| changed != entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_name_goes() {
        let changed =
            |entry: &str| without_us(entry.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(changed("LD_PRELOAD=/a/libswipr.so").as_deref(), Some("LD_PRELOAD="));
        assert_eq!(changed("LD_PRELOAD=/a/libswipr.so b.so:c.so").as_deref(), Some("LD_PRELOAD=b.so:c.so"));
        assert_eq!(changed("SWIPR_AUTOSTART=1").as_deref(), Some("SWIPR_AUTOSTART=0"));
        for other in ["LD_PRELOAD=b.so:c.so", "PATH=/libswipr.so", "LD_PRELOAD", "", "SWIPR_AUTOSTART=0"] {
            assert_eq!(changed(other), None, "{other}");
        }
    }
}
