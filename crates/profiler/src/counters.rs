//! Counters of recordings and of the agent as a whole, and why the sampler could not sample.

use crate::histogram::Histogram;
use std::fmt::Display;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use swipr_formats::model::Summary;
use swipr_os::locks::lock;
use swipr_runtimes::room::End;
use swipr_unwind::walk::Stop;

/// A number that one thread adds to and others read.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Gives it a value.
    pub fn set(&self, number: u64) {
        self.0.store(number, Relaxed);
    }
}

/// Of one recording; the fields are those of [`Summary`].
#[derive(Debug, Default)]
#[allow(missing_docs)] // see Summary
pub struct RecordingCounters {
    pub duration_ns: Counter,
    pub threads: Counter,
    pub ticks: Counter,
    pub late: Counter,
    pub samples: Counter,
    pub truncated: Counter,
    pub dropped: Counter,
    pub unsampled_cpu_ns: Counter,
    pub filled: Counter,
    pub inferred: Counter,
    pub cpu_wait_ns: Counter,
}

impl RecordingCounters {
    /// The figures as they are now.
    pub fn summary(&self) -> Summary {
        Summary {
            duration_ns: self.duration_ns.get(),
            threads: self.threads.get(),
            ticks: self.ticks.get(),
            late: self.late.get(),
            samples: self.samples.get(),
            truncated: self.truncated.get(),
            dropped: self.dropped.get(),
            unsampled_cpu_ns: self.unsampled_cpu_ns.get(),
            without_lines: 0,
            filled: self.filled.get(),
            inferred: self.inferred.get(),
            cpu_wait_ns: self.cpu_wait_ns.get(),
            ..Summary::default()
        }
    }

    /// Adds another recording's counts of what was taken and what was lost.
    pub fn add(&self, other: &RecordingCounters) {
        let pairs = [
            (&self.ticks, &other.ticks),
            (&self.late, &other.late),
            (&self.samples, &other.samples),
            (&self.truncated, &other.truncated),
            (&self.dropped, &other.dropped),
            (&self.unsampled_cpu_ns, &other.unsampled_cpu_ns),
            (&self.filled, &other.filled),
            (&self.inferred, &other.inferred),
            (&self.cpu_wait_ns, &other.cpu_wait_ns),
        ];
        pairs.into_iter().for_each(|(to, from)| to.add(from.get()));
    }
}

/// Of the agent since it started.
#[derive(Debug, Default)]
pub struct AgentCounters {
    /// Recordings started.
    pub recordings: Counter,
    /// Passes over the threads.
    pub sweeps: Counter,
    /// Stacks taken of blocked threads, without touching them.
    pub copied: Counter,
    /// Samples of threads that had not run since their last stack was taken.
    pub reused: Counter,
    /// Timers armed.
    pub signals: Counter,
    /// Timers that were not made: the kernel refused, or half of RLIMIT_SIGPENDING is used.
    pub refused: Counter,
    /// Stacks of running threads, from their signal handlers.
    pub answered: Counter,
    /// Copies thrown away because the thread woke up meanwhile.
    pub moved: Counter,
    /// Threads known at the last sweep.
    pub threads: Counter,
    /// Threads whose `syscall` file could not be read: where they are blocked is not known.
    pub unreadable: Counter,
    /// Objects with an unwind table, their rows, bytes, and the time it took to build them.
    pub tables: [Counter; 5],
    stops: [Counter; Stop::ALL.len()],
    interpreted: [Counter; End::ALL.len()],
    interpreter: Mutex<Option<String>>,
    /// How long signal handlers took.
    pub held: Histogram,
    /// How long a pass over the threads took.
    pub sweep: Histogram,
    signal_blockers: Mutex<Vec<String>>,
    excluded: Mutex<Vec<String>>,
    in_step: Mutex<Vec<String>>,
    failure: Mutex<Option<String>>,
}

impl AgentCounters {
    /// The sampler cannot sample: notes the reason, for the clients of its recordings.
    pub fn fail(&self, reason: impl Display) {
        self.set_failure(Some(reason.to_string()));
    }

    /// A sampler is about to start: forgets why the last one failed.
    pub fn clear_failure(&self) {
        self.set_failure(None);
    }

    fn set_failure(&self, failure: Option<String>) {
        if let Some(mut place) = lock(&self.failure) {
            *place = failure;
        }
    }

    /// Why the sampler could not sample, if it could not.
    pub fn failure(&self) -> Option<String> {
        lock(&self.failure).and_then(|failure| failure.clone())
    }

    /// Counts a walk that ended for this reason.
    pub fn stopped(&self, stop: Stop) {
        if let Some(counter) = self.stops.get(stop as usize) {
            counter.add(1);
        }
    }

    /// Counts a walk of an interpreter's frames that ended so.
    pub fn interpreted(&self, end: End) {
        if let Some(counter) = self.interpreted.get(end as usize) {
            counter.add(1);
        }
    }

    /// How often these walks ended in each way.
    pub fn interpreted_ends(&self) -> impl Iterator<Item = (End, u64)> + '_ {
        End::ALL.iter().zip(&self.interpreted).map(|(&end, counter)| (end, counter.get()))
    }

    /// The interpreter whose frames are read, or why they are not.
    pub fn interpreter(&self) -> Option<String> {
        lock(&self.interpreter).and_then(|text| text.clone())
    }

    /// See [`AgentCounters::interpreter`].
    pub fn set_interpreter(&self, text: Option<String>) {
        if let Some(mut known) = lock(&self.interpreter) {
            *known = text;
        }
    }

    /// Names of the threads that run with the sampling signal blocked.
    pub fn signal_blockers(&self) -> Vec<String> {
        lock(&self.signal_blockers).map(|names| names.clone()).unwrap_or_default()
    }

    /// See [`AgentCounters::signal_blockers`].
    pub fn set_signal_blockers(&self, names: Vec<String>) {
        if let Some(mut known) = lock(&self.signal_blockers) {
            *known = names;
        }
    }

    /// Names of the threads that a signal might kill.
    pub fn excluded(&self) -> Vec<String> {
        lock(&self.excluded).map(|names| names.clone()).unwrap_or_default()
    }

    /// See [`AgentCounters::excluded`].
    pub fn set_excluded(&self, names: Vec<String>) {
        if let Some(mut known) = lock(&self.excluded) {
            *known = names;
        }
    }

    /// Names of the threads that run in step with the kernel's tick.
    pub fn in_step(&self) -> Vec<String> {
        lock(&self.in_step).map(|names| names.clone()).unwrap_or_default()
    }

    /// See [`AgentCounters::in_step`].
    pub fn set_in_step(&self, names: Vec<String>) {
        if let Some(mut known) = lock(&self.in_step) {
            *known = names;
        }
    }

    /// How often walks ended for each reason.
    pub fn stops(&self) -> impl Iterator<Item = (Stop, u64)> + '_ {
        Stop::ALL.iter().zip(&self.stops).map(|(&stop, counter)| (stop, counter.get()))
    }
}
