//! A recording in memory.

use std::collections::HashMap;
use std::sync::Arc;
use swipr_formats::Selection;
use swipr_formats::model::{Header, Module, Sample, Stack, State, Summary, Thread};

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// Which of the threads.
    pub thread: usize,
    /// What it was doing.
    pub state: State,
    /// What the sample represents, nanoseconds.
    pub weight_ns: u64,
    /// Which of the stacks.
    pub stack: usize,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What was known before the first sample.
    pub header: Header,
    /// Of samples.
    pub threads: Vec<Arc<Thread>>,
    /// Of samples; the threads' stacks, each once.
    pub stacks: Vec<Arc<Stack>>,
    /// In the order of the file.
    pub samples: Vec<Taken>,
    /// What was known after the last sample; what the samples say where the file has no end.
    pub summary: Summary,
    /// What to subtract from addresses in a module to get those of its file, for modules that say
    /// so and not where in the file they begin.
    pub(crate) biases: HashMap<Arc<Module>, u64>,
}

impl Recording {
    /// Without anything behind the header.
    pub(crate) fn new(header: Header) -> Recording {
        let (threads, stacks, samples, summary, biases) = <_>::default();
        Recording { header, threads, stacks, samples, summary, biases }
    }

    /// Figures from the samples, for a file that has none.
    pub(crate) fn figures(&self) -> Summary {
        let times = || self.samples.iter().map(|taken| taken.time_ns);
        let start_ns = Some(self.header.start_ns).filter(|&ns| ns > 0).or_else(|| times().min());
        let end_ns = times().max().unwrap_or(0);
        Summary {
            samples: self.samples.len() as u64,
            threads: self.threads.len() as u64,
            duration_ns: end_ns.saturating_sub(start_ns.unwrap_or(0)),
            uncounted: 1,
            ..Summary::default()
        }
    }

    /// The recording in another format.
    pub fn write(&self, selection: &Selection) -> Vec<u8> {
        let mut format = (selection.format.make)(&selection.options);
        let mut bytes = Vec::new();
        format.begin(&self.header, &mut bytes);
        for taken in &self.samples {
            let (Some(thread), Some(stack)) = (self.threads.get(taken.thread), self.stacks.get(taken.stack))
            else {
                continue;
            };
            let Taken { time_ns, state, weight_ns, .. } = *taken;
            format.sample(&Sample { time_ns, ticks: 1, thread, state, weight_ns, stack }, &mut bytes);
        }
        format.finish(&self.summary, &mut bytes);
        bytes
    }
}
