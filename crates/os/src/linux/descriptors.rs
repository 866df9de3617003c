//! A descriptor table of the agent's own.
//!
//! A library that opens files in its host's table is seen: the host's next `open` gets another
//! number, its limit is reached earlier, `closefrom` and `dup2` destroy what the library opened,
//! and children inherit it. Linux shares the table between threads only as long as nobody asks
//! otherwise: close_range(2) with CLOSE_RANGE_UNSHARE (5.9) gives the calling thread an empty table
//! in one step, so that not one of the host's files is held open for even a moment. Threads that
//! this thread starts share its table.

use super::process;
use crate::own_threads;
use std::os::fd::{FromRawFd, OwnedFd};

/// Whether the calling thread now has a table of its own, with nothing in it but `/dev/null` as 0,
/// 1 and 2, so that no file of ours ever gets these numbers. On older kernels, and where a filter
/// refuses the call, the table stays the host's.
pub fn leave_hosts_table() -> bool {
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: closes descriptors of this thread's copy of the table only: with UNSHARE the copy is
    // made first.
    let left = unsafe {
        libc::syscall(libc::SYS_close_range, 0 as libc::c_uint, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE) == 0
    };
    if left {
        // The lowest free numbers: 0, 1, 2. Where there is no /dev/null, an event counter keeps the
        // place.
        for _ in 0..3 {
            // SAFETY: a C string; both calls only make a descriptor, in our own table.
            unsafe {
                if libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) < 0 {
                    libc::eventfd(0, libc::EFD_CLOEXEC);
                }
            }
        }
    }
    left
}

/// The host's descriptor 2, for a thread of the agent that has left the host's table; `None`: use
/// the number.
pub fn hosts_stderr() -> Option<OwnedFd> {
    if !own_threads::contains(process::tid()) {
        return None;
    }
    let flags = libc::O_WRONLY | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: plain system calls with valid arguments; what they return is a descriptor of ours or
    // an error.
    unsafe {
        let mut fd = libc::open(c"/proc/self/fd/2".as_ptr(), flags) as libc::c_long;
        if fd < 0 {
            // A socket cannot be opened by its name in /proc.
            let process = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0);
            fd = libc::syscall(libc::SYS_pidfd_getfd, process, libc::STDERR_FILENO, 0);
            libc::close(process as libc::c_int);
        }
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

/// How many descriptors a table may hold (RLIMIT_NOFILE, getrlimit(2)).
pub fn limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours to write.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if result == 0 { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 0 }
}
