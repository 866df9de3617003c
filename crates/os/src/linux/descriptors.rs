//! A descriptor table of the agent's own.
//!
//! A library that opens files in its host's table is seen: the host's next `open` gets another
//! number, its limit is reached earlier, `closefrom` and `dup2` destroy what the library opened,
//! and children inherit it. Linux shares the table between threads unless a thread unshares it.
//! close_range(2) with CLOSE_RANGE_UNSHARE (5.9) gives the calling thread an empty table in one
//! step, so that not one of the host's files is held open for even a moment. Threads that this
//! thread starts share its table.

use super::process;
use crate::own_threads;
use nix::fcntl::{OFlag, open};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::Mode;
use std::fs::File;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

/// Whether the calling thread now has a table of its own. It holds nothing but event counters as 0,
/// 1 and 2, so that no file of the agent's ever gets these numbers: they keep no file system. On
/// older kernels, and where a filter refuses the call, the table stays the host's.
pub fn unshare_fds() -> bool {
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: closes descriptors of this thread's copy of the table only: with UNSHARE the copy is
    // made first.
    let left = unsafe {
        libc::syscall(libc::SYS_close_range, 0 as libc::c_uint, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE) == 0
    };
    if left {
        // The lowest free numbers: 0, 1, 2. They stay open as long as the table.
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        (0..3).for_each(|_| _ = EventFd::from_flags(flags).map(|place| OwnedFd::from(place).into_raw_fd()));
    }
    left
}

/// The host's descriptor 2, for a thread of the agent that has left the host's table; `None`: use
/// the number.
pub fn hosts_stderr() -> Option<OwnedFd> {
    if !own_threads::contains(process::tid()) {
        return None;
    }
    let flags = OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let by_name = open(c"/proc/self/fd/2", flags, Mode::empty()).ok().map(File::from);
    // Lines in a file belong where the host writes next.
    let is_file = |file: &File| file.metadata().is_ok_and(|file| file.is_file());
    match by_name {
        Some(other) if !is_file(&other) => Some(other.into()),
        by_name => shared(libc::STDERR_FILENO).or(by_name.map(OwnedFd::from)),
    }
}

/// The host's descriptor, with the file's position. The kernel may refuse it
/// (pidfd_getfd(2)).
fn shared(fd: libc::c_int) -> Option<OwnedFd> {
    // SAFETY: plain system calls with valid arguments; they return a new descriptor or an error.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0);
        let fd = libc::syscall(libc::SYS_pidfd_getfd, process, fd, 0);
        libc::close(process as libc::c_int);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

/// How many descriptors a table may hold (RLIMIT_NOFILE, getrlimit(2)).
pub fn limit() -> usize {
    let (limit, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or_default();
    usize::try_from(limit).unwrap_or(usize::MAX)
}
