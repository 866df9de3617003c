//! Leaves the host's errno as it is.

/// Runs `body` and puts errno back to what it was.
pub fn kept<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: points to this thread's errno, always.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *place };
    let result = body();
    // SAFETY: as above.
    unsafe { *place = before };
    result
}
