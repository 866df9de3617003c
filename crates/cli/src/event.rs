//! A recording as it is read, piece by piece: what every reader makes and every writer takes.

use std::sync::Arc;
use swipr_formats::model::{Header, Sample, Stack, State, Summary, Thread};

/// A sample that stands by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedSample {
    /// Nanoseconds since the epoch; of the last tick, where there are several.
    pub time_ns: u64,
    /// How many ticks it represents.
    pub ticks: u32,
    /// Whose stack.
    pub thread: Arc<Thread>,
    /// What it was doing.
    pub state: State,
    /// What one tick represents.
    pub weight_ns: u64,
    /// The stack.
    pub stack: Arc<Stack>,
}

impl OwnedSample {
    /// As writers take it.
    pub fn as_sample(&self) -> Sample<'_> {
        Sample {
            time_ns: self.time_ns,
            ticks: self.ticks,
            thread: &self.thread,
            state: self.state,
            weight_ns: self.weight_ns,
            stack: &self.stack,
        }
    }
}

/// A piece of a recording, in this order: one header, samples, one end.
#[derive(Clone, Debug)]
pub enum Event {
    /// What is known before the first sample.
    Header(Header),
    /// A sample.
    Sample(OwnedSample),
    /// What is known after the last sample.
    End(Summary),
}
