//! Asking an agent. What it refuses, and what cannot be reached, becomes an error that says what to
//! do.

use crate::endpoint::{Connection, Endpoint};
use crate::error::{Error, Exit};
use crate::http::{self, Answer, Request};
use crate::process::Process;
use serde::Deserialize;
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
    /// How stacks were had.
    pub stacks: Stacks,
    /// The CPU time of the agent's own threads.
    pub agent_cpu_ns: u64,
    /// How the kernel raises timers' signals: `task work`, or in an `interrupt`.
    pub timer_signals_are_raised_by: Option<String>,
    /// The interpreter whose frames are read, or why they are not.
    pub interpreter: Option<String>,
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
    /// Names of those whose CPU time is not sampled, because they run in step with the kernel's
    /// tick.
    pub in_step_with_the_kernels_tick: Vec<String>,
}

/// Samples of an agent, of all recordings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Samples {
    /// Taken.
    pub taken: u64,
    /// Stacks that do not reach the thread's root.
    pub truncated: u64,
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

/// How an agent had its stacks, of all recordings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Stacks {
    /// Timers that hit running threads.
    pub timers_armed: u64,
    /// Timers that the kernel did not make.
    pub timers_refused: u64,
}

/// What the kernel refuses where no thread gets a timer, and what to do.
pub const NO_TIMERS: (&str, &str) = (
    "the kernel refuses the timers that sample running threads (a seccomp filter forbids timer_create), or half of RLIMIT_SIGPENDING (`ulimit -i`) is used: the rest is the program's",
    "start it with a higher `ulimit -i`, or under a filter that lets timer_create pass; --idle records what waits all the same",
);

impl Status {
    /// Why threads that ran could not be sampled, and what to do, if the agent knows.
    pub fn hindrance(&self) -> Option<(String, &'static str)> {
        let Stacks { timers_armed, timers_refused } = self.stacks;
        if timers_armed == 0 && timers_refused > 0 {
            return Some((NO_TIMERS.0.to_owned(), NO_TIMERS.1));
        }
        let blocking = self.threads.run_with_our_signal_blocked.join(", ");
        let next = "have them block signals by pthread_sigmask(3), not by system calls of their own";
        (!blocking.is_empty())
            .then(|| (format!("threads run with the agent's signal blocked: {blocking}"), next))
    }
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
        std::thread::spawn(move || sender.send(client.connect()));
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
            _ => "try again; where that does not help, restart the program",
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
    let (why, next) = match process.status("State")?.chars().next()? {
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
