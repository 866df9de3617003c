//! The agent's own lines on stderr: none, unless they are asked for.
//!
//! A line is one `write(2)` to descriptor 2, past std's lock (a thread of the host
//! may hold it, or may have held it when the process forked), and only if that is the file
//! that it was at the start: a daemon closes it, and the next file that it opens has the
//! number. Not here: what is worth a line; the results of recordings, which never go to stderr.

use crate::descriptors;
use crate::text::Text;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use nix::unistd::write;
use std::fmt::{Display, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
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

/// Device and inode of descriptor 2 at the start; `None`: it was closed.
static STDERR: OnceLock<Option<(u64, u64)>> = OnceLock::new();

/// Notes which file the host's stderr is, once. To be called on a thread of the host.
pub fn find_stderr() {
    STDERR.get_or_init(|| file_of(std::io::stderr().as_fd()));
}

fn file_of(fd: BorrowedFd<'_>) -> Option<(u64, u64)> {
    fstat(fd).ok().map(|about| (about.st_dev, about.st_ino))
}

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

/// One write, if the descriptor takes it now. A reader that is gone, or a file that is full, must
/// not kill the host by a signal, and a reader that is stuck must not make it wait.
fn write_once(fd: BorrowedFd<'_>, line: &[u8]) {
    if STDERR.get().is_some_and(|noted| noted.is_none() || *noted != file_of(fd)) {
        return;
    }
    let mut one = [PollFd::new(fd, PollFlags::POLLOUT)];
    let has_room = |one: &PollFd<'_>| one.revents().is_some_and(|events| events.contains(PollFlags::POLLOUT));
    if poll(&mut one, PollTimeout::ZERO) != Ok(1) || !one.iter().all(has_room) {
        return;
    }
    let Some(guard) = HeldSignals::hold() else {
        return;
    };
    let _ = write(fd, line);
    drop(guard);
}

/// The signals that write(2) sends to the calling thread: nobody reads a pipe any more, or a file
/// is as large as it may be (`RLIMIT_FSIZE`).
const OF_WRITES: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// These signals are held back for this thread while one of these lives, and those that came
/// meanwhile are taken back.
struct HeldSignals {
    mask_before: libc::sigset_t,
    /// Those that were not pending before.
    taken_back: libc::sigset_t,
}

impl HeldSignals {
    fn hold() -> Option<HeldSignals> {
        // SAFETY: sigset_t is plain data, and all sets are initialised by sigemptyset, sigpending
        // and pthread_sigmask before anything reads them.
        unsafe {
            let [mut held, mut taken_back, mut pending, mut mask_before]: [libc::sigset_t; 4] =
                std::mem::zeroed();
            libc::sigemptyset(&mut held);
            libc::sigemptyset(&mut taken_back);
            libc::sigpending(&mut pending);
            for signal in OF_WRITES {
                libc::sigaddset(&mut held, signal);
                if libc::sigismember(&pending, signal) == 0 {
                    libc::sigaddset(&mut taken_back, signal);
                }
            }
            let is_held = libc::pthread_sigmask(libc::SIG_BLOCK, &held, &mut mask_before) == 0;
            is_held.then_some(HeldSignals { mask_before, taken_back })
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: both sets were initialised in `hold`; sigtimedwait(2) accepts a null siginfo; a
        // zero timeout returns at once.
        unsafe {
            // One write sends one signal.
            libc::sigtimedwait(&self.taken_back, std::ptr::null_mut(), &at_once);
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

    /// Regression: `SWIPR_OUTPUT` ended a program whose files may not grow, as it wrote the reason.
    #[test]
    fn a_signal_of_a_write_is_taken_back_unless_it_was_pending() {
        let raised = || {
            // SAFETY: sends a signal to this thread.
            unsafe { libc::raise(libc::SIGXFSZ) };
        };
        let is_pending = || {
            // SAFETY: sigset_t is plain data; sigpending(2) writes it.
            unsafe {
                let mut pending: libc::sigset_t = std::mem::zeroed();
                libc::sigpending(&mut pending);
                libc::sigismember(&pending, libc::SIGXFSZ) == 1
            }
        };
        let held = HeldSignals::hold().unwrap();
        raised();
        assert!(is_pending());
        drop(HeldSignals::hold().unwrap());
        assert!(is_pending(), "it is not of this write");
        drop(held);
        assert!(!is_pending());
    }
}
