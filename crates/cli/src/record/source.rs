//! One process's part of a recording: requests raw samples from its agent and hands them on as they
//! come, from a thread of its own. Not here: which agents, and what becomes of the samples.

use super::losses::{Losses, Watch};
use crate::client::{Client, Status, new_recording_id};
use crate::endpoint::Connection;
use crate::error::Error;
use crate::event::{Event, OwnedSample};
use crate::read::Lines;
use crate::read::raw::RawReader;
use crate::shape::Shape;
use crate::threads;
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};
use swipr_formats::model::{Header, Summary};

/// What a session waits for: what its sources say, or that there is something else to do.
#[derive(Debug)]
pub enum Message {
    /// There is something else to do.
    Wake,
    /// Its recording has started.
    Began(Header),
    /// Samples.
    Samples(Vec<OwnedSample>),
    /// It is over; the last that this source says.
    Ended(usize, Box<Ended>),
}

/// How a source ended.
#[derive(Debug)]
pub struct Ended {
    /// Its figures: the agent's own, or where the recording was cut, what was known until then.
    pub summary: Summary,
    /// Whether the recording is whole: its time was over.
    pub whole: bool,
    /// Whether not one sample came, and no figures say that there was none.
    pub gave_nothing: bool,
    /// It was cut before its first sample was sent.
    pub is_cut: bool,
    /// Why there is nothing, or not all.
    pub error: Option<Error>,
}

/// A source to be started.
#[derive(Debug)]
pub struct Source {
    /// Its number.
    pub id: usize,
    /// The agent.
    pub client: Client,
    /// What it said of itself before.
    pub before: Status,
    /// What to ask for: the query of `/profile`, but for format and id.
    pub query: String,
    /// What is changed about its samples.
    pub shape: Arc<Shape>,
    /// A remark that becomes the outermost frame of its stacks.
    pub root: Option<String>,
}

/// A source that runs.
#[derive(Debug)]
pub struct Running {
    client: Client,
    connection: Connection,
    watch: Watch,
    /// The recording's id.
    id: String,
}

/// The header and the samples in these bytes, and whether they could be read.
fn pieces(
    bytes: &[u8],
    lines: &mut Lines,
    reader: &mut RawReader,
    end: &mut Option<Summary>,
) -> (Option<Header>, Vec<OwnedSample>, Result<(), String>) {
    let (mut header, mut batch) = (None, Vec::new());
    let taken = lines.take(bytes, |line| {
        match reader.line(line)? {
            Some(Event::Header(begins)) => header = Some(begins),
            Some(Event::Sample(sample)) => batch.push(sample),
            Some(Event::End(summary)) => *end = Some(summary),
            None => {}
        }
        Ok(())
    });
    (header, batch, taken)
}

impl Source {
    /// Starts the thread that reads from a connection that may wait for long.
    pub fn start(self, connection: Connection, to: SyncSender<Message>) -> Result<Running, Error> {
        let watch = Watch::start(self.client.clone(), self.before.clone());
        let shared = connection.try_clone().map_err(|error| self.client.unreachable(&error))?;
        let (client, losses) = (self.client.clone(), watch.losses());
        let id = new_recording_id();
        let target = format!("/profile?format=raw&id={id}&{}", self.query);
        threads::start(move || {
            let id = self.id;
            let ended = self.read(&connection, &target, &losses, &to);
            let _ = to.send(Message::Ended(id, Box::new(ended)));
        })?;
        Ok(Running { client, connection: shared, watch, id })
    }

    fn read(self, connection: &Connection, target: &str, losses: &Losses, to: &SyncSender<Message>) -> Ended {
        let started = Instant::now();
        let answer = match self.client.ask_on(connection, target) {
            Ok(answer) => answer,
            Err(error) => return without_samples(losses, started, Some(error)),
        };
        // There was nothing to record: the figures say why.
        let nothing = (answer.status == 422).then(|| answer.field("x-swipr-stats")).flatten();
        if let Some(mut summary) = nothing.and_then(swipr_formats::read_stats_line) {
            summary.duration_ns = started.elapsed().as_nanos() as u64;
            return Ended { summary, whole: true, gave_nothing: false, is_cut: false, error: None };
        }
        let mut answer = match self.client.accepted(answer) {
            Ok(answer) => answer,
            Err(error) => {
                return Ended {
                    gave_nothing: true,
                    is_cut: false,
                    ..without_samples(losses, started, Some(error))
                };
            }
        };
        let mut reader = RawReader::new(self.shape, self.root);
        let (mut lines, mut buffer) = (Lines::default(), vec![0; 64 << 10]);
        let (mut summary, mut samples) = (None, 0_u64);
        let error = loop {
            let got = match answer.read(&mut buffer) {
                Ok(0) => break None,
                Ok(got) => got,
                Err(_) => {
                    // The process ended, or this command ended the recording. The agent's own
                    // reason is in the trailer.
                    let why = answer.field("x-swipr-error").map(str::to_owned);
                    break why.map(|why| Error::new(why, "`swipr doctor` tells how the agent is doing"));
                }
            };
            let bytes = buffer.get(..got).unwrap_or_default();
            let (begins, batch, taken) = pieces(bytes, &mut lines, &mut reader, &mut summary);
            samples += batch.len() as u64;
            let batch = (!batch.is_empty()).then_some(Message::Samples(batch));
            // Nobody may wait for them any more.
            begins.map(Message::Began).into_iter().chain(batch).try_for_each(|message| to.send(message)).ok();
            if let Err(why) = taken {
                let what = format!("cannot understand the agent at {}: {why}", self.client.endpoint());
                break Some(Error::new(what, "use the library that came with this command"));
            }
        };
        match summary {
            Some(summary) => Ended { summary, whole: true, gave_nothing: false, is_cut: false, error },
            None if samples == 0 => without_samples(losses, started, error),
            None => {
                // What it had not sent is not known.
                let mut summary = Summary { uncounted: 1, ..losses.summary() };
                summary.samples = samples;
                summary.threads = reader.threads() as u64;
                summary.duration_ns = started.elapsed().as_nanos() as u64;
                Ended { summary, whole: false, gave_nothing: false, is_cut: false, error }
            }
        }
    }
}

/// A recording that was cut before its first sample. The agent's figures may say that there was
/// none.
fn without_samples(losses: &Losses, started: Instant, error: Option<Error>) -> Ended {
    let duration_ns = started.elapsed().as_nanos() as u64;
    let summary = Summary { duration_ns, ..losses.summary() };
    let gave_nothing = summary.uncounted > 0 || losses.taken() > 0;
    Ended { summary, whole: false, gave_nothing, is_cut: true, error }
}

impl Running {
    /// Ends the recording now: the agent sends what it has. If it does not answer within `timeout`,
    /// what it has not sent is lost.
    pub fn stop(&self, timeout: Duration) {
        if self.client.stop_recording(&self.id, timeout).is_err() {
            self.give_up();
        }
    }

    /// Waits for the agent no longer.
    pub fn give_up(&self) {
        let _ = self.connection.shutdown(std::net::Shutdown::Both);
    }

    /// What is lost so far.
    pub fn losses(&self) -> Summary {
        self.watch.losses().summary()
    }

    /// The CPU time of the agent's own threads, when it was asked last.
    pub fn agent_cpu_ns(&self) -> u64 {
        self.watch.losses().agent_cpu_ns()
    }

    /// Why threads that ran could not be sampled, and what to do, if the agent said.
    pub fn hindrance(&self) -> Option<(String, &'static str)> {
        self.watch.losses().hindrance()
    }

    /// Why the functions of the program's language are missing, if it has one.
    pub fn unread(&self) -> Option<String> {
        self.watch.losses().unread()
    }
}
