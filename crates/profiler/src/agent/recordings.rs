//! Starts and ends recordings.

use super::{Agent, wanted_threads};
use crate::agent_threads;
use crate::counters::RecordingCounters;
use crate::sample_queue::{QUEUE_BYTES, sample_queue};
use crate::sampler::{self, RunningRecording};
use crate::stop_time::StopTime;
use crate::writer::{Figures, Writer, write_flight_record};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use swipr_os::disabled;
use swipr_os::locks::lock;
use swipr_os::process::{EpochClock, monotonic_ns};
use swipr_server::recording::{Length, MAX_RECORDINGS, Output, Request, STOPPING, StartError, WriterTask};

/// A recording that is under way.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: u64,
    /// The id by which clients may end it; empty: it has none. `None`: they may not.
    pub(super) id_of_client: Option<String>,
    pub(super) stop: Arc<StopTime>,
    pub(super) counters: Arc<RecordingCounters>,
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
pub(super) struct Submitted {
    request: Request,
    pub(super) output: Box<dyn Output>,
    stop: Arc<StopTime>,
    counters: Arc<RecordingCounters>,
    place: RunningPlace,
}

impl Agent {
    /// Takes a place for a recording, and leaves the recording for the server thread to start:
    /// recordings are started by a thread that has the agent's own descriptor table. The caller
    /// wakes the server then. Setting `stop` (and calling [`Agent::wake_sampler`]) ends the
    /// recording.
    pub fn submit(
        self: &Arc<Self>,
        request: Request,
        output: Box<dyn Output>,
        stop: Arc<StopTime>,
    ) -> Result<(), StartError> {
        let counters = Arc::<RecordingCounters>::default();
        let place = self.take_place(None, &stop, &counters)?;
        match lock(&self.submitted) {
            // A stop of the agent is announced before what was submitted is taken.
            Some(_) if self.stopping.load(Relaxed) => output.finish(Err(STOPPING.into())),
            Some(mut submitted) => submitted.push(Submitted { request, output, stop, counters, place }),
            None => output.finish(Err(disabled::message().unwrap_or_default())),
        }
        Ok(())
    }

    /// Starts what was submitted. For the server thread.
    pub fn start_submitted(self: &Arc<Self>) {
        let submitted = lock(&self.submitted).map(|mut submitted| std::mem::take(&mut *submitted));
        for Submitted { request, output, stop, counters, place } in submitted.into_iter().flatten() {
            match wanted_threads::check(&request) {
                Ok(()) => self.record(place, counters, request, output, stop),
                Err(what) => output.finish(Err(StartError::NoThread(what).to_string())),
            }
        }
    }

    /// A recording is over; its counts stay.
    pub(super) fn forget(&self, id: u64) {
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
    pub(super) fn recorded(&self) -> (usize, RecordingCounters) {
        let running = lock(&self.running);
        let sums = RecordingCounters::default();
        sums.add(&self.ended);
        let running = || running.iter().flat_map(|running| running.iter());
        running().for_each(|running| sums.add(&running.counters));
        (running().count(), sums)
    }

    /// Ends clients' recordings, see [`Recorder::stop`].
    pub(super) fn stop_recordings(&self, wanted: Option<&str>) -> usize {
        let running = lock(&self.running);
        let may_end = |running: &&Running| match (&running.id_of_client, wanted) {
            (Some(id), Some(wanted)) => id == wanted,
            (Some(id), None) => id.is_empty(),
            (None, _) => false,
        };
        let ended = running.iter().flat_map(|running| running.iter()).filter(may_end);
        let ended = ended.map(|running| running.stop.set()).count();
        drop(running);
        self.sampler.notify();
        ended
    }

    /// Takes one of the places for recordings.
    fn take_place(
        self: &Arc<Self>,
        id_of_client: Option<String>,
        stop: &Arc<StopTime>,
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

    /// Starts the writer thread of a recording. If it does not start, the client gets the reason.
    fn start_writer(
        self: &Arc<Self>,
        output: Box<dyn Output>,
        body: impl FnOnce(&Agent, Box<dyn Output>) + Send + 'static,
    ) -> bool {
        let agent = self.clone();
        let output = Arc::new(Mutex::new(Some(output)));
        let to_take = output.clone();
        let take = |output: &Mutex<Option<_>>| lock(output).and_then(|mut output| output.take());
        let started = agent_threads::start("writer", move || {
            if let Some(output) = take(&to_take) {
                body(&agent, output);
            }
            if agent.stopping.load(Relaxed) {
                agent.drop_symbols();
            }
        });
        if let Err(error) = &started {
            self.log.line(format_args!("cannot start a writer thread: {error}"));
            let why = match error.raw_os_error() {
                Some(_) => {
                    ": the process's user or its container may have no more threads (ulimit -u, pids.max)"
                }
                None => "",
            };
            if let Some(output) = take(&output) {
                output.finish(Err(format!("the agent cannot start a thread: {error}{why}")));
            }
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
        self.start_writer(output, move |_, output| {
            write_flight_record(&request, output, &flight_recorder, names, symbol_time, place)
        });
        Ok(())
    }

    pub(super) fn begin(
        self: &Arc<Self>,
        request: Request,
        output: Box<dyn Output>,
        stop: Arc<StopTime>,
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
        match self.take_place(id_of_client, &stop, &counters) {
            Ok(place) => self.record(place, counters, request, output, stop),
            Err(error) => return Err((error, output)),
        }
        Ok(())
    }

    /// Starts the recording that has this place.
    fn record(
        self: &Arc<Self>,
        place: RunningPlace,
        counters: Arc<RecordingCounters>,
        request: Request,
        output: Box<dyn Output>,
        stop: Arc<StopTime>,
    ) {
        self.counters.recordings.add(1);
        let (send, samples) = sample_queue(QUEUE_BYTES);
        let request = Arc::new(request);
        let clock = EpochClock::now();
        let active = RunningRecording::new(request.clone(), send, counters.clone(), stop, clock);
        let names = self.names(clock);
        let of_agent = self.counters.clone();
        let (figures, start_ns) = (Figures::new(&of_agent), clock.epoch(monotonic_ns()));
        let flight_recorder = self.flight_recorder.clone();
        let symbol_time = self.symbol_time;
        let has_output = !matches!(request.purpose, WriterTask::Keep(_));
        let writing = has_output.then(|| self.writing.clone());
        let started = self.start_writer(output, move |agent, output| {
            let writer = Writer {
                request,
                samples,
                output,
                counters,
                of_agent,
                figures,
                start_ns,
                names,
                symbol_time,
                flight_recorder,
            };
            let samples = writer.run(place);
            drop(writing);
            // The sampler may sleep until a distant tick. Before it wakes, it has no place for
            // another recording.
            agent.wake_sampler();
            samples.drain();
        });
        if started && self.sampler.add(active) {
            self.start_sampler();
        }
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

#[cfg(test)]
mod tests;
