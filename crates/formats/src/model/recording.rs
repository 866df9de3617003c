//! What is known before the first sample and after the last one.

use super::Mode;
use std::borrow::Cow;

/// What is known before the first sample.
#[derive(Clone, Debug)]
pub struct Header {
    /// Process id as the process itself sees it; 0 where it is not known.
    pub pid: u32,
    /// The program's name.
    pub process_name: String,
    /// Path of the executable.
    pub executable: String,
    /// Start of the recording, nanoseconds since the epoch; 0 where it is not known.
    pub start_ns: u64,
    /// Time between two ticks, nanoseconds.
    pub interval_ns: u64,
    /// What weights count.
    pub mode: Mode,
    /// What they are, where they are no nanoseconds.
    pub measure: Option<Measure>,
}

/// Weights that are no clock's: the bytes of a profile of the heap, delays at locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// `inuse_space`.
    pub kind: String,
    /// `bytes`.
    pub unit: String,
}

impl Header {
    /// What a recording is called that has no title: the program and its process.
    pub(crate) fn title(&self) -> String {
        match self.pid {
            0 => self.process_name.clone(),
            pid => format!("{} ({pid})", self.process_name),
        }
    }
}

/// What is known after the last sample. Every loss has its count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How long the recording took, nanoseconds.
    pub duration_ns: u64,
    /// How long it should have been, where it is shorter because no more was kept; else 0.
    pub asked_ns: u64,
    /// Threads seen (that passed the filter).
    pub threads: u64,
    /// Ticks at which threads were observed.
    pub ticks: u64,
    /// Ticks left out because the agent came too late.
    pub late: u64,
    /// Samples written.
    pub samples: u64,
    /// Samples left out because of their state or their frames, by the recording's filters.
    pub filtered: u64,
    /// Samples whose stack does not reach the thread's root.
    pub truncated: u64,
    /// Samples thrown away because the reader of the output was too slow.
    pub dropped: u64,
    /// CPU time of which no stack could be had, nanoseconds: it is in the output without one.
    pub unsampled_cpu_ns: u64,
    /// Wall mode: samples for late ticks, from the threads' clocks at the next tick.
    pub filled: u64,
    /// Wall mode: samples for ticks at which a thread was not observed and whose clock moved
    /// meanwhile.
    pub inferred: u64,
    /// Time that the threads were ready to run and got no CPU, nanoseconds.
    pub cpu_wait_ns: u64,
    /// Samples a second that a running thread can have at most, where more were requested: the
    /// kernel's ticks. 0: as many as were requested.
    pub at_most_hz: u64,
    /// Addresses whose lines and inlined functions were not looked up: it would have taken too
    /// long.
    pub without_lines: u64,
    /// Processes of the recording, or files, whose losses are not known. Where there are some, a
    /// count of losses that is 0 is unknown, and others are lower bounds.
    pub uncounted: u64,
    /// A sample is the sum of an unknown number of samples.
    pub are_sums: bool,
    /// The recording has no end: what is counted here is what is left of it.
    pub is_cut: bool,
    /// Why stacks do not reach the root, and how many for each reason.
    pub truncated_by: Vec<(Cow<'static, str>, u64)>,
    /// What the recording took, where that was measured.
    pub cost: Option<Cost>,
}

/// A count of a [`Summary`] with its name.
pub type Count = (&'static str, u64);

/// Every count of a [`Summary`] by its name, in the order in which they are written.
macro_rules! counts {
    ($($name:ident)*) => {
        impl Summary {
            /// Every count with its name.
            pub fn counts(&self) -> impl Iterator<Item = Count> + use<> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// The count of that name.
            pub fn count_mut(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

counts! {
    duration_ns threads ticks samples truncated late dropped filtered filled inferred cpu_wait_ns
    unsampled_cpu_ns at_most_hz without_lines uncounted asked_ns
}

impl Summary {
    /// Adds the counts of a recording that was made at the same time.
    pub fn add(&mut self, other: &Summary) {
        for (name, more) in other.counts() {
            let Some(count) = self.count_mut(name) else { continue };
            *count = match name {
                "duration_ns" | "at_most_hz" | "asked_ns" => more.max(*count),
                _ => count.saturating_add(more),
            };
        }
        for (why, more) in &other.truncated_by {
            match self.truncated_by.iter_mut().find(|(known, _)| known == why) {
                Some((_, count)) => *count += more,
                None => self.truncated_by.push((why.clone(), *more)),
            }
        }
    }

    /// Whether the agent got too little CPU time to sample the threads: most ticks were late, or
    /// none was taken in a second and more.
    pub fn is_starved(&self) -> bool {
        self.late > self.ticks || self.ticks == 0 && self.duration_ns > 1_000_000_000
    }
}

/// What sampling took while a recording ran, nanoseconds. Recordings that run at the same time
/// share it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Half of the interrupted threads were held at most so long. Percentiles are at most twice too
    /// large.
    pub held_p50_ns: u64,
    /// 99 of 100 were.
    pub held_p99_ns: u64,
    /// Half of the passes over the threads took at most so long.
    pub sweep_p50_ns: u64,
    /// 99 of 100 did.
    pub sweep_p99_ns: u64,
    /// CPU time of the agent's own threads.
    pub agent_cpu_ns: u64,
}

impl Cost {
    /// The figures and their names.
    pub(crate) fn fields(&self) -> [(&'static str, u64); 5] {
        [
            ("held_p50_ns", self.held_p50_ns),
            ("held_p99_ns", self.held_p99_ns),
            ("sweep_p50_ns", self.sweep_p50_ns),
            ("sweep_p99_ns", self.sweep_p99_ns),
            ("agent_cpu_ns", self.agent_cpu_ns),
        ]
    }
}
