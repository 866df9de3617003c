//! A recording of one process or of several that are merged: sources that come and go, one writer.

use super::source::{Ended, Message, Running, Source};
use crate::client::{Client, Status};
use crate::error::{Error, Exit};
use crate::shape::Shape;
use crate::write::Writer;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use swipr_formats::model::Summary;

/// Batches that may wait for the writer; an agent's own buffer follows, and it counts what does not fit.
const BATCHES: usize = 256;
/// How long an agent is asked for its last figures.
const LAST_FIGURES: Duration = Duration::from_millis(500);
/// How long sources may take to end that were told to.
const ENDING: Duration = Duration::from_secs(5);

/// See the module's text.
#[derive(Debug)]
pub struct Session {
    writer: Writer,
    shape: Arc<Shape>,
    sender: SyncSender<Message>,
    messages: Receiver<Message>,
    running: BTreeMap<usize, Running>,
    started: usize,
    ended: Summary,
    errors: Vec<Error>,
    begun: Instant,
}

/// How a source ended that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Its time was over.
    Whole,
    /// Its process ended, or it was stopped.
    Cut,
}

impl Session {
    /// Writes to `writer`.
    pub fn new(writer: Writer, shape: Shape) -> Session {
        let (sender, messages) = sync_channel(BATCHES);
        Session {
            writer,
            shape: Arc::new(shape),
            sender,
            messages,
            running: BTreeMap::new(),
            started: 0,
            ended: Summary::default(),
            errors: Vec::new(),
            begun: Instant::now(),
        }
    }

    /// Adds an agent that is asked for `query`; its number. `before`: what it said of itself before.
    pub fn add(
        &mut self,
        client: Client,
        before: Status,
        query: String,
        root: Option<String>,
    ) -> Result<usize, Error> {
        let id = self.started;
        let source = Source { id, client, before, query, shape: Arc::clone(&self.shape), root };
        let running = source.start(self.sender.clone())?;
        self.started += 1;
        self.running.insert(id, running);
        Ok(id)
    }

    /// Takes what comes within `patience`, and returns early when a source is over: which one, and how.
    pub fn pump(&mut self, patience: Duration) -> Result<Option<(usize, Over)>, Error> {
        let deadline = Instant::now() + patience;
        loop {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Message::Began(header)) => self.writer.begin(&header),
                Ok(Message::Samples(samples)) => {
                    for sample in &samples {
                        self.writer.sample(sample)?;
                    }
                }
                Ok(Message::Ended(id, ended)) => return Ok(Some((id, self.end(id, ended)))),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(None),
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
        }
    }

    fn end(&mut self, id: usize, ended: Ended) -> Over {
        self.running.remove(&id);
        add(&mut self.ended, &ended.summary);
        self.errors.extend(ended.error);
        if ended.whole { Over::Whole } else { Over::Cut }
    }

    /// How many sources run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// The figures so far.
    pub fn figures(&self) -> Summary {
        let mut sum = self.ended.clone();
        for running in self.running.values() {
            add(&mut sum, &running.losses());
        }
        sum.samples = self.writer.samples;
        sum.duration_ns = self.begun.elapsed().as_nanos() as u64;
        sum
    }

    /// Ends what still runs and takes what came until then.
    pub fn stop(&mut self) -> Result<(), Error> {
        for running in self.running.values() {
            running.stop(LAST_FIGURES);
        }
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

    /// Writes the end. Without a single sample there is no file, and the reason is the error.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.stop()?;
        let mut summary = self.figures();
        summary.samples = self.writer.samples;
        if summary.samples == 0 {
            // One that could be asked and cannot any more has ended: that is no reason by itself.
            let mut reasons = self.errors.into_iter().filter(|error| error.exit != Exit::NotProfilable);
            return Err(reasons.next().unwrap_or_else(|| {
                Error::new(
                    "not a single sample came: the process ended too soon, or no thread used the CPU",
                    "--idle records threads that wait, too; --iteration-count runs a short program often",
                )
            }));
        }
        self.writer.finish(&summary)?;
        Ok(summary)
    }
}

/// Adds the figures of one source to those of others.
fn add(sum: &mut Summary, other: &Summary) {
    sum.duration_ns = sum.duration_ns.max(other.duration_ns);
    let fields: [(&mut u64, u64); 12] = [
        (&mut sum.threads, other.threads),
        (&mut sum.ticks, other.ticks),
        (&mut sum.late, other.late),
        (&mut sum.truncated, other.truncated),
        (&mut sum.missed, other.missed),
        (&mut sum.dropped, other.dropped),
        (&mut sum.unsampled_cpu_ns, other.unsampled_cpu_ns),
        (&mut sum.filled, other.filled),
        (&mut sum.inferred, other.inferred),
        (&mut sum.cpu_wait_ns, other.cpu_wait_ns),
        (&mut sum.without_lines, other.without_lines),
        (&mut sum.filtered, other.filtered),
    ];
    for (sum, more) in fields {
        *sum = sum.saturating_add(more);
    }
    for (why, more) in &other.truncated_by {
        match sum.truncated_by.iter_mut().find(|(known, _)| known == why) {
            Some((_, count)) => *count += more,
            None => sum.truncated_by.push((why.clone(), *more)),
        }
    }
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
