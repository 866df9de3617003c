//! The end of the terminal: its window was closed, or its connection is gone.

use crate::error::Error;
use crate::{signals, threads};
use std::io;

/// Ends the command when the terminal is gone: nothing is to be given back. crossterm (0.29) reads
/// from such a terminal for ever, so the thread that draws never sees the signal.
pub(super) fn watch() -> Result<(), Error> {
    threads::start(|| {
        let mut poll = libc::pollfd { fd: libc::STDOUT_FILENO, events: 0, revents: 0 };
        // SAFETY: one pollfd, which lives on this stack.
        while unsafe { libc::poll(&mut poll, 1, -1) } < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return;
            }
        }
        signals::end_by(libc::SIGHUP)
    })
}
