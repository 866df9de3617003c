//! The interface for Rust programs: a guard that records, and what it takes to start one. Not here:
//! reports (`report.rs`).

#[cfg(feature = "criterion")]
mod criterion;
mod kept_output;
mod report;

#[cfg(feature = "criterion")]
pub use self::criterion::BenchProfiler;
pub use report::{Frames, Key, Report};

use crate::config::Config;
use crate::lifecycle::{self, Wait};
use crate::output::Completion;
use crate::stop_time::StopTime;
use kept_output::MemoryOutput;
use regex_lite::Regex;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swipr_formats::model::Mode;
use swipr_formats::{MemoryRecording, Selection};
use swipr_os::{process, this_library};
use swipr_server::listen::{Pattern, Place};
use swipr_server::recording::{Filter, Length, Request, Symbolize};

/// How long the end of a recording may take: it is symbolized then.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Why nothing is profiled. The program can continue without a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// What to record, and how often.
#[derive(Clone, Debug)]
pub struct Builder {
    interval: Duration,
    mode: Mode,
    threads: Option<String>,
    socket: Option<String>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { interval: Duration::from_millis(10), mode: Mode::Cpu, threads: None, socket: None }
    }
}

impl Builder {
    /// Samples a second, 1 to 10,000; by default 100.
    pub fn hz(mut self, hz: u32) -> Builder {
        let ns = 1_000_000_000u64.checked_div(u64::from(hz));
        self.interval = ns.map_or(Duration::ZERO, Duration::from_nanos);
        self
    }

    /// Threads that use CPU time ([`Mode::Cpu`], the default), or every thread, waiting or not
    /// ([`Mode::Wall`]).
    pub fn mode(mut self, mode: Mode) -> Builder {
        self.mode = mode;
        self
    }

    /// Only threads whose name matches this regular expression.
    pub fn threads(mut self, regex: &str) -> Builder {
        self.threads = Some(regex.to_owned());
        self
    }

    /// Where the profiler also listens (see `docs/http.md`), if it does not run already. The
    /// default is an address that no client knows: an abstract socket of a random name. The
    /// variable `SWIPR_LISTEN` opens a second address in any case.
    pub fn socket(mut self, pattern: &str) -> Builder {
        self.socket = Some(pattern.to_owned());
        self
    }

    /// Starts to record: an error if 8 recordings run in this process. A profiler of this crate
    /// that runs already is used. A preloaded `libswipr.so` is another one: the one that records
    /// first has the samples, and recordings of the other end with an error.
    pub fn start(self) -> Result<Profiler, Error> {
        let shortest_and_longest = Duration::from_micros(100)..=Duration::from_secs(1);
        if !shortest_and_longest.contains(&self.interval) {
            return Err(Error("hz must be from 1 to 10000".into()));
        }
        let threads = self.threads.as_deref().map(Regex::new).transpose();
        let threads = threads.map_err(|error| Error(format!("threads is no regular expression: {error}")))?;
        this_library::keep_loaded();
        match lifecycle::start(self.config()?, Wait::Yes) {
            Ok(()) | Err(lifecycle::LifeError::AlreadyRunning) => {}
            Err(error) => return Err(Error(error.to_string())),
        }
        let kept = Arc::new(Mutex::new(MemoryRecording::new()));
        let (completion, stop) = (Arc::<Completion>::default(), Arc::<StopTime>::default());
        let format = swipr_formats::find("folded").ok_or_else(|| Error("there are no formats".into()))?;
        let request = Request {
            interval: self.interval,
            length: Length::Open,
            mode: self.mode,
            source: Default::default(),
            format: Selection { format, options: Default::default() },
            threads,
            filter: Filter { may_come: true, ..Filter::default() },
            purpose: Default::default(),
            symbolize: Symbolize::Now,
            frames: Default::default(),
            id: None,
        };
        let output = MemoryOutput::new(kept.clone(), completion.clone());
        lifecycle::submit(request, Box::new(output), stop.clone())
            .map_err(|error| Error(error.to_string()))?;
        Ok(Profiler { kept, completion, stop, process: process::pid() })
    }
}

impl Builder {
    fn config(&self) -> Result<Config, Error> {
        let config = Config::with_socket(self.socket.as_deref());
        let mut config = config.map_err(|error| Error(error.to_string()))?;
        if self.socket.is_none()
            && let Some(main) = config.places.first_mut()
        {
            *main = Pattern::parse(b"swipr-{PID}-{UUID}").map(Place::Abstract).map_err(Error)?;
        }
        Ok(config)
    }
}

/// A recording that is under way. It ends when this is dropped. After a fork it is the parent's:
/// in the child, `stop` is an error and reports are empty.
#[derive(Debug)]
pub struct Profiler {
    kept: Arc<Mutex<MemoryRecording>>,
    completion: Arc<Completion>,
    stop: Arc<StopTime>,
    process: u32,
}

impl Profiler {
    /// 100 samples a second of the threads that use CPU time.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// What was recorded so far. The recording continues. Samples of the last twentieth of a second
    /// may be missing.
    pub fn report(&self) -> Report {
        match self.is_parents() {
            // A thread that held the lock at the fork does not exist here.
            true => Report::of(&Mutex::new(MemoryRecording::new())),
            false => Report::of(&self.kept),
        }
    }

    /// Ends the recording; all that was sampled is in the report.
    pub fn stop(self) -> Result<Report, Error> {
        if self.is_parents() {
            return Err(Error("the recording was started before a fork: it is the parent process's".into()));
        }
        self.end();
        match self.completion.wait(TIMEOUT) {
            Some(Ok(_)) => Ok(Report::of(&self.kept)),
            Some(Err(reason)) => Err(Error(reason)),
            None => Err(Error("the recording did not end in time".into())),
        }
    }

    fn is_parents(&self) -> bool {
        self.process != process::pid()
    }

    fn end(&self) {
        self.stop.set();
        lifecycle::wake_sampler();
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        self.end();
    }
}
