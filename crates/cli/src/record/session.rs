//! A recording of one process or of several that are merged: sources that come and go, one writer.

use super::no_sample::{LONG_NS, Recorder, cut, no_agent, nothing};
use super::source::{Ended, Message, Running, Source};
use super::unrecorded::{Member, Unrecorded};
use crate::args::Sampling;
use crate::client::{Client, Status};
use crate::error::{Error, Exit};
use crate::process::Process;
use crate::shape::Shape;
use crate::write::Writer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use swipr_formats::model::Summary;

/// Batches that may wait for the writer; an agent's own buffer follows, and it counts what does not
/// fit.
const BATCHES: usize = 256;
/// How long an agent may take to take the order to end a recording.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// How long sources may take to end once they are stopped.
const ENDING: Duration = Duration::from_secs(5);

/// See the module's text.
#[derive(Debug)]
pub struct Session {
    writer: Writer,
    recorder: Recorder,
    /// Not all threads are recorded.
    is_filtered: bool,
    shape: Arc<Shape>,
    sender: SyncSender<Message>,
    messages: Receiver<Message>,
    /// Each with when it was added.
    running: BTreeMap<usize, (Running, Instant)>,
    started: usize,
    /// The first of several processes: the recording is said to be its. Samples of another one may
    /// come before its own. Its id as it sees itself, name and file.
    first: Option<(u32, String, String)>,
    /// Processes that gave nothing.
    pub unrecorded: Unrecorded,
    ended: Summary,
    /// One was cut before its first sample was sent.
    is_cut: bool,
    /// When the last of those that have ended took its last sample, since the begin.
    lasted: Duration,
    /// CPU time of the agents that have ended.
    agents_ns: u64,
    errors: Vec<Error>,
    /// Why threads that ran could not be sampled, and what to do, if an agent said; once all have
    /// ended.
    pub hindrance: Option<(String, &'static str)>,
    /// Why the functions of a program's language are missing.
    pub unread: Option<String>,
    started_at: Instant,
}

/// How a source ended that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its time was over.
    Whole,
    /// Its process ended, or it was stopped.
    Cut,
    /// The agent said why there is none.
    Refused,
}

impl Session {
    /// Writes to `writer`.
    pub fn new(writer: Writer, shape: Shape, recorder: Recorder, sampling: &Sampling) -> Session {
        let (sender, messages) = sync_channel(BATCHES);
        Session {
            writer,
            recorder,
            is_filtered: sampling.thread_name.is_some(),
            shape: Arc::new(shape),
            sender,
            messages,
            running: BTreeMap::new(),
            started: 0,
            first: None,
            unrecorded: Unrecorded::default(),
            ended: Summary::default(),
            is_cut: false,
            lasted: Duration::ZERO,
            agents_ns: 0,
            errors: Vec::new(),
            hindrance: None,
            unread: None,
            started_at: Instant::now(),
        }
    }

    /// Adds an agent, with `query` as the request to it; returns its number. `before`: its status
    /// before. `process`: whose agent it is; it is given the process that listens, where that can
    /// be seen from here.
    pub fn add(
        &mut self,
        client: Client,
        before: Status,
        query: String,
        process: impl FnOnce(Option<u32>) -> Member,
    ) -> Result<usize, Error> {
        let id = self.started;
        let connection = client.clone().waiting().connect()?;
        let Member { pid, name, root } = process(connection.peer());
        if id == 0 && root.is_some() {
            let of = |first: Process| {
                let file = first.executable().map(|file| file.display().to_string());
                (first.own_pid(), name.clone(), file.unwrap_or_default())
            };
            self.first = Process::new(pid).map(of);
        }
        let source = Source { id, client, before, query, shape: Arc::clone(&self.shape), root };
        let running = source.start(connection, self.sender.clone())?;
        self.unrecorded.started(id, pid, name);
        self.started += 1;
        self.running.insert(id, (running, Instant::now()));
        Ok(id)
    }

    /// Ends [`Session::pump`] early.
    pub fn waker(&self) -> impl Fn() + Send + 'static {
        let sender = self.sender.clone();
        // If there is no room for it, the pump is awake.
        move || _ = sender.try_send(Message::Wake)
    }

    /// Takes what comes within `timeout`, and returns early when it is woken, or when a source is
    /// over: which one, and how.
    pub fn pump(&mut self, timeout: Duration) -> Result<Option<(usize, Over)>, Error> {
        let deadline = Instant::now() + timeout;
        self.writer.keep_up()?;
        loop {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Message::Began(mut header)) => {
                    if let Some(first) = self.first.clone() {
                        (header.pid, header.process_name, header.executable) = first;
                    }
                    self.writer.begin(&header);
                }
                Ok(Message::Samples(samples)) => {
                    for sample in &samples {
                        self.writer.sample(sample)?;
                    }
                }
                Ok(Message::Ended(id, ended)) => return Ok(Some((id, self.end(id, ended)))),
                Ok(Message::Wake) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Ok(None);
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
        }
    }

    fn end(&mut self, id: usize, mut ended: Box<Ended>) -> Over {
        let (running, added) = self.running.remove(&id).unzip();
        let since = added.map_or(Duration::ZERO, |added| added.duration_since(self.started_at));
        self.lasted = self.lasted.max(since + Duration::from_nanos(ended.summary.duration_ns));
        let reported_ns = ended.summary.cost.map_or(0, |cost| cost.agent_cpu_ns);
        self.agents_ns += running.as_ref().map_or(0, Running::agent_cpu_ns).max(reported_ns);
        let running = running.as_ref();
        self.hindrance = self.hindrance.take().or_else(|| running?.hindrance());
        self.unread = self.unread.take().or_else(|| running?.unread());
        self.is_cut |= ended.is_cut;
        if ended.gave_nothing {
            self.unrecorded.gave_nothing(id);
            // `figures` counts it, unless its process begins again.
            ended.summary.uncounted = 0;
        }
        add(&mut self.ended, &ended.summary);
        let (is_whole, is_refused) = (ended.whole, ended.error.is_some() && !ended.is_cut);
        self.errors.extend(ended.error);
        match is_whole {
            true => Over::Whole,
            false if is_refused => Over::Refused,
            false => Over::Cut,
        }
    }

    /// The running time that is in the recording, with the agents' own.
    pub fn running_time(&self) -> Duration {
        Duration::from_nanos(self.writer.running_ns + self.agents_ns)
    }

    /// How many sources there were.
    pub fn started(&self) -> u32 {
        self.started.try_into().unwrap_or(u32::MAX)
    }

    /// How many sources run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// The figures so far.
    pub fn figures(&self) -> Summary {
        let mut sum = self.ended.clone();
        for (running, _) in self.running.values() {
            add(&mut sum, &running.losses());
        }
        sum.uncounted += self.unrecorded.names().len() as u64;
        sum.samples = self.writer.samples;
        // The wait for the last names is no part of it.
        let lasted = match self.running.is_empty() && self.lasted > Duration::ZERO {
            true => self.lasted,
            false => self.started_at.elapsed(),
        };
        sum.duration_ns = lasted.as_nanos() as u64;
        sum
    }

    /// Ends what still runs and takes what came until then.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.running.values().for_each(|(running, _)| running.stop(STOP_TIMEOUT));
        self.settle()?;
        self.running.values().for_each(|(running, _)| running.give_up());
        self.settle()
    }

    /// Waits for sources that end by themselves; bounded.
    pub fn settle(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + ENDING;
        while !self.running.is_empty() && Instant::now() < deadline {
            self.pump(Duration::from_millis(50))?;
        }
        Ok(())
    }

    /// Writes the end. Without a single sample, or with nothing but CPU time that has no stack,
    /// there is no file, and the reason is the error.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.stop()?;
        let summary = self.figures();
        let has_stacks = self.writer.has_stacks || summary.unsampled_cpu_ns == 0;
        if summary.samples == 0 || !has_stacks && self.writer.is_unseen() {
            // An agent that answered and does not any more has ended: that alone is no failure.
            let mut reasons = self.errors.into_iter().filter(|error| error.exit != Exit::NotProfilable);
            let mut error = reasons.next().unwrap_or_else(|| match self.started {
                0 if summary.duration_ns > LONG_NS => no_agent(),
                _ if self.is_cut && summary.ticks > 0 => cut(&summary, self.recorder),
                _ => nothing(&summary, self.hindrance, self.recorder, self.is_filtered),
            });
            if let Some(earlier) = self.writer.earlier_file() {
                error.what += &format!("; {} is left as it was", earlier.display());
            }
            return Err(error);
        }
        self.writer.finish(&summary)?;
        match has_stacks {
            true => Ok(summary),
            false => Err(nothing(&summary, self.hindrance, self.recorder, self.is_filtered)),
        }
    }
}

/// Adds the figures of one source to those of others.
fn add(sum: &mut Summary, other: &Summary) {
    sum.add(other);
    sum.cost = match (sum.cost, other.cost) {
        (Some(one), Some(other)) => Some(swipr_formats::model::Cost {
            held_p50_ns: one.held_p50_ns.max(other.held_p50_ns),
            held_p99_ns: one.held_p99_ns.max(other.held_p99_ns),
            sweep_p50_ns: one.sweep_p50_ns.max(other.sweep_p50_ns),
            sweep_p99_ns: one.sweep_p99_ns.max(other.sweep_p99_ns),
            agent_cpu_ns: one.agent_cpu_ns.saturating_add(other.agent_cpu_ns),
        }),
        (one, other) => one.or(other),
    };
}
