//! Requests for recordings, and the interface between the server, which parses requests and moves
//! bytes, and the agent, which makes recordings.

use std::fmt;
use std::time::Duration;
use swipr_formats::Format;
use swipr_formats::model::{Mode, Summary};

/// Recordings that may run at the same time; one more is refused.
pub const MAX_RECORDINGS: usize = 8;

/// How long a recording lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many ticks.
    Ticks(u64),
    /// So much time, whatever number of ticks that makes.
    Time(Duration),
    /// Until it is stopped.
    Open,
}

/// The request for a recording.
#[derive(Clone, Debug)]
pub struct Request {
    /// Time between two ticks.
    pub interval: Duration,
    /// How long.
    pub length: Length,
    /// The name by which a client may end it early.
    pub id: Option<String>,
    /// What weights count.
    pub mode: Mode,
    /// What hits running threads.
    pub source: SampleSource,
    /// Which output format, and its options.
    pub format: swipr_formats::Selection,
    /// Only threads whose name matches.
    pub threads: Option<regex_lite::Regex>,
    /// Which other samples are left out.
    pub filter: Filter,
    /// What the recording is made for.
    pub purpose: WriterTask,
    /// Which names are looked up.
    pub symbolize: Symbolize,
    /// Which frames are shown.
    pub frames: ShownFrames,
}

/// What hits running threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleSource {
    /// A timer on the thread's CPU clock, at a tick of the kernel.
    #[default]
    Timer,
    /// A signal, at any moment, while the sampler has the thread's CPU.
    Preempt,
}

/// Which names are looked up while the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symbolize {
    /// All.
    #[default]
    Now,
    /// Those of JIT code, which cannot be found later. Other frames have their address and module.
    Lazy,
    /// None.
    Never,
}

/// Which frames of a program that an interpreter or JIT code runs are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownFrames {
    /// The functions of its language between the native ones.
    #[default]
    Merged,
    /// The functions of its language alone; of stacks without any, the native ones.
    Interpreter,
    /// The native ones alone.
    Native,
}

/// What samples have to be like. The default takes all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only these threads; none: all.
    pub tids: Vec<u32>,
    /// Only threads in these states; none: in all.
    pub states: Vec<StateFilter>,
    /// Only stacks with a frame whose name matches.
    pub include: Option<regex_lite::Regex>,
    /// Only stacks without such a frame.
    pub exclude: Option<regex_lite::Regex>,
    /// Threads that match may come later: the recording also begins if there is none.
    pub may_come: bool,
}

/// A state of threads, in a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateFilter {
    /// On a CPU.
    Running,
    /// Ready to run, and no CPU is there.
    Waiting,
    /// In the kernel, until something happens.
    Blocked,
}

/// What a recording is made for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WriterTask {
    /// Its samples.
    #[default]
    Samples,
    /// To symbolize these addresses, by the code that there is while it runs.
    Names(Vec<u64>),
    /// To list all executable memory.
    Code,
    /// To feed the flight recorder, which keeps so much, see [`WriterTask::Last`].
    Keep(Duration),
    /// No recording: the flight record of so long a time, written as if it were one.
    Last(Duration),
}

/// Why a recording could not be started.
#[derive(Debug, PartialEq, Eq)]
pub enum StartError {
    /// [`MAX_RECORDINGS`] are running.
    TooMany,
    /// The agent is stopping.
    Stopping,
    /// There is no flight recorder.
    NoFlightRecorder,
    /// There is no such thread; the text lists the threads.
    NoThread(String),
    /// The agent is disabled, for this reason.
    Off(&'static str),
    /// The operating system refused something; the text says what.
    Failed(String),
}

/// What a client reads of [`StartError::Stopping`].
pub const STOPPING: &str = "the agent is stopping";

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::TooMany => {
                write!(f, "{MAX_RECORDINGS} recordings are running, which is the most")
            }
            StartError::Stopping => f.write_str(STOPPING),
            StartError::NoFlightRecorder => f.write_str(
                "there is no flight recorder: the program has to be started with SWIPR_CONTINUOUS=1",
            ),
            StartError::Off(reason) => write!(f, "the agent has turned itself off: {reason}"),
            StartError::NoThread(what) => f.write_str(what),
            StartError::Failed(reason) => write!(f, "the recording could not be started: {reason}"),
        }
    }
}

/// The reader of an output is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// A kind of question to the symbol server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// `/symbolicate/v5`
    Symbolicate,
    /// `/source/v1`
    Source,
    /// `/asm/v1`
    Assembly,
}

/// A question to the symbol server, and where its answer goes.
pub struct Question {
    /// Of which kind.
    pub kind: QuestionKind,
    /// Its JSON.
    pub body: Vec<u8>,
    /// For the answer's JSON.
    pub output: Box<dyn Output>,
}

/// Where a recording's bytes go: a client's connection or a file.
/// Used by one of the agent's own threads only.
pub trait Output: Send {
    /// Takes the bytes; may wait while the reader is behind, but not without a bound.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed>;
    /// Whether the reader is gone, so that the recording should end.
    fn is_closed(&self) -> bool;
    /// Whether a recording without a single sample is wanted all the same. A file is; a client gets
    /// an error with the reason instead. If not, such a recording writes nothing.
    fn takes_empty(&self) -> bool {
        false
    }
    /// Takes the samples in place of the requested format, for an output that wants the samples
    /// themselves. Then nothing is written.
    fn format(&self) -> Option<Box<dyn Format>> {
        None
    }
    /// The recording is over: its figures, or why it failed.
    fn finish(self: Box<Self>, end: Result<Summary, String>);
}

/// Makes recordings. This is all that the server knows of the agent.
pub trait Recorder: Send + Sync {
    /// Starts a recording that writes into `output` until it is over or
    /// `output` is closed. Does not wait for the recording.
    fn start(&self, request: Request, output: Box<dyn Output>) -> Result<(), StartError>;
    /// Ends recordings of clients: those with this id, or those without one. Returns how many. Each
    /// client gets what there is. Does not wait for that.
    fn stop(&self, _id: Option<&str>) -> usize {
        0
    }
    /// Has a question of a symbol server's client answered. Does not wait for the answer.
    fn ask(&self, _question: Question) -> Result<(), StartError> {
        Err(StartError::Failed("nothing looks names up".into()))
    }
    /// The server thread woke up. Starts the recordings that other threads have submitted, and ends
    /// the process if all its other threads have ended.
    fn poll(&self) {}
    /// How soon the server thread must wake up without being woken.
    fn poll_within(&self) -> Option<Duration> {
        None
    }
    /// Why the agent is disabled, if it is (for `/health`).
    fn off(&self) -> Option<&'static str> {
        None
    }
    /// Where a browser finds the live page, if the agent listens by TCP.
    fn live_page(&self) -> Option<String> {
        None
    }
    /// Configured places where the agent does not listen, each with the reason.
    fn not_listening(&self) -> &[String] {
        &[]
    }
    /// The agent's state as a JSON object (for `/status`).
    fn status(&self) -> String;
    /// The same for Prometheus (for `/metrics`).
    fn metrics(&self) -> String;
}
