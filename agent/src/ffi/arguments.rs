//! Panics, pointers and texts between C and Rust.

use super::{
    SWIPR_ALREADY_RUNNING, SWIPR_CANNOT_LISTEN, SWIPR_FAILED, SWIPR_INVALID_ARGUMENT, SWIPR_NOT_RUNNING,
    SWIPR_OK, SWIPR_RECORDING_FAILED, swipr_status,
};
use crate::last_error::{self, LastError};
use profiler::for_library::lifecycle;
use std::ffi::{CStr, c_char};
use std::fmt::Write;
use swipr_os::{disabled, host_thread};

/// The longest path (PATH_MAX), and longer than any other text.
const MAX_TEXT_BYTES: usize = 4096;

pub(super) struct Failure(pub swipr_status, pub String);

impl From<lifecycle::LifeError> for Failure {
    fn from(error: lifecycle::LifeError) -> Failure {
        let status = match &error {
            lifecycle::LifeError::AlreadyRunning => SWIPR_ALREADY_RUNNING,
            lifecycle::LifeError::NotRunning => SWIPR_NOT_RUNNING,
            lifecycle::LifeError::Listen(_) => SWIPR_CANNOT_LISTEN,
            lifecycle::LifeError::Recording(_) => SWIPR_RECORDING_FAILED,
            lifecycle::LifeError::Failed(_) => SWIPR_FAILED,
        };
        Failure(status, error.to_string())
    }
}

pub(super) fn invalid(text: impl Into<String>) -> Failure {
    Failure(SWIPR_INVALID_ARGUMENT, text.into())
}

/// The one panic boundary, closed once the agent is off: there may be no memory for more. Keeps
/// errno.
pub(super) fn boundary(body: impl FnOnce() -> Result<(), Failure>) -> swipr_status {
    match disabled::reason() {
        Some(reason) => {
            let mut text = LastError::empty();
            let _ = write!(text, "the agent has turned itself off: {reason}");
            host_thread::kept(|| last_error::set(text.as_str()));
            SWIPR_FAILED
        }
        None => panic_boundary(body),
    }
}

/// The same for what ends something: that goes also when the agent is off.
pub(super) fn panic_boundary(body: impl FnOnce() -> Result<(), Failure>) -> swipr_status {
    host_thread::kept(|| {
        let failed = || Failure(SWIPR_FAILED, disabled::message().unwrap_or_default());
        match disabled::contained(body).unwrap_or_else(|| Err(failed())) {
            Ok(()) => SWIPR_OK,
            Err(Failure(status, text)) => {
                last_error::set(&text);
                status
            }
        }
    })
}

/// Copies `text` and a NUL, as much as fits; the length of the whole text.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` bytes.
pub(super) unsafe fn copy_text(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    if !buffer.is_null() && capacity > 0 {
        let length = text.len().min(capacity - 1);
        // SAFETY: `length` + 1 bytes fit, as the caller says.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), length);
            *buffer.add(length) = 0;
        }
    }
    text.len()
}

/// # Safety
/// `text` is NULL or a C string.
pub(super) unsafe fn required<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid(format!("{name} is NULL")));
    }
    // SAFETY: not NULL, so a C string.
    let text = unsafe { CStr::from_ptr(text) };
    // What we copy on a thread of the host must fit into the last of the memory.
    if text.count_bytes() > MAX_TEXT_BYTES {
        return Err(invalid(format!("{name} has more than {MAX_TEXT_BYTES} bytes")));
    }
    text.to_str().map_err(|_| invalid(format!("{name} is not UTF-8")))
}

/// The same where NULL means the default.
///
/// # Safety
/// `text` is NULL or a C string.
pub(super) unsafe fn optional<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    // SAFETY: the caller's contract.
    (!text.is_null()).then(|| unsafe { required(text, name) }).transpose()
}

/// No version has options as large as this.
const MAX_OPTIONS_BYTES: usize = 256;

/// The options at that address, unless it is NULL. `T` is a C struct whose first field is its size.
///
/// Fields of a later version are refused unless they are 0, which means the default.
///
/// # Safety
/// `options` is NULL or points to a `size_t`, and to as many bytes as that says if there may be so
/// many.
pub(super) unsafe fn sized<'a, T>(options: *const T, name: &str) -> Result<Option<&'a T>, Failure> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, so there is a size.
    let size = unsafe { *options.cast::<usize>() };
    let least = size_of::<T>();
    if size < least {
        return Err(invalid(format!("options->size is {size}, but must be sizeof({name}) = {least}")));
    }
    if size > MAX_OPTIONS_BYTES {
        return Err(invalid(format!("options->size is {size}: {name} was not initialized")));
    }
    // SAFETY: the caller's contract.
    let later = unsafe { std::slice::from_raw_parts(options.cast::<u8>().add(least), size - least) };
    if later.iter().any(|&byte| byte != 0) {
        return Err(invalid(format!("{name} has fields that this version of the library does not know")));
    }
    // SAFETY: at least of this size, so a `T`.
    Ok(Some(unsafe { &*options }))
}
