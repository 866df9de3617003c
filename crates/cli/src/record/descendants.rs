//! The child processes of one that is recorded, and theirs, as they come.
//!
//! Most have their sockets beside the first one's, where the kernel reports them at once. Those of
//! other users, or with other mounts, have them elsewhere: `/proc` is scanned, which is
//! harder on them. To open the folder of a process that ends may hold up its parent,
//! whose wait(2) forgets the same entries. So the young ones, many of which end soon, are left
//! alone.

mod process_list;

use crate::client::{Client, Status};
use crate::endpoint::Endpoint;
use crate::find::socket_watch::SocketWatch;
use crate::find::{self, Found, sockets};
use crate::process::Process;
use process_list::ProcessList;
use rustc_hash::FxHashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How often `/proc` is scanned. Processes that were not there at the last scan are left
/// alone.
const SCAN_INTERVAL: Duration = Duration::from_millis(500);
/// The same without reports.
const UNREPORTED_INTERVAL: Duration = Duration::from_millis(100);
/// A socket's file exists before the agent listens.
const BINDING: Duration = Duration::from_secs(10);

/// By what a socket's file differs from every other one: its number may be used again.
type SocketId = (u64, i64, i64);

fn id_of(endpoint: &Endpoint) -> Option<SocketId> {
    let Endpoint::Path(path) = endpoint else { return None };
    std::fs::metadata(path).ok().map(|file| (file.ino(), file.ctime(), file.ctime_nsec()))
}

/// See the module's text.
#[derive(Debug)]
pub struct Descendants {
    root: u32,
    /// With their sockets: after exec(2) a process has another one.
    known: FxHashMap<u32, Option<SocketId>>,
    scanned: Option<Instant>,
    scans: u64,
    processes: ProcessList,
    /// In which no agent was found: the scan that asks again, and how many later the next.
    without: FxHashMap<u32, (u64, u64)>,
    /// Sockets that have appeared.
    sockets: Option<Receiver<PathBuf>>,
    /// How the agents' sockets are called: the program may make others beside them.
    pattern: String,
    /// Those at which no agent has answered yet, and until when it may.
    arriving: Vec<(PathBuf, Instant)>,
    used_before: Option<Duration>,
    used_at_end: Option<Duration>,
}

impl Descendants {
    /// Those that are there, of this process, which is not one of them.
    pub fn of(process: &Process) -> Descendants {
        Descendants {
            root: process.pid,
            known: FxHashMap::default(),
            scanned: None,
            scans: 0,
            processes: ProcessList::default(),
            without: FxHashMap::default(),
            sockets: None,
            pattern: String::new(),
            arriving: Vec::new(),
            used_before: None,
            used_at_end: None,
        }
    }

    /// The same, and those to come. `wake` is called when one appears.
    pub fn from_now_on(process: &Process, agent: &Client, wake: impl Fn() + Send + 'static) -> Descendants {
        let folder = match agent.endpoint() {
            Endpoint::Path(path) => path.parent(),
            _ => None,
        };
        let watch = folder.and_then(|folder| SocketWatch::new(folder).ok());
        let sockets = watch.and_then(|watch| watch.start(wake).ok());
        let pattern = sockets::name_pattern(process);
        let mut descendants = Descendants { sockets, pattern, ..Descendants::of(process) };
        descendants.used_before = descendants.cpu_time();
        descendants
    }

    /// The recording is over: what is used from now on is not to be in it.
    pub fn end(&mut self) {
        self.used_at_end = self.used_at_end.or_else(|| self.cpu_time());
    }

    /// The CPU time that they have used between [`Descendants::from_now_on`] and
    /// [`Descendants::end`]. `None`: not known.
    pub fn used(&self) -> Option<Duration> {
        Some(self.used_at_end?.saturating_sub(self.used_before?))
    }

    /// The CPU time that the first process and its descendants have used, those for which one of
    /// them has waited, too. `None`: it is gone.
    fn cpu_time(&self) -> Option<Duration> {
        let first = Process::new(self.root)?.cpu_time_with_children()?;
        let others = ProcessList::now().descendants_of(self.root).into_iter().filter_map(Process::new);
        Some(first + others.filter_map(|process| process.cpu_time_with_children()).sum())
    }

    /// Those with an agent that were not there at the last scan.
    pub fn new_ones(&mut self) -> Vec<Found> {
        let mut found = self.reported();
        let interval = if self.sockets.is_some() { SCAN_INTERVAL } else { UNREPORTED_INTERVAL };
        if self.scanned.is_none_or(|scanned| scanned.elapsed() >= interval) {
            self.scan(&mut found);
            self.scanned = Some(Instant::now());
        }
        found
    }

    /// Those whose sockets were reported.
    fn reported(&mut self) -> Vec<Found> {
        let is_agents = |socket: &PathBuf| {
            let name = socket.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| sockets::has_pattern(name, &self.pattern))
        };
        let new = self.sockets.iter().flat_map(Receiver::try_iter).filter(is_agents);
        self.arriving.extend(new.map(|socket| (socket, Instant::now() + BINDING)));
        let mut found = vec![];
        for (socket, until) in std::mem::take(&mut self.arriving) {
            let client = Client::new(Endpoint::Path(socket.clone()));
            let Ok(connection) = client.connect() else {
                if Instant::now() < until && socket.exists() {
                    self.arriving.push((socket, until));
                }
                continue;
            };
            let id = id_of(client.endpoint());
            let is_new = |pid: &u32| *pid != self.root && self.known.get(pid) != Some(&id);
            let process = connection.peer().filter(is_new).and_then(Process::new);
            if let Some(process) = process.filter(|process| process.descends_from(self.root)) {
                self.known.insert(process.pid, id);
                // It has only just started: it need not be asked for its figures.
                found.push(Found { client, process: Some(process), status: Status::default() });
            }
        }
        found
    }

    /// The others.
    fn scan(&mut self, found: &mut Vec<Found>) {
        self.scans += 1;
        self.processes.refresh();
        self.without.retain(|pid, _| self.processes.has(*pid));
        for pid in self.processes.descendants_of(self.root) {
            let (due, pause) = self.without.get(&pid).copied().unwrap_or((0, 1));
            if self.scans < due || self.known.contains_key(&pid) {
                continue;
            }
            match find::of_pid(pid) {
                Ok(agent) => {
                    self.known.insert(pid, id_of(agent.client.endpoint()));
                    found.push(agent);
                }
                // Its agent may be about to start.
                Err(_) => _ = self.without.insert(pid, (self.scans + pause, 2 * pause)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use swipr_c_tests::agent::library;
    use swipr_c_tests::directory::Directory;

    /// Regression: only `/proc` said that there was a child, ten times a second. Shorter ones were
    /// not found, and parents whose children ended just then waited longer for them.
    #[test]
    fn a_child_is_found_by_its_socket_and_once_more_when_it_executes_a_program() {
        let directory = Directory::new();
        let agent = Client::new(Endpoint::Path(directory.path().join("of_the_first.sock")));
        let own = Process::new(std::process::id()).expect("this process");
        let mut descendants = Descendants::from_now_on(&own, &agent, || {});
        descendants.scanned = Some(Instant::now() + Duration::from_secs(3600));
        let mut next = || {
            let deadline = Instant::now() + Duration::from_secs(60);
            let found = std::iter::repeat_with(|| {
                std::thread::sleep(Duration::from_millis(1));
                descendants.new_ones()
            });
            found.take_while(|_| Instant::now() < deadline).flatten().next().expect("a child")
        };
        let mut child = Command::new("sh")
            .args(["-c", "read line; exec cat"])
            .env("LD_PRELOAD", library())
            .env("SWIPR_SOCKET", directory.path().join("swipr-pid-{PID}.sock"))
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut stdin = child.stdin.take().expect("a pipe");
        let shell = next();
        std::io::Write::write_all(&mut stdin, b"go\n").expect("it reads");
        let other = next();
        assert_eq!([shell.pid(), other.pid()], [child.id(); 2]);
        assert_ne!(shell.name(), "", "{shell:?}");
        drop(stdin);
        assert!(child.wait().expect("its end").success());
    }
}
