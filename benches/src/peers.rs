//! Other ways to take a stack in a signal handler: libgcc (through the `backtrace` crate),
//! framehop, libunwind, and the whole handlers of pprof-rs and gperftools. Shared libraries take
//! part where they are installed.
//!
//! They may allocate, lock and use kilobytes of stack on their first call: call [`warm_up`] before.

mod buffer;
mod framehop;
mod gperftools;
mod library;
mod libunwind;
mod pprof;

pub use buffer::{Buffer, CAPACITY};
pub use framehop::Framehop;
pub use gperftools::hold_handler as hold_gperftools_handler;
pub use libunwind::Libunwind;
pub use pprof::hold_handler as hold_pprof_handler;

use std::sync::OnceLock;

static LIBUNWIND: OnceLock<Option<Libunwind>> = OnceLock::new();

/// libunwind, if it was found by [`warm_up`].
pub fn libunwind() -> Option<&'static Libunwind> {
    LIBUNWIND.get()?.as_ref()
}

/// Loads what there is and calls each once. Not in a signal handler.
pub fn warm_up() {
    LIBUNWIND.get_or_init(libunwind::load);
    let mut frames = [0; 64];
    by_backtrace_crate(&mut frames);
    if let Some(libunwind) = libunwind() {
        libunwind.backtrace(&mut frames);
    }
}

/// Disarms one of the process's interval timers.
fn stop_timer(timer: libc::c_int) {
    // SAFETY: plain data, zero means disarmed; the old value is not asked for.
    unsafe { libc::setitimer(timer, &std::mem::zeroed(), std::ptr::null_mut()) };
}

/// The calling thread's stack by the `backtrace` crate, that is by `_Unwind_Backtrace`; returns the
/// number of frames. The handler's own frames come first.
#[inline(never)]
pub fn by_backtrace_crate(frames: &mut [u64]) -> usize {
    let mut places = frames.iter_mut();
    let mut count = 0;
    // SAFETY: each thread walks its own stack only; with libgcc nothing is shared that needs the
    // crate's lock.
    unsafe {
        backtrace::trace_unsynchronized(|frame| match places.next() {
            Some(place) => {
                *place = frame.ip() as u64;
                count += 1;
                true
            }
            None => false,
        });
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backtrace_crate_sees_its_caller() {
        let mut frames = vec![0; 256];
        let count = by_backtrace_crate(&mut frames);
        assert!(count > 3, "{count} frames");
        let here = the_backtrace_crate_sees_its_caller as *const () as u64;
        assert!(frames[..count].iter().any(|&frame| frame.wrapping_sub(here) < 4096));
    }
}
