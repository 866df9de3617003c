//! `swipr run`: a program from its start to its end, with the agent inside, and on request its
//! children. The program has its own standard streams, signals and exit status; what the command
//! itself prints goes to standard error. A recording that fails changes nothing of that.

mod child;
mod end;
mod sockets;

use crate::args::Run;
use crate::client::{Client, Status};
use crate::endpoint::Endpoint;
use crate::error::{Error, Exit};
use crate::library;
use crate::preload_check::{self, PreloadProblem};
use crate::process::Process;
use crate::record::no_sample::Recorder;
use crate::record::progress::{Progress, Talk};
use crate::record::session::{Over, Session};
use crate::record::unrecorded::Member;
use crate::record::{Plan, root};
use crate::say;
use crate::signals::{Signals, end_by};
use crate::temp_dir::Folder;
use crate::threads;
use crate::variables;
use child::{Child, ChildExit, Children, Start};
use std::collections::BTreeMap;
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How long to wait for samples before everything else is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// A socket's file exists before the agent listens: for a moment, or where CPUs are scarce for
/// seconds.
const BINDING: Duration = Duration::from_secs(10);
/// How soon to try again then.
const BINDING_POLL: Duration = Duration::from_millis(1);

/// Runs the verb.
pub fn run(arguments: Run) -> Result<ExitCode, Error> {
    let failed = |error: Error| if error.exit == Exit::Failed { error.exit(Exit::RunFailed) } else { error };
    run_all(arguments).map_err(failed)
}

fn run_all(arguments: Run) -> Result<ExitCode, Error> {
    let signals = Signals::take()?;
    let library = library::find(arguments.lib.as_deref())?;
    let (folder, watch) = sockets::make()?;
    let program = Path::new(arguments.command.first().map_or("".as_ref(), |first| first.as_os_str()));
    let Some(file) = preload_check::find_program(program) else {
        let what = format!("there is no program {}", program.display());
        return Err(Error::new(what, "check its name, or give its path").exit(Exit::NoProgram));
    };
    let obstacle = preload_check::obstacle_of(&file);
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let plan = Plan::new(&arguments.output, &name, std::process::id())?;
    if let Some(PreloadProblem { what, next }) = &obstacle {
        say(format_args!("swipr: warning: {what}; it runs without being recorded\nnext: {next}"));
    }
    for what in variables::misspelt(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())) {
        say(format_args!("swipr: warning: {what}"));
    }
    let session = Session::new(plan.open()?, arguments.output.shape(), Recorder::Run, &arguments.sampling);
    let requires_samples = arguments.require_samples;
    let mut runner = Runner {
        deadline: arguments.sampling.duration.map(|duration| Instant::now() + duration),
        // The program may write there, and read what is typed.
        progress: Progress::new(if stdout().is_terminal() { Talk::Quiet } else { plan.talk }),
        arguments,
        signals,
        library: obstacle.is_none().then_some(library),
        folder,
        new_sockets: watch.start(session.waker())?,
        session: Some(session),
        plan,
        arriving: Vec::new(),
        has_children: false,
        left: BTreeMap::new(),
        label: name,
        used: None,
        started_ticks: Process::new(std::process::id()).and_then(|own| own.started_ticks()),
        outcome: None,
    };
    let ended = runner.all_iterations()?;
    runner.find_left();
    runner.write();
    // Also where end_by leaves at once.
    drop(runner.folder);
    // An obstacle was reported at the start, with what to do.
    let failure = runner.outcome.and_then(Result::err).filter(|_| obstacle.is_none());
    if let Some(error) = failure.as_ref().filter(|error| error.exit != Exit::NoReader) {
        say(error);
    }
    match ended {
        ChildExit::Signal(number) => end_by(number),
        ChildExit::Status(0) if requires_samples && (failure.is_some() || obstacle.is_some()) => {
            Ok(ExitCode::from(Exit::RunFailed as u8))
        }
        ChildExit::Status(status) => Ok(ExitCode::from(status)),
    }
}

/// A process whose socket has appeared.
struct Arriving {
    socket: PathBuf,
    /// By the socket's name.
    pid: u32,
    /// Of that process, if it is one here.
    name: String,
    until: Instant,
}

/// What a run needs.
struct Runner {
    arguments: Run,
    signals: Signals,
    /// `None`: it cannot be loaded into this program.
    library: Option<PathBuf>,
    folder: Folder,
    new_sockets: Receiver<PathBuf>,
    /// Until it is written.
    session: Option<Session>,
    plan: Plan,
    progress: Progress,
    deadline: Option<Instant>,
    /// Sockets at which no agent has answered yet.
    arriving: Vec<Arriving>,
    /// Child processes with an agent that were not to be recorded.
    has_children: bool,
    /// Those that run on after the program, with their names.
    left: BTreeMap<u32, String>,
    label: String,
    /// The CPU time of the iterations that have ended.
    used: Option<Duration>,
    /// When this command was started.
    started_ticks: Option<u64>,
    /// What became of the recording, once it is over.
    outcome: Option<Result<(), Error>>,
}

impl Runner {
    fn all_iterations(&mut self) -> Result<ChildExit, Error> {
        let mut iteration = 1;
        loop {
            let ended = self.iteration()?;
            if iteration == self.arguments.iteration_count || ended != ChildExit::Status(0) {
                return Ok(ended);
            }
            iteration += 1;
        }
    }

    fn iteration(&mut self) -> Result<ChildExit, Error> {
        let follows = self.arguments.sampling.subprocesses;
        let children = if follows { Children::AreRecorded } else { Children::AreNot };
        let start = Start {
            words: &self.arguments.command,
            library: self.library.as_deref(),
            folder: self.folder.path(),
            children,
        };
        let mut child = Child::start(&start, &self.signals)?;
        let pid = child.pid();
        let what = format!("{} ({pid})", self.label);
        loop {
            let pause = if self.arriving.is_empty() { POLL_INTERVAL } else { BINDING_POLL };
            let over = match self.session.as_mut().map(|session| session.pump(pause)) {
                Some(Ok(over)) => over,
                Some(Err(error)) => {
                    self.fail(error);
                    None
                }
                None => {
                    std::thread::sleep(POLL_INTERVAL);
                    None
                }
            };
            while let Ok(socket) = self.new_sockets.try_recv() {
                self.meet(&socket, pid);
            }
            self.attach();
            child.hand_on(&self.signals);
            let used = child.cpu_time(children);
            self.used = used.map_or(self.used, |used| Some(self.used.unwrap_or_default() + used));
            if let Some(ended) = child.ended() {
                if let Err(error) = self.settle() {
                    self.fail(error);
                }
                return Ok(ended);
            }
            if over.is_some_and(|(_, over)| over == Over::Whole) && self.is_over() {
                self.write();
            }
            if let Some(session) = &self.session {
                self.progress.show(&what, || session.figures());
            }
        }
    }

    /// The recording is over because of an error; the program is not.
    fn fail(&mut self, error: Error) {
        self.session = None;
        self.outcome = Some(Err(error));
    }

    fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the time is over, and everything that was recorded is here.
    fn is_over(&self) -> bool {
        let is_last = self.left().is_some_and(|left| left < POLL_INTERVAL);
        is_last && self.session.as_ref().is_some_and(|session| session.running() == 0)
    }

    /// A socket has appeared: the program's, after an exec(2) another one of it, or a child's.
    fn meet(&mut self, socket: &Path, main: u32) {
        let name = socket.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(pid) = name.split('-').next().and_then(|pid| pid.parse::<u32>().ok()) else { return };
        if !sockets::is_of_program(socket, pid, main) {
            return;
        }
        let follows = self.arguments.sampling.subprocesses;
        if pid != main && !follows {
            self.has_children = true;
            return;
        }
        let client = Client::new(Endpoint::Path(socket.to_owned()));
        if self.session.is_none() || self.left().is_some_and(|left| left.is_zero()) {
            // The time is over. It waits for a recording all the same: one tick is enough for it.
            let _ = threads::start(move || _ = client.get("/threads").map(|mut answer| answer.bytes()));
            return;
        }
        // After exec(2) a process has another socket, and nothing listens at the one before.
        self.arriving.retain(|other| other.pid != pid);
        let (name, until) = (sockets::name_of_descendant(pid), Instant::now() + BINDING);
        self.arriving.push(Arriving { socket: socket.to_owned(), pid, name, until });
    }

    /// Asks those for their samples that have come. None holds up the others: each waits until it
    /// is recorded.
    fn attach(&mut self) {
        for arriving in std::mem::take(&mut self.arriving) {
            let Arriving { socket, pid, name: _, until } = &arriving;
            let left = self.left();
            let Some(session) = &mut self.session else { return };
            let follows = self.arguments.sampling.subprocesses;
            // In another PID namespace the process has another id for itself than for this command.
            let process = |listens: Option<u32>| {
                let pid = listens.unwrap_or(*pid);
                let name = Process::new(pid).map(|found| found.name()).unwrap_or_default();
                let root = follows.then(|| root(&name, pid, self.arguments.output.reuse()));
                Member { pid, name, root }
            };
            let client = Client::new(Endpoint::Path(socket.clone()));
            let query = self.arguments.sampling.query_of_any(left);
            if session.add(client, Status::default(), query, process).is_ok() {
                continue;
            }
            if Instant::now() < *until && socket.exists() && Process::new(*pid).is_some() {
                self.arriving.push(arriving);
            } else {
                session.unrecorded.add(*pid, arriving.name);
            }
        }
    }
}
