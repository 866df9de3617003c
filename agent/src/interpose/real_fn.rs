//! Functions of the C library that the preloaded library interposes: the next of that name, which
//! would have been called without this library.
//!
//! They may be called before the constructor, after fork, in a signal handler and with any lock
//! held. So each is looked up when the library is loaded, and later calls do not enter the dynamic
//! linker.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::*};
use swipr_os::host_thread;

/// The next function of a name behind this library.
#[derive(Debug)]
pub struct RealFn {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl RealFn {
    /// Not looked up yet.
    pub const fn new(name: &'static CStr) -> RealFn {
        RealFn { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Null: there is none.
    pub fn get(&self) -> *mut c_void {
        let known = self.found.load(Acquire);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a C string; the answer is null or the address of the function.
        let found = host_thread::kept(|| unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) });
        self.found.store(found, Release);
        found
    }
}
