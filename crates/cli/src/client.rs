//! Asking an agent. What it refuses, and what cannot be reached, becomes an error that says what to
//! do.

mod status;

#[cfg(test)]
pub use status::Stacks;
pub use status::{NO_TIMERS, Status};

use crate::endpoint::{Connection, Endpoint};
use crate::error::{Error, Exit};
use crate::http::{self, Answer, Request};
use crate::process::Process;
use crate::threads;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long an agent may take to say the first byte, unless it makes a recording.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long an agent may take to be found.
const SOON: Duration = Duration::from_millis(1500);
/// What an agent says whose process is ending.
const STOPPING: &str = "the agent is stopping";
/// The secret that agents may ask for by TCP.
const TOKEN: &str = "SWIPR_TOKEN";

/// An agent that listens somewhere.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
    timeout: Option<Duration>,
}

/// A name for a recording that no other client has: see [`Client::stop_recording`].
pub fn new_recording_id() -> String {
    format!("swipr-{:016x}", RandomState::new().build_hasher().finish())
}

impl Client {
    /// Of the agent that listens there.
    pub fn new(endpoint: Endpoint) -> Client {
        Client { endpoint, timeout: Some(TIMEOUT) }
    }

    /// The same for a recording, whose first byte may take as long as it lasts.
    pub fn waiting(self) -> Client {
        Client { timeout: None, ..self }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks for `target`; an answer that is not 200 is an error.
    pub fn get(&self, target: &str) -> Result<Answer<Connection>, Error> {
        self.get_on(&self.connect()?, target)
    }

    /// A connection for [`Client::get_on`], which its owner may end from another thread.
    pub fn connect(&self) -> Result<Connection, Error> {
        let connected = self.endpoint.connect().and_then(|connection| {
            connection.set_timeout(self.timeout)?;
            Ok(connection)
        });
        connected.map_err(|error| self.unreachable(&error))
    }

    /// Asks on a connection.
    pub fn get_on(&self, connection: &Connection, target: &str) -> Result<Answer<Connection>, Error> {
        self.accepted(self.ask_on(connection, target)?)
    }

    /// Asks on a connection; the answer may be a refusal, see [`Client::accepted`].
    pub fn ask_on(&self, connection: &Connection, target: &str) -> Result<Answer<Connection>, Error> {
        self.request(connection, "GET", target)
    }

    /// Has the recording with this id end: its answer comes with what it has. Waits for the agent
    /// for at most `timeout`.
    pub fn stop_recording(&self, id: &str, timeout: Duration) -> Result<(), Error> {
        let soon = Client { timeout: Some(timeout), ..self.clone() };
        let answer = soon.request(&soon.connect()?, "POST", &format!("/stop?id={id}"))?;
        self.accepted(answer).map(|_| ())
    }

    fn request(
        &self,
        connection: &Connection,
        method: &str,
        target: &str,
    ) -> Result<Answer<Connection>, Error> {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let token = token.filter(|_| matches!(self.endpoint, Endpoint::Tcp(_)));
        let token = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            token.iter().map(|value| ("Authorization", value.as_str())).collect();
        let request = Request { method, target, headers: &headers, body: b"" };
        let answer = connection.try_clone().and_then(|connection| http::ask(connection, &request));
        answer.map_err(|error| self.unreachable(&error))
    }

    /// An answer that is not 200 is an error.
    pub fn accepted(&self, mut answer: Answer<Connection>) -> Result<Answer<Connection>, Error> {
        if answer.status == 200 {
            return Ok(answer);
        }
        let text = answer.text().unwrap_or_default();
        Err(self.refused(answer.status, &text))
    }

    /// What the agent says of itself.
    pub fn status(&self) -> Result<Status, Error> {
        self.status_on(&self.connect()?)
    }

    /// The same, or soon why not: a process that is stopped, or gets no CPU, does not answer.
    pub fn status_soon(&self) -> Result<Status, Error> {
        let soon = Client { timeout: Some(SOON), ..self.clone() };
        let connection = soon.connect_soon()?;
        let process = connection.peer().and_then(Process::new);
        if let Some(error) = process.as_ref().and_then(held) {
            return Err(error);
        }
        let started = std::time::Instant::now();
        let status = soon.status_on(&connection);
        match process.filter(|_| status.is_err() && started.elapsed() >= SOON) {
            Some(process) => Err(held(&process).unwrap_or_else(|| starved(&process))),
            None => status,
        }
    }

    /// Where very many wait to be accepted, connect(2) waits, too.
    fn connect_soon(&self) -> Result<Connection, Error> {
        let (sender, connected) = channel();
        let client = self.clone();
        if threads::start(move || _ = sender.send(client.connect())).is_err() {
            return self.connect();
        }
        let late = || self.unreachable(&io::ErrorKind::TimedOut.into());
        connected.recv_timeout(SOON).unwrap_or_else(|_| Err(late()))
    }

    fn status_on(&self, connection: &Connection) -> Result<Status, Error> {
        let text = self.get_on(connection, "/status")?.text().map_err(|error| self.unreachable(&error))?;
        serde_json::from_str(&text).map_err(|error| {
            Error::new(
                format!("what answers at {} is no agent of swipr: {error}", self.endpoint),
                "`swipr ls` shows the processes that can be profiled",
            )
        })
    }

    /// Why it cannot be talked to.
    pub fn unreachable(&self, error: &io::Error) -> Error {
        let next = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                "the process may have ended: `swipr ls` shows those that can be profiled"
            }
            io::ErrorKind::PermissionDenied => {
                "be the process's user or root, or start it with SWIPR_ALLOW_UID=<your user id>"
            }
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                "the process may be stopped, or get no CPU: a second try may do"
            }
            io::ErrorKind::InvalidData | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                "the process may have ended, or is no agent of swipr: `swipr ls` shows those that can be profiled"
            }
            _ => "try again; where that does not help, restart the program with SWIPR_LOG=1, which says why",
        };
        let why = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
            io::ErrorKind::PermissionDenied => match self.endpoint.owner() {
                Some(uid) => format!("it is user {uid}'s, and we may not connect to it"),
                None => "permission denied".to_owned(),
            },
            io::ErrorKind::NotFound => "there is no such socket".to_owned(),
            io::ErrorKind::ConnectionRefused => "nobody listens there any more".to_owned(),
            _ => error.to_string(),
        };
        Error::new(format!("cannot ask {}: {why}", self.endpoint), next).exit(Exit::NotProfilable)
    }

    /// What the agent says no to: its first line says why, its second shows what would be right, in
    /// HTTP's words.
    fn refused(&self, status: u16, text: &str) -> Error {
        let mut lines = text.lines();
        let why = in_options(lines.next().unwrap_or("no reason given"));
        let next = match status {
            401 => format!("put the secret that the agent was started with into {TOKEN}"),
            403 => {
                "be the process's user or root, or start it with SWIPR_ALLOW_UID=<your user id>".to_owned()
            }
            429 => "wait until one of its recordings has ended, then try again".to_owned(),
            404 | 405 => {
                "the agent may be of another version: use the library that came with this command".to_owned()
            }
            503 if why == STOPPING => {
                return Error::new(why, "the process is about to end").exit(Exit::NotProfilable);
            }
            503 => "restart the program: its agent starts again".to_owned(),
            422 => "--idle records threads that wait, too; a longer -d or a higher -r finds more".to_owned(),
            400 => "change that option; --help has examples".to_owned(),
            _ => "try again; where that does not help, restart the program".to_owned(),
        };
        Error::new(why, next)
    }
}

/// What an agent says of a request's parameters, in the options of this command. Figures in
/// parentheses are left out.
fn in_options(text: &str) -> String {
    let (before, after) = match text.split_once(" (threads=") {
        Some((before, rest)) => (before, rest.split_once(')').map_or("", |(_, after)| after)),
        None => (text, ""),
    };
    let mut said = format!("{before}{after}");
    let options = [
        ("threads", "--thread-name"),
        ("hz", "--rate"),
        ("seconds", "--duration"),
        ("mode", "--mode"),
        ("source", "--source"),
        ("title", "--title"),
    ];
    for (parameter, option) in options {
        if let Some(rest) = said.strip_prefix(&format!("{parameter}: ")) {
            said = format!("{option}: {rest}");
        }
        said = said.replace(&format!(" {parameter}="), &format!(" {option} "));
    }
    said.replace("--mode wall shows threads that wait, too", "--idle shows threads that wait, too")
}

/// Why a process cannot answer now, if the kernel says so.
fn held(process: &Process) -> Option<Error> {
    let (pid, name) = (process.pid, process.name());
    let (why, next) = match process.state()? {
        'T' => ("is stopped (SIGSTOP, or a shell's Ctrl-Z)", format!("`kill -CONT {pid}` lets it run")),
        't' => ("is held by a debugger", "let it run there".to_owned()),
        'Z' | 'X' => ("has ended", "start it again".to_owned()),
        _ => return None,
    };
    Some(
        Error::new(format!("process {pid} ({name}) {why}: it cannot answer"), next).exit(Exit::NotProfilable),
    )
}

/// Nothing came from the agent of a process that is not stopped.
fn starved(process: &Process) -> Error {
    let (pid, name) = (process.pid, process.name());
    let doing = match process.server_state() {
        Some('R') => "its agent is ready to run and gets no CPU (starved)",
        Some('t' | 'T') => "a debugger holds its agent",
        Some('D') => "its agent waits for a disk or for memory",
        _ => "its agent is asleep (frozen by its cgroup, or starved)",
    };
    Error::new(
        format!("process {pid} ({name}) did not answer for {:.1} s: {doing}", SOON.as_secs_f64()),
        "try again when there is CPU for it: look at the machine's load and at the CPU quota of its cgroup",
    )
    .exit(Exit::NotProfilable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ticks=16 sweep_p99_ns=…`, `threads=` and `mode=wall` were shown to users of the command.
    #[test]
    fn what_an_agent_refuses_is_said_in_the_commands_words() {
        let said = "no sample was taken (threads=0 ticks=16 samples=0 sweep_p99_ns=131071): no thread's name matches threads=^a";
        assert_eq!(in_options(said), "no sample was taken: no thread's name matches --thread-name ^a");
        let said = "no sample was taken (threads=3 ticks=9): no thread used CPU time; mode=wall shows threads that wait, too";
        assert_eq!(
            in_options(said),
            "no sample was taken: no thread used CPU time; --idle shows threads that wait, too"
        );
        assert_eq!(in_options("threads: \"(\" is no regex"), "--thread-name: \"(\" is no regex");
    }
}
