//! Asking an agent. What it refuses, and what cannot be reached, becomes an error that says what to do.

use crate::endpoint::{Connection, Endpoint};
use crate::error::{Error, Exit};
use crate::http::{self, Answer, Request};
use serde::Deserialize;
use std::io;
use std::time::Duration;

/// How long an agent may take to say the first byte, unless it makes a recording.
const PATIENCE: Duration = Duration::from_secs(15);
/// The secret that agents may ask for by TCP.
const TOKEN: &str = "SWIPR_TOKEN";

/// An agent that listens somewhere.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
    patience: Option<Duration>,
}

/// What `/status` says, as far as it is needed here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The agent's version.
    pub version: String,
    /// The process, as it sees itself.
    pub pid: u32,
    /// Why the agent has turned itself off, if it has.
    pub off: Option<String>,
    /// How long it has been there.
    pub uptime_seconds: u64,
    /// Recordings.
    pub recordings: Recordings,
    /// Threads.
    pub threads: Threads,
    /// Samples of all recordings.
    pub samples: Samples,
    /// Ticks of all recordings.
    pub ticks: Ticks,
}

/// Recordings of an agent.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Recordings {
    /// Under way.
    pub running: u64,
}

/// Threads of an agent's process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Threads {
    /// Of which the kernel does not say whether they are blocked.
    pub without_syscall_file: u64,
    /// Names of those that run with the agent's signal blocked.
    pub run_with_our_signal_blocked: Vec<String>,
    /// Names of those that a signal might kill.
    pub must_not_be_signalled: Vec<String>,
}

/// Samples of an agent, of all recordings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Samples {
    /// Taken.
    pub taken: u64,
    /// Stacks that do not reach the thread's root.
    pub truncated: u64,
    /// Threads that a tick could not reach.
    pub missed: u64,
    /// Thrown away because the client was too slow.
    pub dropped: u64,
    /// Told by the threads' clocks.
    pub filled: u64,
    /// Made likely by the threads' clocks.
    pub inferred: u64,
    /// CPU time of threads that no sample met.
    pub unsampled_cpu_ns: u64,
    /// Time ready to run without a CPU.
    pub cpu_wait_ns: u64,
}

/// Ticks of an agent, of all recordings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ticks {
    /// At which threads were looked at.
    pub taken: u64,
    /// Left out because the agent came too late.
    pub late: u64,
}

impl Client {
    /// Of the agent that listens there.
    pub fn new(endpoint: Endpoint) -> Client {
        Client { endpoint, patience: Some(PATIENCE) }
    }

    /// The same for a recording, whose first byte may take as long as it lasts.
    pub fn waiting(self) -> Client {
        Client { patience: None, ..self }
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
            connection.set_patience(self.patience)?;
            Ok(connection)
        });
        connected.map_err(|error| self.unreachable(&error))
    }

    /// Asks on a connection.
    pub fn get_on(&self, connection: &Connection, target: &str) -> Result<Answer<Connection>, Error> {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let token = token.filter(|_| matches!(self.endpoint, Endpoint::Tcp(_)));
        let token = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> =
            token.iter().map(|value| ("Authorization", value.as_str())).collect();
        let request = Request { method: "GET", target, headers: &headers, body: b"" };
        let answer = connection.try_clone().and_then(|connection| http::ask(connection, &request));
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        if answer.status == 200 {
            return Ok(answer);
        }
        let text = answer.text().unwrap_or_default();
        Err(self.refused(answer.status, &text))
    }

    /// What the agent says of itself.
    pub fn status(&self) -> Result<Status, Error> {
        let text = self.get("/status")?.text().map_err(|error| self.unreachable(&error))?;
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
                "the process may be stopped or starved: `swipr doctor` looks, and a second try may do"
            }
            _ => "try again; `swipr doctor` looks at why a process cannot be profiled",
        };
        let why = match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::NotFound => "there is no such socket".to_owned(),
            io::ErrorKind::ConnectionRefused => "nobody listens there any more".to_owned(),
            _ => error.to_string(),
        };
        Error::new(format!("cannot ask {}: {why}", self.endpoint), next).exit(Exit::NotProfilable)
    }

    /// What the agent says no to: its first line says why, its second shows what would be right.
    fn refused(&self, status: u16, text: &str) -> Error {
        let mut lines = text.lines();
        let why = lines.next().unwrap_or("no reason given").to_owned();
        let next = match status {
            401 => format!("put the secret that the agent was started with into {TOKEN}"),
            403 => {
                "be the process's user or root, or start it with SWIPR_ALLOW_UID=<your user id>".to_owned()
            }
            429 => "wait until one of its recordings has ended, then try again".to_owned(),
            404 | 405 => {
                "the agent may be of another version: use the library that came with this command".to_owned()
            }
            503 => {
                "`swipr doctor` tells how the agent is doing; restarting the program restarts it".to_owned()
            }
            422 => "--idle records threads that wait, too; a longer -d or a higher -r finds more".to_owned(),
            _ => lines
                .next()
                .filter(|line| !line.is_empty())
                .unwrap_or("`swipr doctor` looks at the agent")
                .to_owned(),
        };
        Error::new(why, next)
    }
}
