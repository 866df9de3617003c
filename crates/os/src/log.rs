//! The agent's own lines on stderr: none, unless they are asked for.
//!
//! A line is one `write(2)` to descriptor 2, past std's lock (a thread of the host
//! may hold it, or may have held it when the process forked). Not here: what is
//! worth a line; the results of recordings, which never go to stderr.

use crate::descriptors;
use crate::text::Text;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::write;
use std::fmt::{Display, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A line is cut at this many bytes. Below `PIPE_BUF`, so that a pipe that has room
/// at all takes it whole and at once (pipe(7)).
const LINE_BYTES: usize = 1024;

/// Whether lines are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Log {
    /// Write nothing (`SWIPR_LOG` unset).
    #[default]
    Off,
    /// Write to stderr (`SWIPR_LOG=1`).
    Stderr,
}

/// What the agent's configuration says, for callers that do not have it.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Whether lines are wanted, as was last [kept](Log::keep).
pub fn wanted() -> Log {
    if WANTED.load(Relaxed) { Log::Stderr } else { Log::Off }
}

impl Log {
    /// Remembers this for [`wanted`].
    pub fn keep(self) {
        WANTED.store(self == Log::Stderr, Relaxed);
    }

    /// Writes one line if lines are wanted. Never waits; not async-signal-safe.
    pub fn line(self, text: impl Display) {
        match self {
            Log::Off => {}
            Log::Stderr => write_line(&text),
        }
    }
}

/// Writes one line whatever `SWIPR_LOG` says: for what a variable asks for and does not get.
/// Never waits or allocates; not async-signal-safe.
pub fn always(text: impl Display) {
    write_line(&text);
}

fn write_line(text: &dyn Display) {
    let line = compose(std::process::id(), text);
    let line = line.as_str().as_bytes();
    match descriptors::hosts_stderr() {
        Some(stderr) => write_once(stderr.as_fd(), line),
        None => write_once(std::io::stderr().as_fd(), line),
    }
}

/// `swipr[pid]: text` as one line without control characters.
fn compose(pid: u32, text: &dyn Display) -> Text<LINE_BYTES> {
    let mut line = Text::empty();
    // An error says that it is cut.
    let _ = write!(line, "swipr[{pid}]: {text}");
    line.end_line();
    line
}

/// One write, if the descriptor takes it now. A reader that is gone must not
/// kill the host by SIGPIPE, and one that is stuck must not make it wait.
fn write_once(fd: BorrowedFd<'_>, line: &[u8]) {
    let mut one = [PollFd::new(fd, PollFlags::POLLOUT)];
    let has_room = |one: &PollFd<'_>| one.revents().is_some_and(|events| events.contains(PollFlags::POLLOUT));
    if poll(&mut one, PollTimeout::ZERO) != Ok(1) || !one.iter().all(has_room) {
        return;
    }
    let Some(guard) = PipeSignal::hold() else {
        return;
    };
    let _ = write(fd, line);
    drop(guard);
}

/// SIGPIPE is held back for this thread while one of these lives, and one that
/// came meanwhile is taken back. write(2) sends it to the calling thread only.
struct PipeSignal {
    only_pipe: libc::sigset_t,
    mask_before: libc::sigset_t,
    pending_before: bool,
}

impl PipeSignal {
    fn hold() -> Option<PipeSignal> {
        // SAFETY: sigset_t is plain data, and all three sets are initialised by
        // sigemptyset, sigpending and pthread_sigmask before anything reads them.
        unsafe {
            let mut only_pipe: libc::sigset_t = std::mem::zeroed();
            let mut mask_before: libc::sigset_t = std::mem::zeroed();
            let mut pending: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut only_pipe);
            libc::sigaddset(&mut only_pipe, libc::SIGPIPE);
            libc::sigpending(&mut pending);
            if libc::pthread_sigmask(libc::SIG_BLOCK, &only_pipe, &mut mask_before) != 0 {
                return None;
            }
            Some(PipeSignal {
                only_pipe,
                mask_before,
                pending_before: libc::sigismember(&pending, libc::SIGPIPE) == 1,
            })
        }
    }
}

impl Drop for PipeSignal {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both sets were initialised in `hold`; sigtimedwait(2) accepts a
        // null siginfo; a zero timeout returns at once.
        unsafe {
            if !self.pending_before {
                libc::sigtimedwait(&self.only_pipe, std::ptr::null_mut(), &at_once);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.mask_before, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_pid_and_no_control_characters() {
        let line = compose(42, &"cannot bind /tmp/a\nb\u{1b}[31m");
        assert_eq!(line.as_str(), "swipr[42]: cannot bind /tmp/a b [31m\n");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let line = compose(1, &"ä".repeat(LINE_BYTES));
        assert!(line.as_str().ends_with("ä\n"));
    }

    #[test]
    fn a_pipe_whose_reader_is_gone_leaves_no_signal_behind() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        drop(reader);
        // With the default action (test programs ignore SIGPIPE) the line below
        // would end the process, were the signal not held back.
        // SAFETY: sets a disposition; no handler is involved.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        write_once(writer.as_fd(), b"nobody reads this\n");
        // SAFETY: puts back what was there.
        unsafe { libc::signal(libc::SIGPIPE, before) };
    }
}
