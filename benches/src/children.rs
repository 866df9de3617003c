//! Programs that are started to be measured: what they cost, what memory is theirs, how often their
//! threads woke.

use std::fs::read_to_string;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use swipr_os::process;

/// How long a child may take to get ready.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What one run of a program took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// From before it was started until after it was reaped, microseconds.
    pub wall_us: f64,
    /// User and system time of the process, microseconds.
    pub cpu_us: f64,
}

/// A command without this process's environment, its output discarded, with this library preloaded.
pub fn command(program: &str, library: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> io::Result<Cost> {
    let started = Instant::now();
    let child = command.spawn()?;
    let mut status = 0;
    // SAFETY: plain data, written by the call.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: our own child, which nobody else waits for; both places are ours.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut usage) };
    let wall = started.elapsed();
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    if status != 0 {
        return Err(io::Error::other(format!("{command:?} ended with status {status}")));
    }
    let us = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    Ok(Cost { wall_us: wall.as_nanos() as f64 / 1e3, cpu_us: us(usage.ru_utime) + us(usage.ru_stime) })
}

/// A child that runs until this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts it.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        Ok(Running { child: command.spawn()? })
    }

    /// The child itself.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    fn process(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.child.id()))
    }

    /// Waits until `path` exists and all threads of the child sleep.
    pub fn wait_until_idle(&self, path: Option<&Path>) -> io::Result<()> {
        let started = Instant::now();
        while !(path.is_none_or(Path::exists) && self.all_sleep()) {
            if started.elapsed() > TIMEOUT {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the child did not get ready"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn all_sleep(&self) -> bool {
        // The program itself must have started: before, it is still this one's copy.
        let own = std::fs::read_link("/proc/self/exe").ok();
        let started = std::fs::read_link(self.process().join("exe")).is_ok_and(|path| Some(path) != own);
        let sleeps = |status: &str| field(status, "State:").is_some_and(|state| state.starts_with('S'));
        started && self.threads().iter().all(|(_, status)| sleeps(status))
    }

    /// Ids and status texts of the threads.
    fn threads(&self) -> Vec<(u32, String)> {
        let entries = std::fs::read_dir(self.process().join("task")).into_iter().flatten().flatten();
        let status = |path: PathBuf| read_to_string(path.join("status")).ok();
        let tid = |path: &Path| path.file_name()?.to_str()?.parse().ok();
        entries.filter_map(|entry| Some((tid(&entry.path())?, status(entry.path())?))).collect()
    }

    /// Memory that no other process has: written pages, and pages of files that no other process
    /// maps, KiB.
    pub fn private_kib(&self) -> io::Result<(u64, u64)> {
        let text = read_to_string(self.process().join("smaps_rollup"))?;
        let kib = |name| field(&text, name).and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
        Ok((kib("Private_Dirty:").unwrap_or(0), kib("Private_Clean:").unwrap_or(0)))
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        // The clock of another process: linux/posix-timers_types.h, CPUCLOCK_SCHED without the bit
        // for a thread.
        process::clock_ns((!(self.child.id() as i32) << 3) | 2).unwrap_or(0)
    }

    /// CPU time of its threads of this name, nanoseconds.
    pub fn cpu_ns_of(&self, name: &str) -> u64 {
        let named = self.threads().into_iter().filter(|(_, status)| field(status, "Name:") == Some(name));
        let text = |tid| read_to_string(self.process().join(format!("task/{tid}/schedstat"))).ok();
        named.filter_map(|(tid, _)| text(tid)?.split(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Whether there is a thread of this name.
    pub fn has_thread(&self, name: &str) -> bool {
        self.threads().iter().any(|(_, status)| field(status, "Name:") == Some(name))
    }

    /// How often threads other than the first one went to sleep or were put off, and how many there
    /// are.
    pub fn switches_of_others(&self) -> (u64, usize) {
        let others = self.threads().into_iter().filter(|&(tid, _)| tid != self.child.id());
        others.fold((0, 0), |(switches, threads), (_, status)| (switches + switches_in(&status), threads + 1))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A running child that answers each line with a line.
#[derive(Debug)]
pub struct Conversation {
    /// The child.
    pub process: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Conversation {
    /// Starts it.
    pub fn start(command: &mut Command) -> io::Result<Conversation> {
        let mut process = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let pipes = process.child().stdin.take().zip(process.child().stdout.take());
        let (input, output) = pipes.ok_or_else(|| io::Error::other("no pipes to the child"))?;
        Ok(Conversation { process, input, output: BufReader::new(output) })
    }

    /// The next line.
    pub fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the child ended")),
            _ => Ok(line),
        }
    }

    /// Says a line and waits for the answer.
    pub fn ask(&mut self, line: &str) -> io::Result<String> {
        self.input.write_all(format!("{line}\n").as_bytes())?;
        self.hear()
    }
}

fn switches_in(status: &str) -> u64 {
    let count = |name| field(status, name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    count("voluntary_ctxt_switches:") + count("nonvoluntary_ctxt_switches:")
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// A directory of our own that goes when this is dropped.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// A new one.
    pub fn new() -> io::Result<Directory> {
        let path = std::env::temp_dir().join(format!("swipr-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Directory(path))
    }

    /// Where a file of this name is in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The agent's library: `SWIPR_LIBRARY`, or the one beside this program.
pub fn agent_library() -> io::Result<PathBuf> {
    let beside = || std::env::current_exe().map(|program| program.with_file_name("libswipr.so"));
    let path = std::env::var_os("SWIPR_LIBRARY").map_or_else(beside, |path| Ok(path.into()))?;
    let hint = || format!("{}: build it, or set SWIPR_LIBRARY", path.display());
    path.canonicalize().map_err(|error| io::Error::new(error.kind(), hint()))
}

/// gperftools' CPU profiler, if it is installed.
pub fn gperftools() -> Option<PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    folders.iter().map(|folder| Path::new(folder).join("libprofiler.so.0")).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches_in(status), 15);
        assert_eq!(switches_in(""), 0);
    }

    #[test]
    fn a_program_that_fails_is_an_error_and_not_a_figure() {
        assert!(run(&mut command("/bin/false", None)).is_err());
        assert!(run(&mut command("/bin/true", None)).unwrap().wall_us > 0.0);
    }

    #[test]
    fn a_sleeping_child_has_memory_of_its_own_and_no_other_threads() {
        let child = Running::start(command("/bin/sleep", None).arg("60")).unwrap();
        child.wait_until_idle(None).unwrap();
        assert!(child.private_kib().unwrap().0 > 0);
        assert_eq!(child.switches_of_others(), (0, 0));
    }
}
