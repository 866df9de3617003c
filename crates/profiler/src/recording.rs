//! What a client asks for, and the seam between the server (which parses requests
//! and moves bytes) and the sampler (which makes them).

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
    /// Until it is told to stop.
    Open,
}

/// One recording, as asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Time between two ticks.
    pub interval: Duration,
    /// How long.
    pub length: Length,
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
    /// What is wanted of it.
    pub purpose: WriterTask,
    /// Which names are looked up.
    pub symbolize: Symbolize,
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
    /// Those of code made at run time, which nobody knows later; others have their address and
    /// module.
    Lazy,
    /// None.
    Never,
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
    /// Threads that match may come later: the recording begins also where there is none.
    pub may_come: bool,
}

/// A state of threads, as one asks for it.
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
    /// To name these addresses, by the code that there is while it runs.
    Names(Vec<u64>),
    /// To list all executable memory.
    Code,
    /// To be kept for so long, see [`WriterTask::Last`].
    Keep(Duration),
    /// No recording: what was kept of so long a time, as if it had been one.
    Last(Duration),
}

/// Why a recording could not be started.
#[derive(Debug, PartialEq, Eq)]
pub enum StartError {
    /// [`MAX_RECORDINGS`] are running.
    TooMany,
    /// The agent is stopping.
    Stopping,
    /// Nothing is kept that could be written.
    NothingKept,
    /// There is no such thread; the text says which there are.
    NoThread(String),
    /// The agent has turned itself off, for this reason.
    Off(&'static str),
    /// The operating system refused something; the text says what.
    Failed(String),
}

/// The reader of an output is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// What is asked of the symbol server.
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
    /// Whether nobody reads any more, so that the recording should end.
    fn is_closed(&self) -> bool;
    /// Whether a recording without a single sample is wanted all the same (a file is; a client is
    /// told why there is none instead). If not, such a recording writes nothing.
    fn takes_empty(&self) -> bool {
        false
    }
    /// What takes the samples in place of the format that was asked for, where they are wanted as
    /// they are; then nothing is written.
    fn format(&self) -> Option<Box<dyn Format>> {
        None
    }
    /// The recording is over: its figures, or why it failed.
    fn finish(self: Box<Self>, end: Result<Summary, String>);
}

/// Who makes recordings. The server knows no more of the sampler than this.
pub trait Recorder: Send + Sync {
    /// Starts a recording that writes into `output` until it is over or
    /// `output` is closed. Does not wait for the recording.
    fn start(&self, request: Request, output: Box<dyn Output>) -> Result<(), StartError>;
    /// Has something looked up for a symbol server's client. Does not wait for it.
    fn ask(&self, _question: Question) -> Result<(), StartError> {
        Err(StartError::Failed("there is nobody who looks names up".into()))
    }
    /// The server thread woke up: does what other threads of the process asked for.
    fn attend(&self) {}
    /// The server thread is to wake up so soon although nothing wakes it.
    fn attend_within(&self) -> Option<Duration> {
        None
    }
    /// Why the agent has turned itself off, if it has (for `/health`).
    fn off(&self) -> Option<&'static str> {
        None
    }
    /// Where a browser finds the live page, if the agent listens by TCP.
    fn live_page(&self) -> Option<String> {
        None
    }
    /// Places that were asked for and where the agent does not listen, each with the reason.
    fn not_listening(&self) -> &[String] {
        &[]
    }
    /// The agent's state as a JSON object (for `/status`).
    fn status(&self) -> String;
    /// The same for Prometheus (for `/metrics`).
    fn metrics(&self) -> String;
}
