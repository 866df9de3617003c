//! The flight recorder: the latest samples, kept in bounded memory. They can be written after
//! something has happened, in any format.
//!
//! Samples are summed up a second at a time, by thread, state and stack. Stacks are one tree. From
//! time to time a new tree is started, and the old one is dropped when nothing that is kept is in
//! it. So the memory is that of two or three small trees, however long this runs.

mod record;

pub use record::FlightRecord;

use std::collections::VecDeque;

use crate::Options;
use crate::aggregate::Sums;
use crate::intern::ThreadNumbers;
use crate::model::{Header, Mode, Sample, Summary};
use crate::raw_tree::RawTree;

/// Samples of this much time are summed up.
const SLICE_NS: u64 = 1_000_000_000;
/// Nodes of a tree; three trees take 20 MB at most.
const MAX_NODES: usize = 100_000;
/// Stacks that are found without reading their frames, as those of idle threads are.
const MAX_RECENT: usize = 1024;
/// Sums that are kept of a second; samples beyond that are counted as dropped.
const MAX_SUMS: usize = 20_000;

/// One tree and the seconds whose stacks are in it.
struct Generation {
    /// No other has it.
    number: u64,
    stacks: RawTree<MAX_RECENT>,
    threads: ThreadNumbers,
    slices: VecDeque<RingSlice>,
}

struct RingSlice {
    start_ns: u64,
    end_ns: u64,
    /// By thread, state and node.
    sums: Sums,
    dropped: u64,
    /// The recording's figures as they were before.
    before: Summary,
}

/// See the module's text.
pub struct FlightRecorder {
    header: Header,
    keep_ns: u64,
    generations: VecDeque<Generation>,
    /// The recording's figures since it began.
    figures: Summary,
}

impl std::fmt::Debug for FlightRecorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FlightRecorder({} generations)", self.generations.len())
    }
}

impl Generation {
    fn new(number: u64) -> Self {
        let stacks = RawTree::with_at_most(MAX_NODES);
        Generation { number, stacks, threads: ThreadNumbers::new(), slices: VecDeque::new() }
    }
}

impl FlightRecorder {
    /// Keeps so much time of a recording.
    pub fn new(header: Header, keep_ns: u64) -> FlightRecorder {
        let generations = VecDeque::from([Generation::new(0)]);
        FlightRecorder { header, keep_ns: keep_ns.max(SLICE_NS), generations, figures: Summary::default() }
    }

    /// Takes the figures of the recording since it began: after the samples that they count.
    pub fn set_figures(&mut self, figures: Summary) {
        self.figures = figures;
    }

    /// Takes a sample. In wall mode its ticks are divided among the seconds in which they were.
    pub fn add(&mut self, sample: &Sample<'_>) {
        self.forget(sample.time_ns);
        let interval_ns = if self.header.mode == Mode::Wall { sample.weight_ns } else { 0 };
        let (mut left, mut time_ns) = (sample.ticks, sample.time_ns);
        while left > 0 {
            let in_second = (time_ns % SLICE_NS).checked_div(interval_ns).map(|ticks| ticks + 1);
            let ticks =
                in_second.and_then(|ticks| u32::try_from(ticks).ok()).map_or(left, |ticks| ticks.min(left));
            self.add_to_second(&Sample { time_ns, ticks, ..sample.clone() });
            left -= ticks;
            // Nothing is earlier than the epoch.
            let Some(earlier_ns) = time_ns.checked_sub(interval_ns * u64::from(ticks)) else { return };
            time_ns = earlier_ns;
        }
    }

    fn add_to_second(&mut self, sample: &Sample<'_>) {
        let start_ns = sample.time_ns - sample.time_ns % SLICE_NS;
        let place = self.generation_of(start_ns);
        let FlightRecorder { generations, figures, .. } = self;
        let Some(generation) = generations.get_mut(place) else { return };
        let behind = generation.slices.partition_point(|slice| slice.start_ns <= start_ns);
        let is_known =
            |at: &usize| generation.slices.get(*at).is_some_and(|slice| slice.start_ns == start_ns);
        let at = behind.checked_sub(1).filter(is_known).unwrap_or(behind);
        if at == behind {
            let (sums, before) = (Sums::default(), figures.clone());
            let slice = RingSlice { start_ns, end_ns: start_ns, sums, dropped: 0, before };
            generation.slices.insert(at, slice);
        }
        let thread = generation.threads.intern(sample.thread).id;
        let node = generation.stacks.node(sample.stack, &Options::default());
        let Some(slice) = generation.slices.get_mut(at) else { return };
        slice.end_ns = slice.end_ns.max(sample.time_ns);
        let key = (thread, sample.state, node as usize);
        if slice.sums.len() >= MAX_SUMS && !slice.sums.contains_key(&key) {
            slice.dropped += u64::from(sample.ticks);
            return;
        }
        slice.sums.entry(key).or_default().add(sample);
    }

    /// The generation that has that second, or is to have it.
    fn generation_of(&self, start_ns: u64) -> usize {
        let has_begun = |generation: &Generation| {
            generation.slices.front().is_some_and(|first| first.start_ns <= start_ns)
        };
        let is_newest =
            self.generations.iter().flat_map(|it| it.slices.back()).all(|slice| slice.start_ns < start_ns);
        let last = self.generations.len().saturating_sub(1);
        if is_newest { last } else { self.generations.iter().rposition(has_begun).unwrap_or(0) }
    }

    /// Lets go of what is too old at this time.
    fn forget(&mut self, now_ns: u64) {
        let oldest_ns = now_ns.saturating_sub(self.keep_ns);
        let begun_ns =
            self.generations.back().and_then(|last| last.slices.front()).map(|first| first.start_ns);
        if begun_ns.is_some_and(|begun_ns| begun_ns.saturating_add(self.keep_ns / 2) < now_ns) {
            let number = self.generations.back().map_or(0, |last| last.number + 1);
            self.generations.push_back(Generation::new(number));
        }
        for generation in &mut self.generations {
            while generation.slices.front().is_some_and(|slice| slice.end_ns < oldest_ns) {
                generation.slices.pop_front();
            }
        }
        while self.generations.len() > 1 && self.generations.front().is_some_and(|old| old.slices.is_empty())
        {
            self.generations.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
