//! The process's threads: which there are, their names and CPU clocks (proc(5),
//! clock_getcpuclockid(3)).

mod activity;
mod signal_state;
mod start;
mod switches;

pub use activity::{Activity, ActivityFile};
pub use signal_state::{Sandbox, SignalState, signal_state};
pub use start::{Body, SHORTEST_SLICE_NS, ask_for_slices, is_ours, reserve, reset_scheduling, start};
pub use switches::Switches;

use super::directory::for_each_name;
use super::process::clock_ns;
use nix::sys::prctl;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

const NO_PROC: &str = "there is no /proc: it is not mounted, or the program called chroot(2) where a seccomp \
                       filter refuses unshare(2)";

/// `/proc/self/task`, or another process's, kept open.
#[derive(Debug)]
pub struct TaskDirectory {
    file: File,
}

impl TaskDirectory {
    /// Opens it; fails where /proc is not mounted, or shows another PID namespace's ids
    /// (pid_namespaces(7)), by which no thread can be found.
    pub fn open() -> io::Result<TaskDirectory> {
        let file = File::open("/proc/self/task").map_err(|error| {
            io::Error::other(match error.kind() {
                io::ErrorKind::NotFound => NO_PROC.to_owned(),
                _ => format!("/proc/self/task: {error}"),
            })
        })?;
        let own = std::fs::read_link("/proc/self").ok();
        match own.and_then(|own| own.to_str()?.parse::<u32>().ok()) {
            Some(pid) if pid != super::process::pid() => {
                Err(io::Error::other("/proc is another PID namespace's: mount the process's own there"))
            }
            _ => Ok(TaskDirectory { file }),
        }
    }

    /// The same of another process, without these checks.
    pub fn of(pid: u32) -> io::Result<TaskDirectory> {
        File::open(format!("/proc/{pid}/task")).map(|file| TaskDirectory { file })
    }

    /// How many threads there are, without listing them: the directory's link count.
    pub fn count(&self) -> Option<u64> {
        self.file.metadata().ok()?.nlink().checked_sub(2)
    }

    /// The ids of all threads.
    pub fn list(&self, tids: &mut Vec<u32>) -> io::Result<()> {
        tids.clear();
        for_each_name(&self.file, |name| {
            tids.extend(std::str::from_utf8(name).ok().and_then(|name| name.parse::<u32>().ok()));
        })
    }
}

/// The CPU time a thread has used, nanoseconds; `None` when it is gone.
pub fn cpu_ns(tid: u32) -> Option<u64> {
    clock_ns(cpu_clock(tid))
}

/// The clock of a thread's CPU time: the kernel's encoding (clock_getcpuclockid(3),
/// CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED).
pub fn cpu_clock(tid: u32) -> libc::clockid_t {
    (!tid << 3 | 6) as libc::clockid_t
}

/// The clock of the kernel's ticks that found the thread in user mode (CPUCLOCK_VIRT).
pub fn user_clock(tid: u32) -> libc::clockid_t {
    cpu_clock(tid) ^ 2 ^ 1
}

/// The clock of the kernel's ticks that found the thread on a CPU (CPUCLOCK_PROF).
pub fn ticks_clock(tid: u32) -> libc::clockid_t {
    cpu_clock(tid) ^ 2
}

/// How many threads the process has, without opening a file: the link count of `/proc/self/task`
/// (proc(5)).
pub fn count() -> Option<u64> {
    std::fs::metadata("/proc/self/task").ok()?.nlink().checked_sub(2)
}

/// Names the calling thread (prctl(2), PR_SET_NAME).
pub fn set_name(name: &str) {
    let name = CString::new(name).unwrap_or_default();
    // Of which the kernel takes the first 15 bytes.
    let _ = prctl::set_name(&name);
}

/// Whether the first thread has ended while others still run: its state is Z (proc(5)).
pub fn first_has_ended() -> bool {
    is_in_state("/proc/self/stat", 'Z')
}

/// Whether a thread runs or is ready to. Known also of a process that is not dumpable.
pub fn is_awake(tid: u32) -> bool {
    is_in_state(&format!("/proc/self/task/{tid}/stat"), 'R')
}

fn is_in_state(file: &str, state: char) -> bool {
    let stat = super::process::read_text(file).unwrap_or_default();
    // The name, in parentheses, may contain anything.
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(state))
}

/// A thread's name; not trusted. Empty when the thread is gone.
pub fn name(tid: u32) -> String {
    let mut buffer = [0u8; 64];
    let length = File::open(format!("/proc/self/task/{tid}/comm"))
        .and_then(|file| file.read_at(&mut buffer, 0))
        .unwrap_or(0);
    let name = buffer.get(..length).unwrap_or(&[]);
    text_of_name(name.strip_suffix(b"\n").unwrap_or(name))
}

/// A thread's name as text. The kernel cuts it after 15 bytes: part of a character is left out.
pub fn text_of_name(bytes: &[u8]) -> String {
    let whole = match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    };
    String::from_utf8_lossy(whole).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn a_name_that_the_kernel_has_cut_ends_with_a_whole_character() {
        assert_eq!(text_of_name(&"ünï-cödé-nöme".as_bytes()[..15]), "ünï-cödé-n");
        assert_eq!(text_of_name(b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn our_own_thread_is_listed_counted_and_has_a_clock() {
        let directory = TaskDirectory::open().unwrap();
        let mut tids = vec![];
        directory.list(&mut tids).unwrap();
        assert!(tids.contains(&process::tid()));
        assert!(directory.count().unwrap() >= 1);
        assert!(cpu_ns(process::tid()).unwrap() > 0);
        let state = signal_state(process::tid()).unwrap();
        assert!(!state.is_blocked && !state.is_pending);
        assert!(!name(process::tid()).is_empty());
    }
}
