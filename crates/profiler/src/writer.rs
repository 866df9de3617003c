//! A recording's writer thread: takes stacks from the sampler, symbolizes them, writes them in the
//! recording's format. It is the only thread that waits for the reader of the output. Slow
//! symbolization delays no other thread.

mod figures;
mod flight_record;
mod flight_recorder;
mod gil;
mod interpreted;
mod java;
mod javascript;
mod late_names;
mod lookups;
mod names;
mod sample_filter;
mod source_lines;
#[cfg(test)]
mod tests;
mod times;

use crate::counters::{AgentCounters, RecordingCounters};
use crate::sample_queue::{Batch, SampleReceiver};
pub use figures::Figures;
pub use flight_record::write_flight_record;
use flight_recorder::UnusedSymbols;
pub use flight_recorder::{AddressRecorder, SharedFlightRecorder};
pub use names::NameSources;
use names::{StackSymbolizer, stop_of};
use sample_filter::SampleFilter;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use swipr_formats::Format;
use swipr_formats::model::{Header, Summary};
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::disabled;
use swipr_os::locks::lock;
use swipr_os::process;
use swipr_server::recording::{Closed, Output, Request, SampleSource, WriterTask};
use swipr_unwind::walk::Stop;
use times::Times;

/// How often the writer checks whether its reader is still there.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Output of this size is handed on before the batch is over.
const FLUSH_BYTES: usize = 32 << 10;
/// Stacks cached by the flight recorder's writer, which runs for ever. Enough for idle threads.
const MAX_KEPT_STACKS: usize = 1024;

/// What a writer needs.
pub struct Writer {
    /// What was asked for.
    pub request: Arc<Request>,
    /// From the sampler.
    pub samples: SampleReceiver,
    /// To the client.
    pub output: Box<dyn Output>,
    /// The recording's figures.
    pub counters: Arc<RecordingCounters>,
    /// The agent's figures: they say whether the sampler could sample at all.
    pub of_agent: Arc<AgentCounters>,
    /// Made before the sampler got the recording: the first sweep may be over before the writer
    /// runs.
    pub figures: Figures,
    /// When the recording began, taken then for the same reason: nanoseconds since the epoch.
    pub start_ns: u64,
    /// Shared by all writers.
    pub names: NameSources,
    /// How long the writer may run to find lines.
    pub symbol_time: Duration,
    /// The flight recorder, for a recording that feeds it.
    pub flight_recorder: SharedFlightRecorder,
}

impl Writer {
    /// The thread's body: runs until the sampler has ended the recording, or the reader is gone.
    /// Drops `place` before it reports the end: a client that has its answer may record again at
    /// once. Returns the queue, into which the sampler may still send.
    pub fn run(mut self, place: impl Sized) -> SampleReceiver {
        let selection = &self.request.format;
        let mut format = self.output.format().unwrap_or_else(|| (selection.format.make)(&selection.options));
        let end = match self.write(format.as_mut()) {
            Ok(end) => end,
            Err(Closed) => Err("the reader of the output is gone".to_string()),
        };
        self.samples.leave_unread();
        drop(place);
        self.output.finish(end);
        self.samples
    }

    /// The figures; or, if there was no tick because the sampler failed, the reason.
    fn end(&self, names: &StackSymbolizer) -> Result<Summary, String> {
        let mut summary = self.counters.summary();
        summary.without_lines = names.without_lines();
        let tick_ns = kernel_tick_ns();
        let is_by_ticks = self.request.source == SampleSource::Timer;
        if is_by_ticks && self.request.interval.as_nanos() < u128::from(tick_ns) {
            summary.at_most_hz = 1_000_000_000 / tick_ns;
        }
        self.figures.complete(&mut summary, &self.of_agent);
        match self.of_agent.failure() {
            Some(reason) if summary.ticks == 0 => Err(reason),
            _ => Ok(summary),
        }
    }

    /// The next samples; `None`: there are no more.
    fn next_batch(&self) -> Result<Option<Batch>, Closed> {
        loop {
            match self.samples.receive(POLL_INTERVAL) {
                Ok(batch) => return Ok(Some(batch)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if self.output.is_closed() => return Err(Closed),
                Err(RecvTimeoutError::Timeout) if disabled::is_disabled() => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// For a recording that feeds the flight recorder.
    fn new_flight_recorder(&self, header: &Header) -> Option<SharedFlightRecorder> {
        let WriterTask::Keep(keep) = self.request.purpose else { return None };
        if let Some(mut place) = lock(&self.flight_recorder) {
            *place = Some(AddressRecorder::new(header.clone(), keep, self.names.clock));
        }
        Some(self.flight_recorder.clone())
    }

    /// Tells the flight recorder, besides samples, where their names are and what was lost.
    fn feed(&self, flight_recorder: &Option<SharedFlightRecorder>, names: &mut StackSymbolizer) {
        let (modules, figures) = (names.take_new_modules(), self.counters.summary());
        with_recorder(flight_recorder, |shared| {
            shared.recorder.set_figures(figures);
            if !modules.is_empty() {
                shared.add_modules(modules);
            }
        });
        names.keep_at_most(MAX_KEPT_STACKS);
    }

    /// Nothing is handed on before the first sample, unless the output takes empty recordings: a
    /// client gets an error then, and no empty profile.
    fn write(&mut self, format: &mut dyn Format) -> Result<Result<Summary, String>, Closed> {
        let Request { symbolize, frames, .. } = *self.request;
        let mut names = StackSymbolizer::new(self.names.clone(), symbolize, frames, self.symbol_time);
        let mut times = Times::default();
        let mut passed = SampleFilter::new(&self.request.filter);
        let mut bytes = vec![];
        let mut found_something = self.output.takes_empty();
        let header = header(&self.request, self.start_ns);
        let flight_recorder = self.new_flight_recorder(&header);
        let mut unused = UnusedSymbols::new();
        let wants_samples = matches!(self.request.purpose, WriterTask::Samples | WriterTask::Keep(_));
        format.begin(&header, &mut bytes);
        while let Some(batch) = self.next_batch()? {
            #[cfg(feature = "fault-injection")]
            crate::injected::may_panic(if found_something { "writer" } else { "" });
            names.begin_batch();
            for event in batch {
                if !wants_samples {
                    names.set_mappings(&event.stack.mappings);
                    continue;
                }
                let stack = names.of(&event.stack, event.time_ns);
                if !passed.is_wanted(event.state, &stack, event.ticks) {
                    continue;
                }
                found_something = true;
                let stop = stop_of(&event.stack, &stack);
                self.counters.truncated.add(if stop == Stop::Root { 0 } else { u64::from(event.ticks) });
                self.figures.stopped(stop, event.ticks);
                for sample in times.samples(&event, &stack) {
                    match flight_recorder {
                        Some(_) => with_recorder(&flight_recorder, |shared| shared.recorder.add(&sample)),
                        None => format.sample(&sample, &mut bytes),
                    }
                    if bytes.len() >= FLUSH_BYTES {
                        self.hand_on(&mut bytes)?;
                    }
                }
            }
            if flight_recorder.is_some() {
                self.feed(&flight_recorder, &mut names);
                unused.drop_if_unused(&self.names.symbolizer);
            }
            if found_something {
                self.hand_on(&mut bytes)?;
            } else if self.output.is_closed() {
                return Err(Closed);
            }
        }
        let end = self.end(&names).map(|summary| passed.without_filtered(summary));
        if let (false, Ok(_)) = (wants_samples, &end) {
            self.output.write(lookups::answer(&self.request.purpose, &mut names).as_bytes())?;
        } else if let (true, Ok(summary)) = (found_something, &end) {
            format.finish(summary, &mut bytes);
            self.hand_on(&mut bytes)?;
        }
        // The samples so far are complete. Only the end can say that more are missing.
        Ok(disabled::message().map_or(end, Err))
    }

    fn hand_on(&mut self, bytes: &mut Vec<u8>) -> Result<(), Closed> {
        if self.output.is_closed() {
            return Err(Closed);
        }
        if !bytes.is_empty() {
            self.output.write(bytes)?;
            bytes.clear();
        }
        Ok(())
    }
}

fn with_recorder(flight_recorder: &Option<SharedFlightRecorder>, change: impl FnOnce(&mut AddressRecorder)) {
    if let Some(mut place) = flight_recorder.as_ref().and_then(|shared| lock(shared))
        && let Some(samples) = place.as_mut()
    {
        change(samples);
    }
}

fn header(request: &Request, start_ns: u64) -> Header {
    let executable = process::executable();
    let name = process::name(&executable);
    Header {
        pid: process::pid(),
        process_name: name,
        executable,
        start_ns,
        interval_ns: request.interval.as_nanos() as u64,
        mode: request.mode,
        measure: None,
    }
}
