//! Recordings that the configuration starts: the flight recorder (`SWIPR_CONTINUOUS`) and the file
//! of the process's whole life (`SWIPR_OUTPUT`).
//!
//! At exit the process waits until the file is complete, at most 2 seconds. A process without such
//! a file does not wait. Not here: the flight recorder's memory (`swipr_formats::FlightRecorder`).

use crate::agent::Agent;
use crate::config::{Config, LifeFile};
use crate::output::{self, Completion, FileOutput};
use crate::stop_time::StopTime;
use std::sync::Arc;
use std::time::Duration;
use swipr_formats::Selection;
use swipr_formats::model::{Mode, Summary};
use swipr_os::log;
use swipr_os::process;
use swipr_server::recording::{Closed, Length, Output, Request, Symbolize, WriterTask};

/// How long the end of the process may wait for its file.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The interval of a whole life's recording.
const INTERVAL: Duration = Duration::from_millis(10);

/// The recording of the process's whole life.
pub struct WholeRun {
    stop: Arc<StopTime>,
    completion: Arc<Completion>,
}

/// An output that throws all bytes away.
struct NullOutput;

impl Output for NullOutput {
    fn write(&mut self, _: &[u8]) -> Result<(), Closed> {
        Ok(())
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn finish(self: Box<Self>, _: Result<Summary, String>) {}
}

fn request(
    interval: Duration,
    format: &'static swipr_formats::FormatInfo,
    purpose: WriterTask,
    symbolize: Symbolize,
) -> Request {
    Request {
        interval,
        length: Length::Open,
        mode: Mode::Wall,
        source: Default::default(),
        format: Selection { format, options: Default::default() },
        threads: None,
        filter: Default::default(),
        purpose,
        symbolize,
        frames: Default::default(),
        id: None,
    }
}

/// Called by the server thread, which has the agent's descriptors. Returns the recording of the
/// process's whole life, if there is one.
pub fn begin(agent: &Arc<Agent>, config: &Config) -> Option<WholeRun> {
    if let Some(continuous) = config.continuous {
        let purpose = WriterTask::Keep(continuous.keep);
        let request = request(continuous.interval, &swipr_formats::GOROUTINES, purpose, Symbolize::Lazy);
        let _ = agent.submit(request, Box::new(NullOutput), Arc::default());
    }
    let whole = config.life_file.as_ref().and_then(|file| begin_file(agent, file));
    if config.continuous.is_some() || config.life_file.is_some() {
        agent.start_submitted();
    }
    whole
}

fn begin_file(agent: &Arc<Agent>, file: &LifeFile) -> Option<WholeRun> {
    let (stop, completion) = (Arc::<StopTime>::default(), Arc::<Completion>::default());
    let path = file.path(process::pid());
    // A child that runs as another user may not be able to write where its parent could.
    if let Err(error) = output::check(&path) {
        log::always(format_args!("cannot use SWIPR_OUTPUT: {error}; nothing is recorded for it"));
        return None;
    }
    let output = FileOutput::renamed_when_complete(path, completion.clone());
    let request = request(INTERVAL, file.format, WriterTask::Samples, Symbolize::Now);
    // If it is refused, the completion says so.
    let _ = agent.submit(request, Box::new(output), stop.clone());
    Some(WholeRun { stop, completion })
}

impl WholeRun {
    /// As [`end`], but takes no lock and does not wait: to be called until the file is complete.
    pub fn is_complete(&self, agent: &Agent) -> bool {
        self.stop.set();
        agent.wake_all();
        self.completion.is_set()
    }
}

/// The process ends: its file is completed. Returns why it could not be.
pub fn end(whole: &WholeRun, agent: &Agent) -> Option<String> {
    whole.stop.set();
    agent.wake_sampler();
    match whole.completion.wait(TIMEOUT) {
        Some(Ok(_)) => None,
        Some(Err(error)) => Some(error),
        None => Some("the file was not complete in time".to_owned()),
    }
}
