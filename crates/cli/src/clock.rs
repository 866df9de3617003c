//! Whether this command's clock is the kernel's.

use crate::error::{Error, Exit};
use std::time::Duration;

/// So far apart are two clocks that are not the same.
const APART: Duration = Duration::from_secs(1);

/// An error under libfaketime: the C library's clock has another time than the kernel's waits,
/// which would last for days.
pub fn expect_the_kernels() -> Result<(), Error> {
    let time = |read: &dyn Fn(*mut libc::timespec)| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        read(&raw mut time);
        Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
    };
    let clock = libc::CLOCK_MONOTONIC;
    // SAFETY: both write a timespec that is on this stack.
    let (kernels, own) = unsafe {
        (
            time(&|to| _ = libc::syscall(libc::SYS_clock_gettime, clock, to)),
            time(&|to| _ = libc::clock_gettime(clock, to)),
        )
    };
    if kernels.abs_diff(own) < APART {
        return Ok(());
    }
    let what = "the clock is not the kernel's: libfaketime is loaded into this command";
    Err(Error::new(what, "start it without; a program under libfaketime is not profiled")
        .exit(Exit::RunFailed))
}
