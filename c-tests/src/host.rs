//! A running C program: started, talked to over its standard input and output, recorded
//! over the agent's socket, and ended. It never outlives its test.

use crate::agent;
use crate::directory::Directory;
use crate::expectation;
use crate::http::{self, Answer};
use crate::program::Program;
use crate::recording::Recording;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long anything may take before the test gives up: far longer than it should.
pub const TIMEOUT: Duration = Duration::from_secs(40);

/// Whether the agent is in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// As the program's directives say.
    Loaded,
    /// Not at all, to see what the program does by itself.
    Absent,
}

/// How a program is started.
#[derive(Debug)]
pub struct Start<'a> {
    /// The program.
    pub program: &'a Program,
    /// Arguments behind the shared object's path, if there is one.
    pub arguments: &'a [&'a OsStr],
    /// With or without the agent.
    pub agent: Agent,
}

/// A running program and its place for sockets.
#[derive(Debug)]
pub struct Host {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Option<JoinHandle<String>>,
    directory: Directory,
    heard: Vec<String>,
}

impl Host {
    /// Starts a program with the agent and waits for its `ready`.
    pub fn start(program: &Program) -> Self {
        Self::start_with(Start { program, arguments: &[], agent: Agent::Loaded })
    }

    /// Starts a program with the agent and this variable, and waits for its `ready`.
    pub fn start_with_variable(program: &Program, name: &str, value: &str) -> Self {
        let mut command = Command::new(&program.executable);
        command.env("LD_PRELOAD", agent::library()).env(name, value);
        let mut host = Self::spawn(command);
        host.wait_for("ready");
        host
    }

    /// Starts a program as `start` says and waits for its `ready`.
    pub fn start_with(start: Start<'_>) -> Self {
        let mut command = Command::new(&start.program.executable);
        command.args(&start.program.library).args(start.arguments).env_remove("LD_PRELOAD");
        if start.agent == Agent::Loaded && start.program.preload {
            command.env("LD_PRELOAD", agent::library());
        }
        if let Some(count) = start.program.descriptors {
            limit_descriptors(&mut command, count);
        }
        let mut host = Self::spawn(command);
        host.wait_for("ready");
        host
    }

    /// Starts any command, with its sockets in a directory of its own unless it says otherwise.
    pub fn spawn(mut command: Command) -> Self {
        let directory = Directory::new();
        if !command.get_envs().any(|(name, _)| name == "LD_LIBRARY_PATH") {
            // Cargo's would find the library of another build than the one under test.
            command.env_remove("LD_LIBRARY_PATH");
        }
        if !command.get_envs().any(|(name, _)| name == "SWIPR_SOCKET") {
            command.env("SWIPR_SOCKET", directory.path().join("{PID}.sock"));
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let input = child.stdin.take();
        let output = child.stdout.take().expect("a pipe");
        let mut errors = child.stderr.take().expect("a pipe");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            // Not UTF-8 is as good a text as any here: what matters is whether it is empty.
            match errors.read_to_string(&mut text) {
                Ok(_) => text,
                Err(error) => error.to_string(),
            }
        });
        Self { child, input, lines, errors: Some(errors), directory, heard: Vec::new() }
    }

    /// The program's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The directory that holds the sockets.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Sends the program a line.
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("the program was told to end");
        if let Err(error) = writeln!(input, "{line}") {
            panic!("cannot tell the program {line:?}: {error}");
        }
    }

    /// Waits for a line that begins with `start`; returns the rest of it.
    pub fn wait_for(&mut self, start: &str) -> String {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.heard.push(line.clone());
                    if let Some(rest) = line.strip_prefix(start) {
                        return rest.trim_start().to_string();
                    }
                    assert!(!line.starts_with("failed"), "the program says: {}", self.heard.join(" / "));
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no line {start:?}; the program says: {:?}", self.heard)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.try_wait();
                    panic!(
                        "the program ended ({status:?}) before it said {start:?}; it said {:?}",
                        self.heard
                    )
                }
            }
        }
    }

    /// The rest of a line that began with `start` and was passed over while waiting for another.
    pub fn heard(&self, start: &str) -> &str {
        let found = self.heard.iter().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("no line {start:?} in {:?}", self.heard))
    }

    /// The socket of a process that the program is or has made, once it accepts.
    pub fn socket_of(&self, pid: u32) -> PathBuf {
        let path = self.directory().join(format!("{pid}.sock"));
        wait_until(&format!("{} to accept", path.display()), || UnixStream::connect(&path).is_ok());
        path
    }

    /// The program's socket, once it accepts.
    pub fn socket(&self) -> PathBuf {
        self.socket_of(self.pid())
    }

    /// Makes a recording of the program.
    pub fn record(&self, query: &str) -> Recording {
        record(&self.socket(), query)
    }

    /// Starts a recording and returns when it has started.
    pub fn begin_recording(&self, query: &str) -> Answer {
        begin_recording(&self.socket(), query)
    }

    /// Does something while a recording runs whose client keeps up with it.
    pub fn while_recorded<T>(&mut self, query: &str, body: impl FnOnce(&mut Self) -> T) -> T {
        let mut answer = self.begin_recording(query);
        let done = AtomicBool::new(false);
        let (result, running) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut running = true;
                while running && !done.load(Ordering::Relaxed) {
                    // An error is an end, too.
                    running = answer.read_more().unwrap_or(false);
                }
                running
            });
            // Also when `body` fails, or the scope would wait for the reader.
            let stop = OnDrop(|| done.store(true, Ordering::Relaxed));
            let result = body(self);
            drop(stop);
            (result, reader.join().unwrap_or(false))
        });
        assert!(running, "the recording {query} ended by itself");
        result
    }

    /// Closes the program's standard input: it is to end now.
    pub fn tell_end(&mut self) {
        self.input = None;
    }

    /// Waits until the program has ended; it must have said `ok`, and nothing on its
    /// standard error.
    pub fn ended(&mut self) -> ExitStatus {
        self.tell_end();
        self.wait_for("ok");
        self.wait()
    }

    /// Waits until the program has ended by itself, with nothing on its standard error.
    pub fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the program to end", || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        let errors = self.errors.take().map(|errors| errors.join());
        let errors = errors.and_then(Result::ok).expect("the standard error is read once");
        assert_eq!(errors, "", "the program's standard error");
        status.expect("an exit status")
    }

    /// Ends the program, which must succeed.
    pub fn end(mut self) {
        let status = self.ended();
        assert!(status.success(), "the program ended with {status}");
    }
}

/// Calls a function when dropped.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let status = self.child.try_wait();
            eprintln!("the program is {status:?} (None: it runs); it said {:?}", self.heard);
        }
        // Both fail for a program that has ended, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a recording over `socket`.
pub fn record(socket: &Path, query: &str) -> Recording {
    finish_recording(begin_recording(socket, query), query)
}

/// Reads a recording that has started to its end.
pub fn finish_recording(answer: Answer, query: &str) -> Recording {
    let answer = answer.read_all().unwrap_or_else(|error| panic!("the recording {query}: {error}"));
    let text = String::from_utf8_lossy(&answer.body);
    let stats = answer.field("x-swipr-stats").unwrap_or_default();
    Recording::parse(&text, stats).unwrap_or_else(|why| panic!("the recording {query}: {why}"))
}

/// Starts a recording over `socket` and returns when its first bytes have come.
pub fn begin_recording(socket: &Path, query: &str) -> Answer {
    let target = format!("/profile?{query}");
    let mut answer = http::get(socket, &target).unwrap_or_else(|error| panic!("GET {target}: {error}"));
    if answer.status != 200 {
        while let Ok(true) = answer.read_more() {}
        let text = String::from_utf8_lossy(&answer.body);
        panic!("GET {target}: status {}: {text}", answer.status);
    }
    answer
}

/// Compiles and starts a program, makes its recordings, checks what it expects of
/// them, and ends it.
pub fn run(program: &Program) {
    assert!(!program.steps.is_empty(), "{} has no record: line", program.name);
    let host = Host::start(program);
    let mut failures = Vec::new();
    for step in &program.steps {
        let recording = host.record(&step.query);
        let checks = step.expectations.iter();
        failures.extend(checks.filter_map(|line| expectation::check(line, &recording).err()));
    }
    host.end();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Waits for a condition, with a bound.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn limit_descriptors(command: &mut Command, count: u64) {
    let set = move || {
        let limit = libc::rlimit { rlim_cur: count, rlim_max: count };
        // SAFETY: setrlimit reads the struct it is given, which lives on this stack.
        match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: `set` runs in the forked child; it makes one system call (setrlimit) and
    // reads errno, neither of which allocates or takes a lock.
    unsafe { command.pre_exec(set) };
}
