//! The agent: one per process. It starts and ends recordings for the server and the C interface.

mod figures;
mod metrics;
mod status;
mod wanted_threads;

use crate::channel::{Receiver, Sender, channel};
use crate::config::Config;
use crate::counters::{AgentCounters, RecordingCounters};
use crate::jit::JitCode;
use crate::mappings::Mappings;
use crate::sample_queue::{QUEUE_BYTES, sample_queue};
use crate::sampler::{self, RunningRecording};
use crate::writer::{Figures, NameSources, SharedFlightRecorder, Writer, write_flight_record};
use crate::{agent_threads, last_thread, symbol_server};
use figures::Snapshot;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use swipr_os::disabled;
use swipr_os::locks::lock;
use swipr_os::process::EpochClock;
use swipr_server::listen::Address;
use swipr_server::recording::{
    Length, MAX_RECORDINGS, Output, Question, Recorder, Request, StartError, WriterTask,
};
use swipr_symbols::symbolizer::{Budget, Symbolizer};

/// Each source of JIT code may use one part in so many of the memory for names.
const JIT_SHARE: usize = 4;

/// A recording that is under way.
#[derive(Debug)]
struct Running {
    id: u64,
    /// The id by which clients may end it; empty: it has none. `None`: they may not.
    id_of_client: Option<String>,
    stop: Arc<AtomicBool>,
    counters: Arc<RecordingCounters>,
}

/// The place that a recording has among those under way, until this is dropped.
struct RunningPlace {
    agent: Arc<Agent>,
    id: u64,
}

impl Drop for RunningPlace {
    fn drop(&mut self) {
        self.agent.forget(self.id);
    }
}

/// A recording that another thread wants to be started; see [`Agent::submit`].
struct Submitted {
    request: Request,
    output: Box<dyn Output>,
    stop: Arc<AtomicBool>,
}

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

    /// Leaves a recording for the server thread to start: recordings are started by a thread that
    /// has the agent's own descriptor table. The caller wakes the server then. Setting `stop` (and
    /// calling [`Agent::wake_sampler`]) ends the recording.
    pub fn submit(&self, request: Request, output: Box<dyn Output>, stop: Arc<AtomicBool>) {
        match lock(&self.submitted) {
            Some(mut submitted) => submitted.push(Submitted { request, output, stop }),
            None => output.finish(Err(disabled::message().unwrap_or_default())),
        }
    }

    /// Starts what was submitted. For the server thread.
    pub fn start_submitted(self: &Arc<Self>) {
        let submitted = lock(&self.submitted).map(|mut submitted| std::mem::take(&mut *submitted));
        for Submitted { request, output, stop } in submitted.into_iter().flatten() {
            if let Err((error, output)) = self.begin(request, output, stop) {
                output.finish(Err(error.to_string()));
            }
        }
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
        for running in lock(&self.running).iter().flat_map(|running| running.iter()) {
            running.stop.store(true, Relaxed);
        }
        let submitted = lock(&self.submitted).map(|mut submitted| std::mem::take(&mut *submitted));
        for submitted in submitted.into_iter().flatten() {
            submitted.output.finish(Err("the agent is stopping".into()));
        }
        if let Some(mut questions) = lock(&self.questions) {
            *questions = None;
        }
        self.sampler.close();
    }

    /// After [`Agent::stop`]: waits until the sampler has ended, at most so long; whether it has.
    /// Two samplers, each with its own tables for the handlers, must not exist at once.
    pub fn has_ended(&self, at_most: Duration) -> bool {
        self.sampler.wait_until_left(at_most)
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

    /// A recording is over; its counts stay.
    fn forget(&self, id: u64) {
        let Some(mut running) = lock(&self.running) else { return };
        running.retain(|running| {
            let stays = running.id != id;
            if !stays {
                self.ended.add(&running.counters);
            }
            stays
        });
    }

    /// How many recordings run, and the sums over all that there were.
    fn recorded(&self) -> (usize, RecordingCounters) {
        let running = lock(&self.running);
        let sums = RecordingCounters::default();
        sums.add(&self.ended);
        let running = || running.iter().flat_map(|running| running.iter());
        running().for_each(|running| sums.add(&running.counters));
        (running().count(), sums)
    }

    /// Ends clients' recordings, see [`Recorder::stop`].
    fn stop_recordings(&self, wanted: Option<&str>) -> usize {
        let running = lock(&self.running);
        let may_end = |running: &&Running| match (&running.id_of_client, wanted) {
            (Some(id), Some(wanted)) => id == wanted,
            (Some(id), None) => id.is_empty(),
            (None, _) => false,
        };
        let ended = running.iter().flat_map(|running| running.iter()).filter(may_end);
        let ended = ended.map(|running| running.stop.store(true, Relaxed)).count();
        drop(running);
        self.sampler.notify();
        ended
    }

    /// Takes one of the places for recordings.
    fn take_place(
        self: &Arc<Self>,
        id_of_client: Option<String>,
        stop: &Arc<AtomicBool>,
        counters: &Arc<RecordingCounters>,
    ) -> Result<RunningPlace, StartError> {
        let off = || StartError::Off(disabled::reason().unwrap_or_default());
        let mut running = lock(&self.running).filter(|_| !disabled::is_disabled()).ok_or_else(off)?;
        if self.stopping.load(Relaxed) {
            return Err(StartError::Stopping);
        }
        if running.len() >= MAX_RECORDINGS {
            return Err(StartError::TooMany);
        }
        let id = self.next_id.fetch_add(1, Relaxed);
        running.push(Running { id, id_of_client, stop: stop.clone(), counters: counters.clone() });
        Ok(RunningPlace { agent: self.clone(), id })
    }

    /// Starts the writer thread of a recording. If it does not start, dropping its body reports
    /// that to the client.
    fn start_writer(self: &Arc<Self>, body: impl FnOnce(&Agent) + Send + 'static) -> bool {
        let agent = self.clone();
        let started = agent_threads::start("writer", move || {
            body(&agent);
            if agent.stopping.load(Relaxed) {
                agent.drop_symbols();
            }
        });
        if let Err(error) = &started {
            self.log.line(format_args!("cannot start a writer thread: {error}"));
        }
        started.is_ok()
    }

    /// Writes the flight record, on a thread of its own, which takes a recording's place.
    fn write_flight_record(
        self: &Arc<Self>,
        request: Request,
        output: Box<dyn Output>,
    ) -> Result<(), (StartError, Box<dyn Output>)> {
        if lock(&self.flight_recorder).is_none_or(|shared| shared.is_none()) {
            return Err((StartError::NoFlightRecorder, output));
        }
        let place = match self.take_place(None, &Arc::default(), &Arc::default()) {
            Ok(place) => place,
            Err(error) => return Err((error, output)),
        };
        let (flight_recorder, names, symbol_time) =
            (self.flight_recorder.clone(), self.names(EpochClock::now()), self.symbol_time);
        self.start_writer(move |_| {
            write_flight_record(&request, output, &flight_recorder, names, symbol_time, place)
        });
        Ok(())
    }

    fn begin(
        self: &Arc<Self>,
        request: Request,
        output: Box<dyn Output>,
        stop: Arc<AtomicBool>,
    ) -> Result<(), (StartError, Box<dyn Output>)> {
        if matches!(request.purpose, WriterTask::Last(_)) {
            return self.write_flight_record(request, output);
        }
        if let Err(what) = wanted_threads::check(&request) {
            return Err((StartError::NoThread(what), output));
        }
        let counters = Arc::<RecordingCounters>::default();
        // A snapshot is over soon.
        let id_of_client = request.id.clone().filter(|_| request.length != Length::Ticks(1));
        let place = match self.take_place(id_of_client, &stop, &counters) {
            Ok(place) => place,
            Err(error) => return Err((error, output)),
        };
        self.counters.recordings.add(1);
        let (send, samples) = sample_queue(QUEUE_BYTES);
        let request = Arc::new(request);
        let clock = EpochClock::now();
        let active = RunningRecording::new(request.clone(), send, counters.clone(), stop, clock);
        let names = self.names(clock);
        let of_agent = self.counters.clone();
        let figures = Figures::new(&of_agent);
        let flight_recorder = self.flight_recorder.clone();
        let symbol_time = self.symbol_time;
        let writer = Writer {
            request,
            samples,
            output,
            counters,
            of_agent,
            figures,
            names,
            symbol_time,
            flight_recorder,
        };
        let started = self.start_writer(|agent| {
            let samples = writer.run(place);
            // The sampler may sleep until a distant tick. Before it wakes, it has no place for
            // another recording.
            agent.wake_sampler();
            samples.drain();
        });
        if !started {
            return Ok(());
        }
        if self.sampler.add(active) {
            self.start_sampler();
        }
        Ok(())
    }

    fn start_sampler(self: &Arc<Self>) {
        let agent = self.clone();
        self.counters.clear_failure();
        let started = agent_threads::start("sampler", move || {
            sampler::run(&agent.sampler, &agent.counters, || agent.drop_symbols());
        });
        if let Err(error) = started {
            self.counters.fail(format_args!("cannot start the sampler thread: {error}"));
            self.sampler.abandon();
            self.log.line(format_args!("cannot start the sampler thread: {error}"));
        }
    }
}

/// The agent as the server sees it.
pub struct SharedAgent(pub Arc<Agent>);

impl Recorder for SharedAgent {
    fn start(&self, mut request: Request, output: Box<dyn Output>) -> Result<(), StartError> {
        request.id.get_or_insert_default();
        self.0.begin(request, output, Arc::default()).map_err(|(error, _)| error)
    }

    fn stop(&self, id: Option<&str>) -> usize {
        self.0.stop_recordings(id)
    }

    fn ask(&self, question: Question) -> Result<(), StartError> {
        self.0.ask(question)
    }

    fn live_page(&self) -> Option<String> {
        self.0.live_page.get().cloned()
    }

    fn not_listening(&self) -> &[String] {
        self.0.not_listening.get().map_or(&[], Vec::as_slice)
    }

    fn status(&self) -> String {
        #[cfg(feature = "fault-injection")]
        crate::injected::may_panic("server");
        format!("{}\n", status::json(&Snapshot::of(&self.0)))
    }

    fn metrics(&self) -> String {
        metrics::text(&Snapshot::of(&self.0))
    }

    fn off(&self) -> Option<&'static str> {
        disabled::reason()
    }

    fn poll_within(&self) -> Option<Duration> {
        last_thread::timeout()
    }

    fn poll(&self) {
        last_thread::check();
        self.0.start_submitted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::AddressRecorder;
    use std::sync::Barrier;
    use swipr_formats::model::{Header, Mode, Summary};
    use swipr_server::recording::Closed;

    /// A client that does not read.
    struct Deaf(Arc<Barrier>);

    impl Output for Deaf {
        fn write(&mut self, _: &[u8]) -> Result<(), Closed> {
            self.0.wait();
            Ok(())
        }

        fn is_closed(&self) -> bool {
            false
        }

        fn takes_empty(&self) -> bool {
            true
        }

        fn finish(self: Box<Self>, _: Result<Summary, String>) {}
    }

    fn last() -> Request {
        Request {
            interval: Duration::from_millis(10),
            length: swipr_server::recording::Length::Open,
            mode: Mode::Wall,
            source: Default::default(),
            format: swipr_formats::Selection {
                format: swipr_formats::find("perf").unwrap(),
                options: Default::default(),
            },
            threads: None,
            filter: Default::default(),
            purpose: WriterTask::Last(Duration::from_secs(10)),
            symbolize: Default::default(),
            frames: Default::default(),
            id: None,
        }
    }

    /// Regression: each client of `/last` got a thread, without limit: 51 threads, more than the
    /// list of the agent's own threads had room for.
    #[test]
    fn what_was_kept_is_written_for_so_many_clients_as_may_record() {
        let agent = Arc::new(Agent::new(&Config::default()));
        let header = Header {
            pid: 1,
            process_name: "x".into(),
            executable: "/x".into(),
            start_ns: 0,
            interval_ns: 10_000_000,
            mode: Mode::Wall,
        };
        *agent.flight_recorder.lock().unwrap() = Some(AddressRecorder::new(header, Duration::from_secs(1)));
        let all_write = Arc::new(Barrier::new(MAX_RECORDINGS + 1));
        let ask = || agent.begin(last(), Box::new(Deaf(all_write.clone())), Arc::default());
        for _ in 0..MAX_RECORDINGS {
            assert!(ask().is_ok());
        }
        assert!(matches!(ask(), Err((StartError::TooMany, _))));
        all_write.wait();
        while agent.recorded().0 > 0 {
            std::thread::yield_now();
        }
    }
}
