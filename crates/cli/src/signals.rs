//! Signals to this command, taken one by one instead of by handlers: which one ends it, and whether
//! the kernel sent it. Blocked from the start in all threads; programs that are started must be
//! given their own mask back ([`Signals::unblocked`]).

use crate::error::Error;
use crate::inherited::is_ignored;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// What ends a recording, or is handed on to the program.
const TAKEN: [i32; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCHLD];

/// How often a process without a shell looks whether it is in the foreground.
const ORPHANS_LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// From the terminal: the program in the foreground has had it as well.
    pub from_kernel: bool,
}

impl Signal {
    /// Whether it ends the command.
    pub fn ends(self) -> bool {
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&self.number)
    }
}

/// The signals of this process, as a queue.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    mask_before: libc::sigset_t,
}

impl Signals {
    /// To be called before any thread is started.
    pub fn take() -> Result<Signals, Error> {
        let what = |error| format!("cannot wait for signals: {error}");
        Signals::block().map_err(|error| Error::new(what(error), "look at this machine's limits (ulimit -a)"))
    }

    fn block() -> io::Result<Signals> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset(3) initialises the set; the numbers are valid; pthread_sigmask(3) and
        // signalfd(2) read the set, and the former writes `before`.
        let fd = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            // Of nohup(1): blocked, it would come all the same.
            for number in TAKEN.into_iter().filter(|&it| it != libc::SIGHUP || !is_ignored(it)) {
                libc::sigaddset(set.as_mut_ptr(), number);
            }
            if libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours; pthread_sigmask has written `before`.
        Ok(unsafe { Signals { fd: OwnedFd::from_raw_fd(fd), mask_before: before.assume_init() } })
    }

    /// The next signal, waiting at most so long for one.
    pub fn next(&self, timeout: Duration) -> Option<Signal> {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = timeout.as_millis().try_into().unwrap_or(i32::MAX);
        // SAFETY: one pollfd, which lives on this stack.
        if unsafe { libc::poll(&mut poll, 1, ms) } != 1 {
            return None;
        }
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes into the struct.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if got != size as isize {
            return None;
        }
        // SAFETY: the read was whole.
        let info = unsafe { info.assume_init() };
        Some(Signal { number: info.ssi_signo.cast_signed(), from_kernel: info.ssi_code == libc::SI_KERNEL })
    }

    /// The signal that ends the command, if one has come.
    pub fn ending(&self) -> Option<Signal> {
        std::iter::from_fn(|| self.next(Duration::ZERO)).find(|signal| signal.ends())
    }

    /// The command, started with the signal mask that this one was started with.
    pub fn unblocked<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let before = self.mask_before;
        let restore = move || {
            // SAFETY: the set was written by pthread_sigmask(3); null is where the old one would
            // go.
            match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) } {
                0 => Ok(()),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        };
        // SAFETY: the closure runs in the forked child and makes one system call, which takes no
        // lock and no memory.
        unsafe { command.pre_exec(restore) }
    }
}

/// Stops this process until it is continued, as Ctrl-Z does where the terminal is not raw.
pub fn suspend() {
    // SAFETY: raise(3) takes a value.
    unsafe { libc::raise(libc::SIGTSTP) };
}

/// Waits until this process is in the foreground of its terminal, stopped as the kernel would stop
/// it. Returns the signal that ends it meanwhile: timeout(1) has what it runs in the background.
pub fn wait_for_foreground(signals: &Signals) -> Option<Signal> {
    // SAFETY: take and return values.
    while unsafe { ![libc::getpgrp(), -1].contains(&libc::tcgetpgrp(libc::STDIN_FILENO)) } {
        // SAFETY: raise(3) takes a value.
        unsafe { libc::raise(libc::SIGTTOU) };
        // The kernel does not stop a group that nobody could continue.
        if let Some(signal) = signals.next(ORPHANS_LOOK_AGAIN).filter(|signal| signal.ends()) {
            return Some(signal);
        }
    }
    None
}

/// Runs `body`, which the kernel does not stop for setting the terminal in the background.
pub fn unstopped<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: signal(2) takes values.
    let before = unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
    let result = body();
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGTTOU, before) };
    result
}

/// Ends this process as `number` ended another: a shell above sees the same.
pub fn end_by(number: i32) -> ! {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: setrlimit(2), signal(3) and raise(3) take values and a struct on this stack; the set
    // is initialised before it is read.
    unsafe {
        // The program has left its core already.
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        libc::signal(number, libc::SIG_DFL);
        libc::raise(number);
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), number);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
    }
    // A signal that does not end processes by itself.
    std::process::exit(128 + number)
}
