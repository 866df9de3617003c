//! The file that this code is in: the preloaded library, as a rule.

use std::ffi::{CStr, OsStr, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a path names the library, whatever the folder: by its usual name and any version, or by
/// the name that its file has here.
pub fn is_this_library(path: &[u8]) -> bool {
    let Some(name) = file_name(path) else { return false };
    name.starts_with(b"libswipr") || own_path().and_then(|own| file_name(own.to_bytes())) == Some(name)
}

fn file_name(path: &[u8]) -> Option<&[u8]> {
    Path::new(OsStr::from_bytes(path)).file_name().map(OsStr::as_bytes)
}

/// As the loader has it.
fn own_path() -> Option<&'static CStr> {
    let found = object_of(own_path as *const c_void)?;
    // SAFETY: null, or the loader's text, which stays as long as the library.
    (!found.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(found.dli_fname) })
}

/// Has the loader keep this file until the process ends, also if a plugin that it is a part of is
/// unloaded: the agent's threads and signal handler stay.
pub fn keep_loaded() {
    let is_plugin = !is_of_program(keep_loaded as *const c_void);
    if let Some(path) = own_path().filter(|_| is_plugin) {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: a C string. The file is there: no code of it is run.
        unsafe { libc::dlopen(path.as_ptr(), flags) };
    }
}

/// Whether this is an address in the file that this code is in.
pub fn has(address: *const c_void) -> bool {
    are_together(address, has as *const c_void)
}

/// Whether this is an address in the executable.
pub fn is_of_program(address: *const c_void) -> bool {
    // SAFETY: no preconditions.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as *const c_void;
    are_together(address, headers)
}

fn are_together(one: *const c_void, other: *const c_void) -> bool {
    let base = |address: *const c_void| object_of(address).map(|found| found.dli_fbase);
    base(one).is_some_and(|found| base(other) == Some(found))
}

/// What the loader says of an address (dladdr(3)).
fn object_of(address: *const c_void) -> Option<libc::Dl_info> {
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be asked for; the information is written if the answer is not 0.
    unsafe { (libc::dladdr(address, found.as_mut_ptr()) != 0).then(|| found.assume_init()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_known_by_the_usual_name_and_by_its_own() {
        let own = std::env::current_exe().unwrap();
        let own = Path::new("/elsewhere").join(own.file_name().unwrap());
        for path in ["libswipr.so".as_ref(), "/a/libswipr.so.0".as_ref(), own.as_path()] {
            assert!(is_this_library(path.as_os_str().as_bytes()), "{path:?}");
        }
        for other in ["", "/", "/libswipr.so.d/x.so", "libjemalloc.so.2"] {
            assert!(!is_this_library(other.as_bytes()), "{other}");
        }
    }
}
