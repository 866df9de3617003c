//! From what the user writes to the agents that are meant: a process's id, a socket, a name.

pub mod folders;
mod in_root;
mod kernel_sockets;
pub mod socket_watch;
pub mod sockets;

use crate::client::{Client, Status};
use crate::endpoint::Endpoint;
use crate::error::{Error, Exit};
use crate::process::Process;
use std::path::Path;
use std::time::{Duration, Instant};

/// An answer that takes longer is none.
pub const LONG: Duration = Duration::from_millis(500);
/// The agent of a process that has just been forked is waited for until the process is so old.
const STARTING: Duration = Duration::from_secs(1);

/// An agent that answers.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where to ask it.
    pub client: Client,
    /// Its process, where it can be seen.
    pub process: Option<Process>,
    /// What it said of itself.
    pub status: Status,
}

impl Found {
    /// The process's name; of a process out of sight, the socket's.
    pub fn name(&self) -> String {
        match (&self.process, self.client.endpoint()) {
            (Some(process), _) => process.name(),
            (None, Endpoint::Path(path)) => {
                path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
            }
            (None, other) => other.to_string(),
        }
    }

    /// The process's id: as it is seen from here, or else as it sees itself.
    pub fn pid(&self) -> u32 {
        self.process.as_ref().map_or(self.status.pid, |process| process.pid)
    }
}

/// The one agent that `target` means.
pub fn one(target: &str) -> Result<Found, Error> {
    if let Some(endpoint) = Endpoint::parse(target) {
        return at(endpoint?, None);
    }
    let pid = match target.parse() {
        Ok(pid) => pid,
        Err(_) => only(target)?.pid,
    };
    wait_for_start(pid);
    of_pid(pid)
}

/// Waits for the agent of a process that has just been forked: it has the library, and no agent
/// yet.
fn wait_for_start(pid: u32) {
    let Some(process) = Process::new(pid) else { return };
    let left = process.age().map_or(Duration::ZERO, |age| STARTING.saturating_sub(age));
    let deadline = Instant::now() + left;
    // A socket's file is there before the agent listens.
    let listens = |place: Endpoint| Client::new(place).connect().is_ok();
    let has_none =
        || !sockets::one_of_process(&process).into_iter().any(listens) && process.has_library() == Some(true);
    while Instant::now() < deadline && has_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The one process of a name; of several, the one that has an agent.
pub fn only(name: &str) -> Result<Process, Error> {
    let named = named(name);
    let (with_agent, without): (Vec<_>, Vec<_>) =
        named.into_iter().partition(|process| !process.agent_threads().is_empty());
    let (has_agent, found) = match with_agent.is_empty() {
        true => (false, without),
        false => (true, with_agent),
    };
    let pids: Vec<String> = found.iter().map(|process| process.pid.to_string()).collect();
    let (count, pids) = (pids.len(), pids.join(", "));
    let error = match found.as_slice() {
        [process] => return Ok(process.clone()),
        [] => Error::new(
            format!("no process is called {name}"),
            "`swipr ls` shows those that can be profiled; `swipr run -- CMD` starts one",
        ),
        _ if has_agent => {
            let what = format!("{count} processes that can be profiled are called {name}: {pids}");
            return Err(Error::new(what, "give one of these ids instead of the name").exit(Exit::Usage));
        }
        [first, ..] => Error::new(
            format!("{count} processes are called {name}, and none has swipr inside: {pids}"),
            format!("`swipr doctor {}` says why; `swipr run -- CMD` starts a program with it", first.pid),
        ),
    };
    Err(error.exit(Exit::NotProfilable))
}

/// Why there is no agent: there is no process of this id.
pub fn no_process(pid: u32) -> Error {
    let next = "`swipr ls` shows those that can be profiled";
    Error::new(format!("there is no process {pid}"), next).exit(Exit::NotProfilable)
}

/// The agent of a process.
pub fn of_pid(pid: u32) -> Result<Found, Error> {
    let Some(process) = Process::new(pid) else { return Err(no_process(pid)) };
    let (mut failure, asked_at) = (None, Instant::now());
    for endpoint in sockets::one_of_process(&process) {
        match at(endpoint, Some(process.clone())) {
            Ok(found) => return Ok(found),
            Err(error) => failure = Some(error),
        }
        // One that is silent at one place is silent at the others.
        if asked_at.elapsed() > LONG {
            break;
        }
    }
    Err(failure.filter(|_| process.other_user().is_none()).unwrap_or_else(|| no_agent(&process)))
}

/// The agent that listens there.
pub fn at(endpoint: Endpoint, process: Option<Process>) -> Result<Found, Error> {
    let client = Client::new(endpoint);
    let status = client.status_soon()?;
    let process = process.or_else(|| behind(client.endpoint(), status.pid));
    Ok(Found { client, process, status })
}

/// The process behind a socket: the one of the id that it knows of itself, if that one listens
/// there.
fn behind(endpoint: &Endpoint, pid: u32) -> Option<Process> {
    let process = Process::new(pid)?;
    let same = |other: &Endpoint| match (endpoint, other) {
        (Endpoint::Path(one), Endpoint::Path(other)) => is_same_file(one, other),
        (one, other) => one == other,
    };
    sockets::of_process(&process).iter().any(same).then_some(process)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    id(one).is_some() && id(one) == id(other)
}

/// Processes of that name, or of an executable of that name.
fn named(name: &str) -> Vec<Process> {
    let own = std::process::id();
    let has_name = |process: &Process| {
        let file = process.executable();
        let file = file.as_deref().and_then(Path::file_name);
        process.pid != own && (process.name() == name || file.is_some_and(|file| file == name))
    };
    Process::all().into_iter().filter(has_name).collect()
}

/// Why there is no agent: the process has ended or is another user's, or the agent is out of reach,
/// or there is none.
fn no_agent(process: &Process) -> Error {
    let (pid, name) = (process.pid, process.name());
    let doctor = format!("`swipr doctor {pid}` says why; `swipr run -- CMD` starts a program with it");
    let has_ended = process.status("State").is_some_and(|state| state.starts_with('Z'));
    let (what, next) = match (process.other_user(), process.agent_threads().is_empty()) {
        _ if has_ended => (
            "has ended, and waits for its parent to look (zombie)".to_owned(),
            "`swipr ls` shows those that can be profiled".to_owned(),
        ),
        (Some(uid), _) => (
            format!("belongs to another user, {uid}"),
            format!("be user {uid} or root, or start it with SWIPR_ALLOW_UID=<your user id>"),
        ),
        (None, true) => {
            ("has no swipr inside: it was started without it, or turned it away".to_owned(), doctor)
        }
        (None, false) => ("has swipr inside, and its socket cannot be found".to_owned(), doctor),
    };
    Error::new(format!("process {pid} ({name}) {what}"), next).exit(Exit::NotProfilable)
}
