//! This process: its ids, name, clocks and end.

use super::this_library::is_this_library;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::stat::lstat;
use nix::time::ClockId;
use nix::unistd::{self, Pid};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

/// This process's id, from the kernel each time (it changes at fork).
pub fn pid() -> u32 {
    std::process::id()
}

/// How long a regular file is, whose path ends in a 0. Makes one system call and nothing else.
pub fn file_bytes(path: &[u8]) -> Option<u64> {
    let about = lstat(CStr::from_bytes_until_nul(path).ok()?).ok()?;
    let is_file = about.st_mode & libc::S_IFMT == libc::S_IFREG;
    u64::try_from(about.st_size).ok().filter(|_| is_file)
}

/// The parent's process id.
pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Whether there is no process of that id.
pub fn is_gone(pid: u32) -> bool {
    kill(Pid::from_raw(pid.cast_signed()), None) == Err(Errno::ESRCH)
}

/// The program's name: its file's, or the one it was started by, where a file has several (Debian's
/// redis-server is redis-check-rdb's file) and the kernel has recorded the same.
pub fn name(executable: &str) -> String {
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let started_by = called(&command, &super::threads::name(pid()));
    let file = executable.rsplit('/').next().unwrap_or_default();
    started_by.unwrap_or_else(|| file.to_owned())
}

/// Whether the parent has an agent of its own, as far as its mappings can be read.
pub fn has_profiled_parent() -> bool {
    std::fs::read(format!("/proc/{}/maps", parent()))
        .is_ok_and(|maps| maps.split(|&byte| byte == b'\n').any(is_this_library))
}

/// Whether the parent was started with `NAME=value` in its environment.
pub fn has_parent_with(entry: &[u8]) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", parent())).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|other| other == entry)
}

/// The longest name that the kernel records. Longer ones are cut to this.
const LONGEST_NOTED: usize = 15;

/// The name in a command line that the kernel has recorded, too. The program may have overwritten
/// the line with anything: nginx's is `nginx: master process nginx -c /etc/nginx.conf`.
fn called(command: &[u8], noted: &str) -> Option<String> {
    let first = command.split(|&byte| byte == 0).next()?;
    let word = |text: &[u8]| Some(text.split(|&byte| byte == b' ').next()?.to_vec());
    let file = |text: &[u8]| Some(text.rsplit(|&byte| byte == b'/').next()?.to_vec());
    // A title may have paths after its first word, and a folder spaces in its name.
    let names = [word(first).and_then(|word| file(&word)), file(first).and_then(|file| word(&file))];
    let is_noted = |name: &String| match noted.len() {
        0 => false,
        LONGEST_NOTED.. => name.starts_with(noted),
        _ => name == noted,
    };
    names.into_iter().flatten().filter_map(|name| String::from_utf8(name).ok()).find(is_noted)
}

/// The user that the process acts as, by the kernel: fakeroot(1) has a geteuid(2) of its own.
pub fn user() -> u32 {
    // SAFETY: it takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_geteuid) as u32 }
}

/// The calling thread's id.
pub fn tid() -> u32 {
    unistd::gettid().as_raw().cast_unsigned()
}

/// The kernel's links to the executable's file, which still work when the file was deleted
/// (proc(5)). The second is for a process whose first thread has ended, see [`open_own`].
pub const EXECUTABLE_LINKS: [&str; 2] = ["/proc/self/exe", "/proc/thread-self/exe"];

/// Opens a file of the process, such as `mem`, in `/proc/self`. That is the first thread's
/// directory, whose files are empty once that thread has ended. Then the file is the calling
/// thread's own (new in Linux 3.17). Not that one in any case: if a thread's own files were opened
/// in `/proc` and it is the last thread to exit, the kernel lets the parent's waitpid(2) spin until
/// they are forgotten, for 2 to 8 ms of CPU time on a busy machine.
pub fn open_own(name: &str) -> io::Result<File> {
    let directory = if super::threads::first_has_ended() { "thread-self" } else { "self" };
    File::open(format!("/proc/{directory}/{name}"))
}

/// The text of a small file in `/proc`. Such files say that they are empty, and
/// `std::fs::read_to_string` begins with 32 bytes then.
pub fn read_text(path: &str) -> io::Result<String> {
    let mut text = String::with_capacity(4 << 10);
    File::open(path)?.take(u64::MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The path of the executable, which may have been deleted; empty if it cannot be read.
pub fn executable() -> String {
    let path = EXECUTABLE_LINKS.iter().find_map(|link| std::fs::read_link(link).ok()).unwrap_or_default();
    let path = path.to_string_lossy();
    path.strip_suffix(super::maps::DELETED).unwrap_or(&path).to_owned()
}

/// The emulator that runs the program, as qemu-x86_64 on another processor. It answers in place of
/// the kernel when the program asks for its executable by the usual name.
pub fn emulator() -> Option<PathBuf> {
    let [named, real] = ["/proc/self/exe", "/proc/self/./exe"].map(std::fs::read_link);
    real.ok().filter(|real| named.is_ok_and(|named| named != *real))
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// Nanoseconds since the epoch.
pub fn epoch_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// How far the time of day was from CLOCK_MONOTONIC at one moment. Times that it converts never go
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochClock {
    epoch_minus_monotonic: u64,
}

impl EpochClock {
    /// As it is now.
    pub fn now() -> EpochClock {
        let monotonic = monotonic_ns();
        EpochClock { epoch_minus_monotonic: epoch_ns().wrapping_sub(monotonic) }
    }

    /// Nanoseconds since the epoch.
    pub fn epoch(self, monotonic_ns: u64) -> u64 {
        monotonic_ns.wrapping_add(self.epoch_minus_monotonic)
    }

    /// The monotonic time again.
    pub fn monotonic(self, epoch_ns: u64) -> u64 {
        epoch_ns.wrapping_sub(self.epoch_minus_monotonic)
    }
}

/// How long the calling thread has run.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0))
}

/// The time of a clock; `None` when there is no such clock (any more).
pub fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let time = ClockId::from_raw(clock).now().ok()?;
    Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// Ends the calling thread at once, without running anything of it. Its locks stay locked.
pub fn end_thread() -> ! {
    loop {
        // SAFETY: exit(2) ends this thread only.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// The kernel's version, 5.10 as (5, 10); (0, 0): it does not say.
pub fn kernel_version() -> (u32, u32) {
    // SAFETY: plain data, which the kernel writes.
    let release = unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut names);
        names.release
    };
    let text = release.iter().map(|&byte| char::from(byte as u8)).collect::<String>();
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next()).unwrap_or_default()
}

/// Sleeps, without the locks that std::thread may take for a thread that it did not start.
pub fn sleep(time: std::time::Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // SAFETY: the time is valid; the remaining time is not wanted.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

/// Whether the calling thread, and so threads that it starts, may read clocks without the kernel
/// (prctl(2), PR_GET_TSC). The agent's threads could not run otherwise.
pub fn may_read_clocks() -> bool {
    let mut found: libc::c_int = libc::PR_TSC_ENABLE;
    // SAFETY: an int is written to `found`.
    unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut found) };
    found != libc::PR_TSC_SIGSEGV
}

/// Whether the program has more rights than its user (setuid; getauxval(3), AT_SECURE).
pub fn is_privileged() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Reports to the handler what the processor and the kernel let programs read.
pub fn probe_memory_access() {
    #[cfg(target_arch = "x86_64")]
    {
        const FSGSBASE: libc::c_ulong = 1 << 1; // HWCAP2_FSGSBASE of Linux' asm/hwcap2.h
        // SAFETY: no preconditions.
        let processor = unsafe { libc::getauxval(libc::AT_HWCAP2) };
        swipr_unwind::arch::set_base_is_readable(processor & FSGSBASE != 0);
    }
}

/// exit(3) with status 0, as the last thread of a process does.
pub fn exit_successfully() -> ! {
    // SAFETY: ends the process; runs the host's exit handlers as its last thread would have.
    unsafe { libc::exit(0) }
}

/// Ends the process with the status of its first thread, which has ended: a waiting parent gets the
/// status that it would get without other threads.
pub fn exit_as_first_thread() -> ! {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // proc_pid_stat(5): the last field is the status as waitpid(2) gives it.
    let status = stat.trim_end().rsplit(' ').next().and_then(|status| status.parse().ok()).unwrap_or(0);
    if libc::WIFSIGNALED(status) {
        // SAFETY: integers; the thread that a signal ended had its default action.
        unsafe { libc::kill(pid().cast_signed(), libc::WTERMSIG(status)) };
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(libc::WEXITSTATUS(status)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_as_it_was_started() {
        let called = |command: &str, noted| called(command.as_bytes(), noted);
        let redis = || Some("redis-server".to_owned());
        assert_eq!(called("/usr/bin/redis-server\0--port\0", "redis-server"), redis());
        assert_eq!(called("redis-server *:6379\0", "redis-server"), redis());
        assert_eq!(called("redis-server unixsocket:/run/a.sock\0", "redis-server"), redis());
        assert_eq!(called("/opt/a folder/redis-server\0", "redis-server"), redis());
        let long = "a-name-of-more-bytes";
        assert_eq!(called(long, &long[..15]).as_deref(), Some(long));
        assert_eq!(called("", ""), None);
        let executable = executable();
        assert_eq!(Some(name(&executable).as_str()), executable.rsplit('/').next());
    }

    /// Regression: nginx was called `nginx.conf`, and its workers `nginx:`.
    #[test]
    fn a_title_is_no_name() {
        for title in ["nginx: master process nginx -c /etc/nginx.conf", "nginx: worker process"] {
            assert_eq!(called(title.as_bytes(), "nginx"), None, "{title}");
        }
    }
}
