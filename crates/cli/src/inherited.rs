//! What this command was started with and is changed before `main`: standard streams that are
//! closed, and SIGPIPE where it is ignored, by Rust's runtime; SIGCHLD where it is ignored, here.
//! The kernel keeps no status of a child then, and nothing tells its end. A program that is started
//! gets them as they were.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

const STREAMS: [i32; 3] = [libc::STDIN_FILENO, libc::STDOUT_FILENO, libc::STDERR_FILENO];
const SIGNALS: [i32; 2] = [libc::SIGPIPE, libc::SIGCHLD];

/// A bit for each stream that was closed, and then for each signal that was ignored.
static FOUND: AtomicU8 = AtomicU8::new(0);

ctor::declarative::ctor! {
    // SAFETY: makes system calls only.
    #[ctor(unsafe)]
    fn look() {
        let mut found = 0;
        for fd in STREAMS {
            // SAFETY: fcntl(2) with F_GETFD takes no pointer.
            found |= if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 { 1 << fd } else { 0 };
        }
        for (at, signal) in SIGNALS.into_iter().enumerate() {
            found |= if is_ignored(signal) { 1 << (STREAMS.len() + at) } else { 0 };
        }
        // SAFETY: takes values only.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        FOUND.store(found, Relaxed);
    }
}

/// Whether the signal is ignored now.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: zeros are a valid sigaction, to which the kernel writes.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action);
        action.sa_sigaction == libc::SIG_IGN
    }
}

/// The command, started with what this one was started with.
pub fn handed_on(command: &mut Command) -> &mut Command {
    let found = FOUND.load(Relaxed);
    let restore = move || {
        for fd in STREAMS.into_iter().filter(|fd| found >> fd & 1 == 1) {
            // SAFETY: in the child, where only the program itself is to use it.
            unsafe { libc::close(fd) };
        }
        for (_, signal) in (STREAMS.len()..).zip(SIGNALS).filter(|(at, _)| found >> at & 1 == 1) {
            // SAFETY: takes values only.
            unsafe { libc::signal(signal, libc::SIG_IGN) };
        }
        io::Result::Ok(())
    };
    // SAFETY: the closure runs in the forked child and makes system calls that take no lock and no
    // memory.
    unsafe { command.pre_exec(restore) }
}
