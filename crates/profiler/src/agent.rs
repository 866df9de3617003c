//! The agent: one per process. It starts and ends recordings (`agent/recordings.rs`) for the server
//! (`agent/shared.rs`) and the C interface.

mod figures;
mod metrics;
mod recordings;
mod shared;
mod status;
mod wanted_threads;

use crate::channel::{Receiver, Sender, channel};
use crate::config::Config;
use crate::counters::{AgentCounters, RecordingCounters};
use crate::jit::JitCode;
use crate::mappings::Mappings;
use crate::sampler;
use crate::writer::{NameSources, SharedFlightRecorder};
use crate::{agent_threads, symbol_server};
use recordings::{Running, Submitted};
pub use shared::SharedAgent;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use swipr_os::disabled;
use swipr_os::locks::lock;
use swipr_os::process::EpochClock;
use swipr_server::listen::Address;
use swipr_server::recording::{Question, STOPPING, StartError};
use swipr_symbols::symbolizer::{Budget, Symbolizer};

/// Each source of JIT code may use one part in so many of the memory for names.
const JIT_SHARE: usize = 4;

/// What all threads of the agent share.
pub struct Agent {
    log: swipr_os::log::Log,
    sampler: sampler::Handle,
    counters: Arc<AgentCounters>,
    symbolizer: Arc<Mutex<Symbolizer>>,
    flight_recorder: SharedFlightRecorder,
    jit_code: Arc<Mutex<JitCode>>,
    symbol_time: Duration,
    running: Mutex<Vec<Running>>,
    /// Sums over the recordings that ended. Added to where one leaves `running`, under its lock.
    ended: RecordingCounters,
    submitted: Mutex<Vec<Submitted>>,
    /// Recordings whose output is not complete have a copy.
    writing: Arc<()>,
    /// To the symbol server's thread, while there is one.
    questions: Mutex<Option<Sender<Question>>>,
    latest: Arc<Mutex<Option<Arc<Mappings>>>>,
    stopping: AtomicBool,
    next_id: AtomicU64,
    started: Instant,
    address: OnceLock<String>,
    /// Its address by TCP.
    live_page: OnceLock<String>,
    not_listening: OnceLock<Vec<String>>,
}

impl Agent {
    /// An agent that does not listen yet.
    pub fn new(config: &Config) -> Agent {
        let memory_bytes = config.symbol_memory_mib.saturating_mul(1 << 20);
        let mut symbolizer = Symbolizer::new(Budget { memory_bytes, ..Budget::default() });
        symbolizer.set_swift_demangler(swipr_os::swift::demangle);
        let jit_code = JitCode::new(memory_bytes / JIT_SHARE);
        Agent {
            log: config.log,
            sampler: sampler::Handle::new(jit_code.frames(), config.interpreters),
            counters: Arc::default(),
            symbolizer: Arc::new(Mutex::new(symbolizer)),
            jit_code: Arc::new(Mutex::new(jit_code)),
            symbol_time: config.symbol_time,
            flight_recorder: Arc::default(),
            running: Mutex::default(),
            ended: RecordingCounters::default(),
            submitted: Mutex::default(),
            writing: Arc::default(),
            questions: Mutex::default(),
            latest: Arc::default(),
            stopping: AtomicBool::new(false),
            next_id: AtomicU64::new(1),
            started: Instant::now(),
            address: OnceLock::new(),
            live_page: OnceLock::new(),
            not_listening: OnceLock::new(),
        }
    }

    /// Where the server listens; empty before it does.
    pub fn address(&self) -> &str {
        self.address.get().map_or("", String::as_str)
    }

    /// Sets the addresses that the server listens at, the main one first, and the reasons why it
    /// could not listen elsewhere.
    pub fn set_addresses(&self, addresses: &[&Address], not_listening: Vec<String>) {
        let tcp = addresses.iter().find(|address| matches!(address, Address::Tcp(_)));
        if let Some(tcp) = tcp {
            let _ = self.live_page.set(format!("http://{tcp}/"));
        }
        if let Some(address) = addresses.first() {
            self.log.line(format_args!("listening on {address}"));
            let _ = self.address.set(address.to_string());
        }
        let _ = self.not_listening.set(not_listening);
    }

    /// Whether threads have been sampled.
    pub fn has_swept(&self) -> bool {
        self.counters.sweeps.get() > 0
    }

    /// A recording's `stop` was set.
    pub fn wake_sampler(&self) {
        self.sampler.notify();
    }

    /// Ends all recordings; no new ones are taken.
    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
        let submitted = lock(&self.submitted).map(|mut submitted| std::mem::take(&mut *submitted));
        for submitted in submitted.into_iter().flatten() {
            submitted.output.finish(Err(STOPPING.into()));
        }
        if let Some(mut questions) = lock(&self.questions) {
            *questions = None;
        }
        agent_threads::end_spare();
        self.sampler.close();
    }

    /// As [`Agent::stop`], but takes no lock, so that it may be called in a signal handler: again
    /// and again until the recordings have ended.
    pub fn stop_without_lock(&self) {
        self.stopping.store(true, Relaxed);
        self.sampler.close_without_lock();
    }

    /// Whether a recording's output is not complete. Not of the flight recorder, which has none.
    pub fn is_writing(&self) -> bool {
        Arc::strong_count(&self.writing) > 1
    }

    /// After [`Agent::stop`]: waits until the sampler has ended, at most so long; whether it has.
    /// Two samplers, each with its own tables for the handlers, must not exist at once.
    pub fn has_ended(&self, at_most: Duration) -> bool {
        self.sampler.wait_until_left(at_most)
    }

    /// After its end: gives back what only its recordings and their readers need. The agent itself
    /// stays, as callers may have a reference to it.
    pub fn give_back(&self) {
        if let Some(mut recorder) = lock(&self.flight_recorder) {
            *recorder = None;
        }
        if let Some(mut latest) = lock(&self.latest) {
            *latest = None;
        }
        self.drop_symbols();
    }

    /// Wakes the sampler after the agent was disabled. Takes no lock and does not wait.
    pub fn wake_all(&self) {
        self.sampler.wake();
    }

    fn names(&self, clock: EpochClock) -> NameSources {
        let (symbolizer, jit_code) = (self.symbolizer.clone(), self.jit_code.clone());
        NameSources { symbolizer, jit_code, latest: self.latest.clone(), clock }
    }

    /// Hands a question to the symbol server's thread, which is started if there is none.
    fn ask(self: &Arc<Self>, question: Question) -> Result<(), StartError> {
        if self.stopping.load(Relaxed) {
            return Err(StartError::Stopping);
        }
        let off = || StartError::Off(disabled::reason().unwrap_or_default());
        let mut questions = lock(&self.questions).filter(|_| !disabled::is_disabled()).ok_or_else(off)?;
        if let Some(sender) = &*questions {
            return sender.send(question).map_err(|_| StartError::TooMany);
        }
        let (sender, receiver) = channel(symbol_server::MAX_WAITING);
        sender.send(question).map_err(|_| StartError::TooMany)?;
        let agent = self.clone();
        let body = move || {
            let names = agent.names(EpochClock::now());
            symbol_server::run(&receiver, &names, || agent.has_no_questions(&receiver));
        };
        agent_threads::start("symbols", body).map_err(|error| StartError::Failed(error.to_string()))?;
        *questions = Some(sender);
        Ok(())
    }

    /// No question has come for a while. Returns one that has come just now; `None`: the thread is
    /// to end.
    fn has_no_questions(&self, questions: &Receiver<Question>) -> Option<Question> {
        let mut sender = lock(&self.questions)?;
        let late = questions.try_receive();
        if late.is_none() {
            *sender = None;
            drop(sender);
            if lock(&self.running).is_some_and(|running| running.is_empty()) {
                self.drop_symbols();
            }
        }
        late
    }

    fn drop_symbols(&self) {
        if let Some(mut symbolizer) = lock(&self.symbolizer) {
            symbolizer.drop_all();
        }
        if let Some(mut jit_code) = lock(&self.jit_code) {
            jit_code.clear();
        }
    }
}
