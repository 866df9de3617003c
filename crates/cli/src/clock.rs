//! Whether this command's clock is the kernel's.

use crate::error::{Error, Exit};
use std::time::Duration;

/// Readings of one clock are never so far apart.
const APART: Duration = Duration::from_secs(1);

/// An error under libfaketime: the C library's clock has another time than the kernel's waits,
/// which would last for days.
pub fn refuse_faked() -> Result<(), Error> {
    let mut kernels = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut librarys = kernels;
    // SAFETY: both write a timespec that is on this stack.
    unsafe {
        libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut kernels);
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut librarys);
    }
    let apart = kernels.tv_sec.abs_diff(librarys.tv_sec);
    if Duration::from_secs(apart) <= APART {
        return Ok(());
    }
    let what = "the clock is not the kernel's: libfaketime is loaded into this command";
    Err(Error::new(what, "start it without; the program itself may run under libfaketime")
        .exit(Exit::RunFailed))
}
