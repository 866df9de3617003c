//! A process as `/proc` shows it (proc(5)). Not here: whether it can be profiled (`doctor`), where
//! its agent listens.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The names of the agent's threads.
const AGENT_THREADS: [&str; 4] = ["swipr-server", "swipr-sampler", "swipr-writer", "swipr-exit"];

/// A process. Everything about it may be gone at the next look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id, as this process sees it.
    pub pid: u32,
    folder: PathBuf,
}

impl Process {
    /// The process of that id, if there is one.
    pub fn new(pid: u32) -> Option<Process> {
        Some(Process::of(pid)).filter(|process| process.folder.join("stat").exists())
    }

    /// Every process that can be seen.
    pub fn all() -> Vec<Process> {
        let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut pids: Vec<u32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        pids.into_iter().map(Process::of).collect()
    }

    fn of(pid: u32) -> Process {
        Process { pid, folder: PathBuf::from(format!("/proc/{pid}")) }
    }

    /// Its folder in `/proc`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its first thread's name.
    pub fn name(&self) -> String {
        read_trimmed(&self.folder.join("comm"))
    }

    /// The file that it executes; none for threads of the kernel and where it may not be known.
    pub fn executable(&self) -> Option<PathBuf> {
        fs::read_link(self.folder.join("exe")).ok()
    }

    /// A variable of the environment that it was started with.
    pub fn variable(&self, name: &str) -> Option<String> {
        let all = self.environment();
        all.iter().find_map(|entry| entry.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    }

    /// The environment that it was started with, each variable as `NAME=VALUE`.
    pub fn environment(&self) -> Vec<String> {
        let bytes = fs::read(self.folder.join("environ")).unwrap_or_default();
        bytes.split(|&byte| byte == 0).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect()
    }

    /// Whether it has written over it, as programs do that show what they do as their title.
    pub fn has_overwritten_environment(&self) -> bool {
        let environment = self.environment();
        let is_variable = |entry: &String| entry.contains('=');
        let is_other = |entry: &String| !entry.is_empty() && !is_variable(entry);
        environment.iter().any(is_other) || environment.len() > 1 && !environment.iter().any(is_variable)
    }

    /// A field of `/proc/PID/status`.
    pub fn status(&self, field: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        Some(line.trim().to_owned())
    }

    /// Its effective user.
    pub fn uid(&self) -> Option<u32> {
        self.status("Uid")?.split_whitespace().nth(1)?.parse().ok()
    }

    /// Whether it has ended, and only nobody has waited for it yet.
    pub fn has_ended(&self) -> bool {
        self.state().is_none_or(|state| matches!(state, 'Z' | 'X'))
    }

    /// Its state, a letter of proc(5); `None`: it is not there.
    pub fn state(&self) -> Option<char> {
        self.status("State")?.chars().next()
    }

    /// Its parent.
    pub fn parent(&self) -> Option<u32> {
        self.stat_field(4)?.try_into().ok()
    }

    /// Whether it is that process, or a child of it, or a child of such a one.
    pub fn descends_from(&self, ancestor: u32) -> bool {
        let parent = |process: &Process| process.parent().and_then(Process::new);
        std::iter::successors(Some(self.clone()), parent).any(|process| process.pid == ancestor)
    }

    /// Its id as it sees it itself, in the innermost namespace.
    pub fn own_pid(&self) -> u32 {
        let ids = self.status("NSpid").unwrap_or_default();
        ids.split_whitespace().next_back().and_then(|id| id.parse().ok()).unwrap_or(self.pid)
    }

    /// Whether it has the same namespace of this kind (`mnt`, `net`, `pid`) as this command; `None`
    /// where that may not be known.
    pub fn shares(&self, namespace: &str) -> Option<bool> {
        Some(self.namespace(namespace)? == namespace_of(Path::new("/proc/self"), namespace)?)
    }

    /// Whether a path of the process means the same file here. `None` where that may not be known.
    pub fn sees_our_files(&self) -> Option<bool> {
        sees_our_files(&self.folder)
    }

    /// The folder of that one of the agent's threads which has another root directory than the
    /// process: it keeps its own when the program calls chroot(2). Else the process's.
    pub fn agents_folder(&self, agent_threads: &[PathBuf]) -> PathBuf {
        let own = root_of(&self.folder);
        let differs = |thread: &&PathBuf| root_of(thread).is_some_and(|root| Some(root) != own);
        agent_threads.iter().find(differs).unwrap_or(&self.folder).clone()
    }

    fn namespace(&self, kind: &str) -> Option<u64> {
        namespace_of(&self.folder, kind)
    }

    /// Whether it put itself under a seccomp filter. A container's filter is that of all its
    /// processes and does not count, whether this command or the process's parent is in the
    /// container.
    pub fn has_own_filter(&self) -> bool {
        let filters = |process: &Process| {
            // The count is there from Linux 5.9 on.
            let field = process.status("Seccomp_filters").or_else(|| process.status("Seccomp"));
            field.and_then(|count| count.parse::<u32>().ok()).unwrap_or(0)
        };
        let others = [std::process::id()].into_iter().chain(self.parent()).filter_map(Process::new);
        let beside = others.filter(|other| other.namespace("pid") == self.namespace("pid"));
        beside.map(|other| filters(&other)).max().is_some_and(|most| filters(self) > most)
    }

    /// The CPU time of its threads, those that have ended, too; not that of its children.
    pub fn cpu_time(&self) -> Option<Duration> {
        of_ticks(self.stat_field(14)? + self.stat_field(15)?)
    }

    /// The same, with that of children, and theirs, for which it or they have waited.
    pub fn cpu_time_with_children(&self) -> Option<Duration> {
        of_ticks((14..=17).map(|number| self.stat_field(number)).sum::<Option<u64>>()?)
    }

    /// How long ago it was started.
    pub fn age(&self) -> Option<Duration> {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the struct is on this stack.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
        let now = Duration::new(now.tv_sec.try_into().ok()?, now.tv_nsec.try_into().ok()?);
        Some(now.saturating_sub(of_ticks(self.started_ticks()?)?))
    }

    /// When it was started, in clock ticks since the machine was.
    pub fn started_ticks(&self) -> Option<u64> {
        self.stat_field(22)
    }

    /// A field of its `stat` file, by its number in proc(5), from 3 on.
    fn stat_field(&self, number: usize) -> Option<u64> {
        let stat = read_trimmed(&self.folder.join("stat"));
        // The second field is the name, which may have blanks.
        stat.rsplit_once(") ")?.1.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// How many threads it has, without the agent's.
    pub fn threads(&self) -> u64 {
        let all = fs::metadata(self.folder.join("task")).map_or(0, |found| found.nlink().saturating_sub(2));
        all.saturating_sub(self.agent_threads().len() as u64)
    }

    /// The folders of the agent's threads: empty where there is no agent.
    pub fn agent_threads(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.join("task")).into_iter().flatten().flatten();
        let is_agents = |path: &PathBuf| AGENT_THREADS.contains(&read_trimmed(&path.join("comm")).as_str());
        entries.map(|entry| entry.path()).filter(is_agents).collect()
    }

    /// The state of the agent's server thread, a letter of proc(5).
    pub fn server_state(&self) -> Option<char> {
        let threads = self.agent_threads();
        let server = threads.iter().find(|path| read_trimmed(&path.join("comm")) == AGENT_THREADS[0])?;
        // The name before it is in parentheses, and may have some.
        read_trimmed(&server.join("stat")).rsplit_once(") ")?.1.chars().next()
    }

    /// The process's user, if it is not this command's and this command is not root's.
    pub fn other_user(&self) -> Option<u32> {
        // SAFETY: geteuid(2) takes nothing and cannot fail.
        let own = unsafe { libc::geteuid() };
        self.uid().filter(|&uid| own != 0 && uid != own)
    }

    /// Whether a file whose name begins with `libswipr` is mapped; `None` where that may not be
    /// known.
    pub fn has_library(&self) -> Option<bool> {
        let maps = fs::read_to_string(self.folder.join("maps")).ok()?;
        let is_ours = |line: &str| line.rsplit('/').next().is_some_and(|name| name.starts_with("libswipr"));
        Some(maps.lines().filter(|line| line.contains('/')).any(is_ours))
    }

    /// Whether the agent has no timer for its threads: its user has more signals queued than half
    /// of what the process may have (RLIMIT_SIGPENDING), which the agent leaves to the program.
    pub fn has_no_room_for_timers(&self) -> bool {
        self.status("SigQ").is_some_and(|queue| leaves_no_timer(&queue))
    }
}

/// Whether a path of the process or thread of this folder means the same file here: it has the same
/// mounts and the same root. `None` where that may not be known.
pub fn sees_our_files(folder: &Path) -> Option<bool> {
    let shares = namespace_of(folder, "mnt")? == namespace_of(Path::new("/proc/self"), "mnt")?;
    Some(shares && root_of(folder).is_none_or(|its| Some(its) == root_of(Path::new("/proc/self"))))
}

fn root_of(folder: &Path) -> Option<(u64, u64)> {
    fs::metadata(folder.join("root")).map(|root| (root.dev(), root.ino())).ok()
}

fn namespace_of(folder: &Path, kind: &str) -> Option<u64> {
    fs::metadata(folder.join("ns").join(kind)).ok().map(|found| found.ino())
}

fn read_trimmed(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned()
}

/// Of `SigQ` of a status file, "queued/limit". The agent's own timers, up to half, are in it.
fn leaves_no_timer(queue: &str) -> bool {
    let numbers = queue.split_once('/');
    let numbers = numbers.and_then(|(queued, limit)| Some((queued.parse().ok()?, limit.parse().ok()?)));
    numbers.is_some_and(|(queued, limit): (u64, u64)| limit < 2 || queued > limit / 2)
}

/// Clock ticks as proc(5) has them.
fn of_ticks(ticks: u64) -> Option<Duration> {
    // SAFETY: it takes a number and cannot fail.
    let per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    Some(Duration::from_nanos((ticks * 1_000_000_000).checked_div(per_second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described_by_what_the_kernel_says() {
        let own = Process::new(std::process::id()).expect("this process");
        assert_eq!(own.own_pid(), own.pid);
        assert_eq!(own.executable(), std::env::current_exe().ok());
        assert_eq!(own.variable("PATH"), std::env::var("PATH").ok());
        assert_eq!(own.variable("NO_SUCH_VARIABLE"), None);
        assert_eq!((own.shares("mnt"), own.has_library()), (Some(true), Some(false)));
        assert!(own.agent_threads().is_empty() && own.threads() >= 1);
        let age = own.age().expect("this process");
        assert!(age < Process::new(1).and_then(|first| first.age()).expect("the first process"));
        assert!(own.started_ticks() >= Process::new(1).and_then(|first| first.started_ticks()));
        assert!(Process::all().contains(&own));
        assert_eq!(Process::new(0), None);
    }

    #[test]
    fn timers_are_missing_where_others_use_more_than_half_of_the_limit() {
        assert!(["0/0", "0/1", "21/41", "41/41"].into_iter().all(leaves_no_timer));
        assert!(!["20/41", "1/95000", "", "x/y"].into_iter().any(leaves_no_timer));
    }
}
