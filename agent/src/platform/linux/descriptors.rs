//! A descriptor table of the agent's own.
//!
//! A library that opens files in its host's table is seen: the host's next `open` gets another number,
//! its limit is reached earlier, `closefrom` and `dup2` destroy what the library
//! opened, and children inherit it. Linux shares the table between threads only
//! as long as nobody asks otherwise: close_range(2) with CLOSE_RANGE_UNSHARE (5.9) gives the calling
//! thread an empty table in one step, so that not one of the host's files
//! is held open for even a moment. Threads that this thread starts share its table.

/// Whether the calling thread now has a table of its own, with nothing in it but
/// what the host had as 0, 1 and 2 (kept so that no file of ours ever gets these numbers,
/// and for the log line). On older kernels, and where a filter refuses the
/// call, the table stays the host's.
pub fn leave_hosts_table() -> bool {
    const CLOSE_RANGE_UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: closes descriptors of this thread's copy of the table only: with UNSHARE the copy is made first.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, CLOSE_RANGE_UNSHARE) == 0
    }
}

/// How many descriptors a table may hold (RLIMIT_NOFILE, getrlimit(2)).
pub fn limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours to write.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    if result == 0 { usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX) } else { 0 }
}
