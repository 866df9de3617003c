//! The flight recorder: the latest samples, kept in bounded memory. They can be written after
//! something has happened, in any format.
//!
//! Samples are summed up a second at a time, by thread, state and stack. Stacks are one tree. From
//! time to time a new tree is begun, and the old one is dropped when nothing that is kept is in it.
//! So the memory is that of two or three small trees, however long this runs.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::aggregate::Sum;
use crate::intern::ThreadNumbers;
use crate::model::{Frame, FrameKind, Header, Mode, Sample, Stack, State, Summary, Thread};
use crate::raw_tree::RawTree;
use crate::{Format, Options};

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
    stacks: RawTree<MAX_RECENT>,
    threads: ThreadNumbers,
    slices: VecDeque<RingSlice>,
}

struct RingSlice {
    start_ns: u64,
    end_ns: u64,
    /// By thread, state and node.
    sums: FxHashMap<(usize, State, u32), Sum>,
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
    fn new() -> Self {
        let stacks = RawTree::with_at_most(MAX_NODES);
        Generation { stacks, threads: ThreadNumbers::new(), slices: VecDeque::new() }
    }
}

impl FlightRecorder {
    /// Keeps so much time of a recording.
    pub fn new(header: Header, keep_ns: u64) -> FlightRecorder {
        let generations = VecDeque::from([Generation::new()]);
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
            let (sums, before) = (FxHashMap::default(), figures.clone());
            let slice = RingSlice { start_ns, end_ns: start_ns, sums, dropped: 0, before };
            generation.slices.insert(at, slice);
        }
        let thread = generation.threads.intern(sample.thread).id;
        let node = generation.stacks.node(sample.stack, &Options::default());
        let Some(slice) = generation.slices.get_mut(at) else { return };
        slice.end_ns = slice.end_ns.max(sample.time_ns);
        let key = (thread, sample.state, node);
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
            self.generations.push_back(Generation::new());
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

    /// All frames of what is kept, each about once.
    pub fn frames(&self) -> Vec<Frame> {
        let frames = self.generations.iter().flat_map(|generation| generation.stacks.tree.frames());
        frames.map(|known| known.0.clone()).collect()
    }

    /// When what is kept since then begins, and its figures but for samples and threads.
    fn summary(&self, since_ns: u64) -> (u64, Summary) {
        let all = || self.generations.iter().flat_map(|generation| generation.slices.iter());
        let wanted = || all().filter(|slice| slice.end_ns >= since_ns);
        let start_ns = wanted().next().map_or(since_ns, |slice| slice.start_ns.max(self.header.start_ns));
        let end_ns = wanted().next_back().map_or(start_ns, |slice| slice.end_ns);
        let (now, none) = (&self.figures, Summary::default());
        let before = wanted().next().map_or(&none, |first| &first.before);
        let since = |of: fn(&Summary) -> u64| of(now).saturating_sub(of(before));
        let unkept = wanted().map(|slice| slice.dropped).sum::<u64>();
        let summary = Summary {
            duration_ns: end_ns.saturating_sub(start_ns),
            ticks: since(|figures| figures.ticks),
            late: since(|figures| figures.late),
            truncated: since(|figures| figures.truncated),
            dropped: since(|figures| figures.dropped).saturating_add(unkept),
            filled: since(|figures| figures.filled),
            inferred: since(|figures| figures.inferred),
            unsampled_cpu_ns: since(|figures| figures.unsampled_cpu_ns),
            cpu_wait_ns: since(|figures| figures.cpu_wait_ns),
            ..Summary::default()
        };
        (start_ns, summary)
    }

    /// Writes what was sampled from that time on, as a recording: `name` gives stacks their names,
    /// then `is_wanted` filters. The samples' clock shows `behind_ns` less (or more) than the time
    /// of day by now, which is written. Returns its figures. Losses are those of all threads, but
    /// for stacks that their names show to be whole.
    pub fn write(
        &self,
        since_ns: u64,
        behind_ns: i64,
        format: &mut dyn Format,
        mut name: impl FnMut(Stack) -> Stack,
        mut is_wanted: impl FnMut(&Sample<'_>) -> bool,
        out: &mut Vec<u8>,
    ) -> Summary {
        let (start_ns, mut summary) = self.summary(since_ns);
        let start_ns = start_ns.saturating_add_signed(behind_ns);
        format.begin(&Header { start_ns, ..self.header.clone() }, out);
        let mut tids = rustc_hash::FxHashSet::default();
        for generation in &self.generations {
            let threads: Vec<&Arc<Thread>> = generation.threads.values();
            let mut stacks = FxHashMap::default();
            for slice in generation.slices.iter().filter(|slice| slice.end_ns >= since_ns) {
                for (&(thread, state, node), sum) in &slice.sums {
                    let Some(&thread) = threads.get(thread) else { continue };
                    let (stack, is_whole) = stacks.entry(node).or_insert_with(|| {
                        let stack = generation.stacks.stack(node);
                        let was_cut = is_cut(&stack);
                        let stack = Arc::new(name(stack));
                        let is_whole = was_cut && !is_cut(&stack);
                        (stack, is_whole)
                    });
                    summary.truncated =
                        summary.truncated.saturating_sub(if *is_whole { sum.samples } else { 0 });
                    let ticks = u32::try_from(sum.samples).unwrap_or(u32::MAX).max(1);
                    let each = |ticks: u32, weight_ns: u64| Sample {
                        time_ns: slice.end_ns.saturating_add_signed(behind_ns),
                        ticks,
                        thread,
                        state,
                        weight_ns,
                        stack,
                    };
                    // CPU weights differ: what does not divide is one tick's.
                    let weight_ns = sum.ns / u64::from(ticks);
                    let rest_ns = sum.ns - weight_ns * u64::from(ticks);
                    for sample in [each(ticks - 1, weight_ns), each(1, weight_ns + rest_ns)] {
                        if sample.ticks > 0 && is_wanted(&sample) {
                            tids.insert(thread.tid);
                            summary.samples += u64::from(sample.ticks);
                            format.sample(&sample, out);
                        }
                    }
                }
            }
        }
        summary.threads = tids.len() as u64;
        summary
    }
}

/// Whether a stack does not reach the thread's root.
fn is_cut(stack: &Stack) -> bool {
    stack.frames.last().is_some_and(|last| last.kind == FrameKind::Note)
}

#[cfg(test)]
mod tests;
