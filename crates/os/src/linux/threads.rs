//! The process's threads: which there are, their names and CPU clocks, and
//! whether they are blocked (proc(5), clock_getcpuclockid(3)).

use super::directory::for_each_name;
use super::process::clock_ns;
use nix::sys::prctl;
use std::ffi::{CString, c_void};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::AssertUnwindSafe;

/// `/proc/self/task`, kept open.
#[derive(Debug)]
pub struct TaskDirectory {
    file: File,
}

impl TaskDirectory {
    /// Opens it; fails where /proc is not mounted, or shows another PID namespace's ids
    /// (pid_namespaces(7)), by which no thread can be found.
    pub fn open() -> io::Result<TaskDirectory> {
        let file = File::open("/proc/self/task")?;
        let own = std::fs::read_link("/proc/self").ok();
        match own.and_then(|own| own.to_str()?.parse::<u32>().ok()) {
            Some(pid) if pid != super::process::pid() => {
                Err(io::Error::other("/proc is another PID namespace's: mount the process's own there"))
            }
            _ => Ok(TaskDirectory { file }),
        }
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

/// The first function of the agent's threads.
extern "C" fn run(body: *mut c_void) -> *mut c_void {
    // SAFETY: what `start` gave away.
    let body = unsafe { Box::from_raw(body.cast::<Box<dyn FnOnce() + Send>>()) };
    // A panic must not unwind into the C library.
    let _ = std::panic::catch_unwind(AssertUnwindSafe(*body));
    std::ptr::null_mut()
}

/// Whether `routine` is the first function of the agent's threads.
pub fn is_ours(routine: usize) -> bool {
    routine == run as *const () as usize
}

/// Starts a detached thread. Not by the standard library: it registers thread-local data with the C
/// library, in memory of the host's malloc (`__cxa_thread_atexit_impl`). Each thread that enters
/// that malloc makes it reserve 64 MiB of addresses.
pub fn start(stack_bytes: usize, body: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let body: *mut Box<dyn FnOnce() + Send> = Box::into_raw(Box::new(body));
    // SAFETY: attributes are made before they are used and destroyed after; `run` has the signature
    // asked for.
    let error = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, stack_bytes);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = std::mem::zeroed();
        let error = libc::pthread_create(&mut thread, &attributes, run, body.cast());
        libc::pthread_attr_destroy(&mut attributes);
        error
    };
    if error != 0 {
        // SAFETY: there is no thread that could have taken it.
        drop(unsafe { Box::from_raw(body) });
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(())
}

/// Gives up a real-time priority, which a new thread inherits from its creator: what the agent
/// computes must not keep the host's threads from a CPU. A nice value stays.
pub fn reset_scheduling() {
    // SAFETY: no preconditions; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    if [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&policy) {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel reads `priority`.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &priority) };
    }
}

/// A slice for [`ask_for_slices`]: the thread runs soon after it wakes.
pub const SHORTEST_SLICE_NS: u64 = 100_000;

/// Asks for the calling thread to be run for so long at a time: a slice of its own for ordinary
/// threads (sched_setattr(2), `sched_runtime` of SCHED_OTHER since Linux 6.12). It gets no more CPU
/// time than others. Elsewhere nothing changes.
pub fn ask_for_slices(slice_ns: u64) {
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    // SAFETY: no preconditions; fails with -1, which is a valid nice value as well: then nothing is
    // lost either.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: slice_ns,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
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
    let stat = std::fs::read_to_string(file).unwrap_or_default();
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
    String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(name)).into_owned()
}

/// What a thread does with a signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalState {
    /// It has blocked it.
    pub is_blocked: bool,
    /// One that was sent to it has not been delivered.
    pub is_pending: bool,
    /// The seccomp state that restricts its system calls.
    pub sandbox: Sandbox,
    /// How many more signals may be queued for its user until half of `RLIMIT_SIGPENDING` is used;
    /// `None` where the kernel does not say.
    pub queue_room: Option<i64>,
}

/// The seccomp(2) state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// 0: none, 1: strict, 2: filters.
    mode: u32,
    /// How many filters; 0 also where the kernel does not say (before Linux 5.9).
    filters: u32,
}

impl Sandbox {
    /// Whether a thread may be allowed less than one in `other`. Filters are inherited and never
    /// taken away: a thread with as many filters as its process's other threads has the same ones.
    pub fn is_stricter_than(self, other: Sandbox) -> bool {
        self.filters > other.filters || self.mode != other.mode && self.mode != 0
    }
}

/// Of `SigQ`, "used/limit", see [`SignalState::queue_room`].
fn queue_room(queue: &str) -> Option<i64> {
    let (used, limit) = queue.trim().split_once('/')?;
    let (used, limit): (u64, u64) = (used.parse().ok()?, limit.parse().ok()?);
    if limit == 0 {
        return None; // a kernel that does not count, or refuses timers itself
    }
    i64::try_from(limit / 2).ok()?.checked_sub(i64::try_from(used).ok()?)
}

/// `SigBlk`, `SigPnd`, `SigQ` and `Seccomp` of a thread's status file (proc(5)).
pub fn signal_state(tid: u32) -> Option<SignalState> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).ok()?;
    let has = |name: &str| {
        let mask = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(u64::from_str_radix(mask.trim(), 16).ok()? >> (super::signals::SAMPLING - 1) & 1 == 1)
    };
    let number = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    let sandbox = Sandbox { mode: number("Seccomp:"), filters: number("Seccomp_filters:") };
    let queue_room = status.lines().find_map(|line| line.strip_prefix("SigQ:")).and_then(queue_room);
    Some(SignalState { is_blocked: has("SigBlk:")?, is_pending: has("SigPnd:")?, sandbox, queue_room })
}

/// What the kernel says a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Running or ready to run.
    Running,
    /// Blocked in the kernel, with its user-mode registers.
    Blocked {
        /// The system call; `None` for a page fault and the like.
        system_call: Option<u32>,
        /// The system call's first argument; 0 without one.
        first_argument: u64,
        /// Stack pointer.
        sp: u64,
        /// Program counter.
        pc: u64,
    },
    /// Ended, or about to.
    Gone,
}

/// A thread's `syscall` file, kept open.
#[derive(Debug)]
pub struct ActivityFile {
    file: File,
}

impl ActivityFile {
    /// Opens it. Refused when the process is not dumpable; missing on some sandboxed kernels.
    pub fn open(tid: u32) -> io::Result<ActivityFile> {
        Ok(ActivityFile { file: File::open(format!("/proc/self/task/{tid}/syscall"))? })
    }

    /// Reads it.
    pub fn read(&self) -> io::Result<Activity> {
        let mut buffer = [0u8; 256];
        let length = self.file.read_at(&mut buffer, 0)?;
        let text = buffer.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or("");
        parse(text).ok_or_else(|| io::Error::other("unknown content of a syscall file"))
    }
}

fn parse(text: &str) -> Option<Activity> {
    let text = text.trim_end();
    if text == "running" {
        return Some(Activity::Running);
    }
    let mut words = text.split(' ');
    let number: i64 = words.next()?.parse().ok()?;
    let mut from_end = words.rev().map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let (pc, sp) = (from_end.next()??, from_end.next()??);
    let first_argument = from_end.next_back().flatten().unwrap_or(0);
    if pc == 0 {
        return Some(Activity::Gone);
    }
    Some(Activity::Blocked { system_call: u32::try_from(number).ok(), first_argument, sp, pc })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn all_forms_of_the_syscall_file_are_understood() {
        assert_eq!(parse("running\n"), Some(Activity::Running));
        assert_eq!(
            parse("202 0x1 0x80 0x0 0x0 0x0 0x0 0x7ffd10 0x7f5a20\n"),
            Some(Activity::Blocked { system_call: Some(202), first_argument: 1, sp: 0x7ffd10, pc: 0x7f5a20 })
        );
        assert_eq!(
            parse("-1 0x7ffd10 0x7f5a20\n"),
            Some(Activity::Blocked { system_call: None, first_argument: 0, sp: 0x7ffd10, pc: 0x7f5a20 })
        );
        assert_eq!(parse("0 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0"), Some(Activity::Gone));
        for broken in ["", "walking", "1", "1 0x", "x 0x1 0x2", "1 1 2"] {
            assert_eq!(parse(broken), None, "{broken:?}");
        }
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

    #[test]
    fn half_of_the_signals_that_may_be_queued_are_left_to_others() {
        assert_eq!(queue_room("\t1/41"), Some(19));
        assert_eq!(queue_room("\t30/41"), Some(-10));
        assert_eq!(queue_room("\t0/18446744073709551615"), Some(i64::MAX));
        assert_eq!((queue_room("\t1"), queue_room("\t0/0")), (None, None));
    }

    #[test]
    fn a_sandbox_in_a_sandbox_is_stricter() {
        let sandbox = |mode, filters| Sandbox { mode, filters };
        assert!(sandbox(1, 0).is_stricter_than(sandbox(0, 0)));
        assert!(
            sandbox(2, 1).is_stricter_than(sandbox(0, 0)) && sandbox(2, 0).is_stricter_than(sandbox(0, 0))
        );
        assert!(sandbox(2, 2).is_stricter_than(sandbox(2, 1)));
        assert!(
            !sandbox(2, 1).is_stricter_than(sandbox(2, 1)) && !sandbox(0, 0).is_stricter_than(sandbox(2, 1))
        );
    }

    #[test]
    fn a_blocked_thread_tells_its_system_call_and_its_clock_stands_still() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(process::tid()).unwrap();
            let _ = receive.recv();
        });
        let tid = told.recv().unwrap();
        let file = ActivityFile::open(tid).unwrap();
        let blocked = (0..100_000).find_map(|_| match file.read().unwrap() {
            Activity::Blocked { system_call, .. } => system_call,
            _ => {
                std::thread::yield_now();
                None
            }
        });
        assert_eq!(blocked, Some(libc::SYS_futex as u32));
        assert_eq!(cpu_ns(tid), cpu_ns(tid));
        drop(send);
        thread.join().unwrap();
        assert_eq!((0..100_000).find(|_| cpu_ns(tid).is_none()).map(|_| ()), Some(()));
    }
}
