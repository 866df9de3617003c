//! `swipr run`: a program from its start to its end, with the agent inside, and on request its
//! children. The program has its own standard streams, signals and exit status; what the command
//! itself prints goes to standard error. A recording that fails changes nothing of that.

mod child;
mod socket_watch;

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
use crate::record::unrecorded::{Member, listed, report_unrecorded};
use crate::record::{Plan, root, tell};
use crate::say;
use crate::signals::{Signals, end_by};
use crate::temp_dir::Folder;
use crate::variables;
use child::{Child, ChildExit, Children, Start};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How long to wait for samples before everything else is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long the program's last samples may take to be read after its end; then its children's
/// recordings are ended.
const ENDING: Duration = Duration::from_millis(300);
/// A socket's file exists before the agent listens: for a moment, or where CPUs are scarce for
/// seconds.
const BINDING: Duration = Duration::from_secs(10);
/// CPU time that may be missing without a word: the kernel counts it in hundredths of a second, and
/// the loader's is not recorded.
const TOLERATED: Duration = Duration::from_millis(150);
/// What to do about processes that the program left running.
const FOREGROUND: &str = "have it stay in the foreground, or start it with LD_PRELOAD (see README) and `swipr record` what goes on";

/// What to do about samples that were lost at the program's end.
const FULL_END: &str = "a program that ends by exit(3), and not by a signal or _exit(2), hands over its last samples; a higher -r loses less";

/// Runs the verb.
pub fn run(arguments: Run) -> Result<ExitCode, Error> {
    let failed = |error: Error| if error.exit == Exit::Failed { error.exit(Exit::RunFailed) } else { error };
    run_all(arguments).map_err(failed)
}

fn run_all(arguments: Run) -> Result<ExitCode, Error> {
    let signals = Signals::take()?;
    let library = library::find(arguments.lib.as_deref())?;
    let (folder, new_sockets) = sockets()?;
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
        progress: Progress::new(plan.talk),
        arguments,
        signals,
        library: obstacle.is_none().then_some(library),
        folder,
        new_sockets,
        session: Some(session),
        plan,
        arriving: Vec::new(),
        children: 0,
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
    if let Some(error) = &failure {
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

/// A folder for the agents' sockets, and those that appear in it.
fn sockets() -> Result<(Folder, Receiver<PathBuf>), Error> {
    let folder = Folder::for_sockets().map_err(|error| {
        Error::new(
            format!("cannot make a folder for sockets: {error}"),
            "set XDG_RUNTIME_DIR to one that is writable",
        )
    })?;
    let new_sockets = socket_watch::watch(folder.path()).map_err(|error| {
        Error::new(
            format!("cannot watch {}: {error}", folder.path().display()),
            "raise fs.inotify.max_user_instances",
        )
    })?;
    Ok((folder, new_sockets))
}

/// Processes whose agents have sockets in the folder, by the names that `child.rs` gives them.
fn listening(folder: &Path) -> Vec<u32> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.split_once('-')?.0.parse().ok()).collect()
}

/// Whether a socket in the folder is one of the program's. Any user can make one where root runs a
/// program: another user's must be that of a descendant that became this user.
fn is_of_program(socket: &Path, pid: u32, main: u32) -> bool {
    let Ok(owner) = std::fs::symlink_metadata(socket).map(|found| found.uid()) else { return true };
    // SAFETY: it takes nothing and cannot fail.
    if owner == unsafe { libc::geteuid() } {
        return true;
    }
    let parent = |process: &Process| process.parent().and_then(Process::new);
    let process = Process::new(pid).filter(|process| process.uid() == Some(owner));
    std::iter::successors(process, parent).any(|process| process.pid == main)
}

/// A process whose socket has appeared.
struct Arriving {
    socket: PathBuf,
    pid: u32,
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
    children: u32,
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
        let start = Start {
            words: &self.arguments.command,
            library: self.library.as_deref(),
            folder: self.folder.path(),
            children: if follows { Children::AreRecorded } else { Children::AreNot },
        };
        let mut child = Child::start(&start, &self.signals)?;
        let pid = child.pid();
        let what = format!("{} ({pid})", self.label);
        loop {
            let over = match self.session.as_mut().map(|session| session.pump(POLL_INTERVAL)) {
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
            self.used = child.cpu_time().map_or(self.used, |used| Some(self.used.unwrap_or_default() + used));
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
        if !is_of_program(socket, pid, main) {
            return;
        }
        let follows = self.arguments.sampling.subprocesses;
        if pid != main && !follows {
            self.children += 1;
            return;
        }
        let client = Client::new(Endpoint::Path(socket.to_owned()));
        if self.session.is_none() || self.left().is_some_and(|left| left.is_zero()) {
            // The time is over. It waits for a recording all the same: one tick is enough for it.
            std::thread::spawn(move || client.get("/threads").map(|mut answer| answer.bytes()));
            return;
        }
        // After exec(2) a process has another socket, and nothing listens at the one before.
        self.arriving.retain(|other| other.pid != pid);
        let name = Process::new(pid).map(|found| found.name()).unwrap_or_default();
        let until = Instant::now() + BINDING;
        self.arriving.push(Arriving { socket: socket.to_owned(), pid, name, until });
    }

    /// Asks those for their samples that have come. None holds up the others: each waits until it
    /// is recorded.
    fn attach(&mut self) {
        for arriving in std::mem::take(&mut self.arriving) {
            let Arriving { socket, pid, name, until } = &arriving;
            let left = self.left();
            let Some(session) = &mut self.session else { return };
            let follows = self.arguments.sampling.subprocesses;
            let root = follows.then(|| root(name, *pid, self.arguments.output.reuse()));
            let process = Member { pid: *pid, name: name.clone(), root };
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

    /// The program has ended: what it said last is taken, its children are left.
    fn settle(&mut self) -> Result<(), Error> {
        let Some(session) = &mut self.session else { return Ok(()) };
        // Its own sources end with it.
        let until = Instant::now() + ENDING;
        while session.running() > 0 && Instant::now() < until {
            session.pump(POLL_INTERVAL)?;
        }
        session.stop()
    }

    /// Which processes go on after the program, as a daemon does, and are not about to end, too.
    fn find_left(&mut self) {
        let until = Instant::now() + ENDING;
        let place = |process: &Process| process.variable("SWIPR_SOCKET").unwrap_or_default();
        while self.session.is_some() {
            let all = Process::all().into_iter();
            let listens = listening(self.folder.path());
            // A process that is just executing a program has no environment.
            let executes = |process: &Process| {
                listens.contains(&process.pid)
                    && process.started_ticks() >= self.started_ticks
                    && process.environment().iter().all(String::is_empty)
            };
            let is_left = |process: &Process| Path::new(&place(process)).starts_with(self.folder.path());
            let left = all.filter(|process| is_left(process) || executes(process));
            self.left = left.map(|process| (process.pid, process.name())).collect();
            if self.left.is_empty() || Instant::now() > until {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// How much of the program's CPU time is not in the recording, and how much it used; `None`:
    /// hardly any, or not all of it was to be recorded.
    fn missing(&self, recorded: Duration) -> Option<(Duration, Duration)> {
        let sampling = &self.arguments.sampling;
        let is_of_all =
            sampling.duration.is_none() && sampling.thread_name.is_none() && !sampling.subprocesses;
        let used = self.used.filter(|_| is_of_all)?;
        let missing = used.checked_sub(recorded)?;
        (missing > TOLERATED && missing > used / 20).then_some((missing, used))
    }

    /// Writes the recording, once.
    fn write(&mut self) {
        self.progress.clear();
        let Some(mut session) = self.session.take() else { return };
        let stopped = session.stop();
        let missing = self.missing(session.running_time());
        let unrecorded = self.unrecorded(&mut session);
        let left = (!self.left.is_empty())
            .then(|| format!("the program has ended, and left running: {}", listed(&self.left)));
        let done = stopped.and_then(|()| session.finish()).map(|summary| tell(&self.plan, &summary));
        self.outcome = Some(done.map_err(|error| match &left {
            Some(left) => Error { what: format!("{}; {left}", error.what), next: FOREGROUND.into(), ..error },
            None => error,
        }));
        report_unrecorded(&unrecorded, self.plan.talk);
        if let Some((missing, used)) = missing.filter(|_| self.plan.talk != Talk::Quiet) {
            let (missing, used) = (missing.as_secs_f64(), used.as_secs_f64());
            say(format_args!(
                "swipr: {missing:.1} of {used:.1} s of the program's CPU time are not in the recording\nnext: {FULL_END}"
            ));
        }
        if self.plan.talk == Talk::Quiet {
            return;
        }
        match (left, self.children) {
            (Some(left), _) if self.outcome.as_ref().is_some_and(Result::is_ok) => {
                say(format_args!("swipr: {left}\nnext: {FOREGROUND}"));
            }
            (None, count @ 1..) => {
                let noun = if count == 1 { "process was" } else { "processes were" };
                say(format_args!(
                    "swipr: {count} child {noun} not recorded\nnext: -s follows child processes"
                ));
            }
            _ => {}
        }
    }

    /// The processes that are not in the recording, though they should be, with their names.
    fn unrecorded(&mut self, session: &mut Session) -> BTreeMap<u32, String> {
        for arriving in self.arriving.drain(..) {
            session.unrecorded.add(arriving.pid, arriving.name);
        }
        for pid in self.left.keys() {
            session.unrecorded.leave_out(*pid);
        }
        match self.arguments.sampling.subprocesses {
            true => session.unrecorded.names().clone(),
            // Of the program alone, its recording says so.
            false => BTreeMap::new(),
        }
    }
}
