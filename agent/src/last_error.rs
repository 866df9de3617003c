//! The text of each thread's last error, for `swipr_last_error`.
//!
//! Thread-specific data of the C library (pthread_key_create(3)), and a page for each thread that
//! has had an error. Not static TLS: that is taken from the stack of every thread of the host, and
//! a thread with 16 KiB of stack died of it. Not the heap: the error may be that there is no
//! memory.

use profiler::for_library::signal_exclusion;
use std::ffi::c_void;
use std::sync::OnceLock;
use swipr_os::memory;
use swipr_os::text::Text;

/// What is kept: as much as fits.
pub type LastError = Text<1024>;

const BYTES: usize = size_of::<LastError>();

fn key() -> Option<libc::pthread_key_t> {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    *KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is ours to write; the destructor stays where it is: the library cannot be
        // unloaded.
        (unsafe { libc::pthread_key_create(&mut key, Some(thread_ended)) } == 0).then_some(key)
    })
}

unsafe extern "C" fn thread_ended(kept: *mut c_void) {
    // In a sandbox the call may not be allowed.
    if !signal_exclusion::is_in_sandbox() {
        // SAFETY: what `set` mapped for this thread, which is at its end.
        unsafe { libc::munmap(kept, BYTES) };
    }
}

/// Keeps the calling thread's last error. Without a page or a key there is none.
pub fn set(text: &str) {
    let Some(key) = key() else { return };
    // SAFETY: the key was made.
    let mut kept = unsafe { libc::pthread_getspecific(key) };
    if kept.is_null() {
        kept = memory::map(BYTES).map_or(std::ptr::null_mut(), <*mut u8>::cast);
        // SAFETY: the key was made.
        if kept.is_null() || unsafe { libc::pthread_setspecific(key, kept) } != 0 {
            return;
        }
    }
    // SAFETY: a page of this thread's own, which has nothing that would have to be dropped.
    unsafe { kept.cast::<LastError>().write(Text::from(text)) };
}

/// Calls `body` with the calling thread's last error; empty: there was none.
pub fn with<T>(body: impl FnOnce(&str) -> T) -> T {
    // SAFETY: the key was made.
    let kept = key().map_or(std::ptr::null_mut(), |key| unsafe { libc::pthread_getspecific(key) });
    // SAFETY: null, or what `set` has written; nothing else refers to it while this thread is here.
    body(unsafe { kept.cast::<LastError>().as_ref() }.map_or("", LastError::as_str))
}
