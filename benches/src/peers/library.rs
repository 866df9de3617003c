//! Shared libraries that are used where they are installed.

use std::ffi::{CStr, c_void};

/// A loaded library. It stays loaded.
pub(super) struct Library(*mut c_void);

impl Library {
    /// Loads a library by name; `None`: it is not installed.
    pub(super) fn open(name: &CStr) -> Option<Library> {
        // SAFETY: a C string; the constructors of the libraries that are named here have no
        // preconditions.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// The address of a symbol.
    pub(super) fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a handle from dlopen and a C string.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }
}
