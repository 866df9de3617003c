//! Writes what the flight recorder keeps, as a recording: a second at a time, so that neither the
//! memory for its text nor a slow reader grows with the time that is asked for.

use super::FlightRecorder;
use crate::Format;
use crate::aggregate::Sum;
use crate::model::{FrameKind, Header, Sample, Stack, State, Summary, Thread};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// A stack of the recorder's that was met.
#[derive(Clone, Debug, Default)]
struct Met {
    is_met: bool,
    /// With its names.
    stack: Option<Arc<Stack>>,
    /// It was cut, and the names show that it is whole.
    is_whole: bool,
}

/// A recording of the latest time, while it is written.
#[derive(Debug)]
pub struct FlightRecord {
    since_ns: u64,
    /// The next second begins then or later, and the last one at `until_ns`.
    next_ns: u64,
    until_ns: u64,
    behind_ns: i64,
    /// The generation of the last second, and its stacks that were met, by node.
    generation: u64,
    met: Vec<Met>,
    tids: FxHashSet<u64>,
    summary: Summary,
    /// Samples that the recorder had at the beginning and that are not taken yet.
    left: u64,
}

/// What the recorder keeps of a second.
#[derive(Debug)]
pub struct Second {
    end_ns: u64,
    /// By thread, state and node.
    sums: Vec<(Arc<Thread>, State, usize, Sum)>,
    /// Those that were not in the seconds before.
    stacks: Vec<(usize, Stack)>,
}

impl FlightRecord {
    /// Begins with what was sampled from `since_ns` on. The samples' clock shows `behind_ns` less
    /// than the time of day by now, which is written.
    pub fn begin(
        recorder: &FlightRecorder,
        since_ns: u64,
        behind_ns: i64,
        format: &mut dyn Format,
        out: &mut Vec<u8>,
    ) -> FlightRecord {
        let (start_ns, summary) = summary(recorder, since_ns);
        let header =
            Header { start_ns: start_ns.saturating_add_signed(behind_ns), ..recorder.header.clone() };
        format.begin(&header, out);
        let slices = || recorder.generations.iter().flat_map(|generation| generation.slices.iter());
        let wanted = || slices().filter(|slice| slice.end_ns >= since_ns);
        FlightRecord {
            since_ns,
            next_ns: 0,
            until_ns: wanted().map(|slice| slice.start_ns).max().unwrap_or(0),
            behind_ns,
            generation: 0,
            met: vec![],
            tids: FxHashSet::default(),
            summary,
            left: wanted().flat_map(|slice| slice.sums.values()).map(|sum| sum.samples).sum(),
        }
    }

    /// Takes the next second from the recorder; `None`: that was all.
    pub fn take(&mut self, recorder: &FlightRecorder) -> Option<Second> {
        let FlightRecord { since_ns, next_ns, until_ns, .. } = *self;
        let is_next = |start_ns| (next_ns..=until_ns).contains(&start_ns);
        let (generation, slice) = recorder
            .generations
            .iter()
            .flat_map(|generation| generation.slices.iter().map(move |slice| (generation, slice)))
            .find(|(_, slice)| is_next(slice.start_ns) && slice.end_ns >= since_ns)?;
        self.next_ns = slice.start_ns + 1;
        if self.generation != generation.number {
            self.generation = generation.number;
            self.met.clear();
        }
        let threads: Vec<&Arc<Thread>> = generation.threads.values();
        let (mut sums, mut stacks) = (vec![], vec![]);
        for (&(thread, state, at), sum) in &slice.sums {
            let Some(&thread) = threads.get(thread) else { continue };
            if self.met.len() <= at {
                self.met.resize(at + 1, Met::default());
            }
            if let Some(met) = self.met.get_mut(at).filter(|met| !met.is_met) {
                met.is_met = true;
                stacks.push((at, generation.stacks.stack(at as u32)));
            }
            self.left = self.left.saturating_sub(sum.samples);
            sums.push((thread.clone(), state, at, *sum));
        }
        Some(Second { end_ns: slice.end_ns, sums, stacks })
    }

    /// Writes a second: `name` gives stacks their names, then `is_wanted` filters. `hand_on` is
    /// called between samples, and ends it by an error.
    pub fn write<E>(
        &mut self,
        second: Second,
        format: &mut dyn Format,
        name: &mut dyn FnMut(Stack) -> Stack,
        is_wanted: &mut dyn FnMut(&Sample<'_>) -> bool,
        out: &mut Vec<u8>,
        mut hand_on: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (at, stack) in second.stacks {
            let was_cut = is_cut(&stack);
            let stack = Arc::new(name(stack));
            let is_whole = was_cut && !is_cut(&stack);
            if let Some(met) = self.met.get_mut(at) {
                *met = Met { is_met: true, stack: Some(stack), is_whole };
            }
        }
        let time_ns = second.end_ns.saturating_add_signed(self.behind_ns);
        for (thread, state, at, sum) in &second.sums {
            let Some(Met { stack: Some(stack), is_whole, .. }) = self.met.get(*at) else { continue };
            let (thread, state) = (thread, *state);
            let seen_whole = if *is_whole { sum.samples } else { 0 };
            self.summary.truncated = self.summary.truncated.saturating_sub(seen_whole);
            let ticks = u32::try_from(sum.samples).unwrap_or(u32::MAX).max(1);
            let each =
                |ticks: u32, weight_ns: u64| Sample { time_ns, ticks, thread, state, weight_ns, stack };
            // CPU weights differ: what does not divide is one tick's.
            let weight_ns = sum.ns / u64::from(ticks);
            let rest_ns = sum.ns - weight_ns * u64::from(ticks);
            for sample in [each(ticks - 1, weight_ns), each(1, weight_ns + rest_ns)] {
                if sample.ticks > 0 && is_wanted(&sample) {
                    self.tids.insert(thread.tid.into());
                    self.summary.samples += u64::from(sample.ticks);
                    format.sample(&sample, out);
                    hand_on(out)?;
                }
            }
        }
        Ok(())
    }

    /// The recording's figures. Losses are those of all threads, but for stacks that their names
    /// show to be whole. What the recorder let go of meanwhile counts as dropped.
    pub fn into_summary(self) -> Summary {
        let dropped = self.summary.dropped.saturating_add(self.left);
        Summary { threads: self.tids.len() as u64, dropped, ..self.summary }
    }
}

/// When what is kept since then begins, and its figures but for samples and threads.
fn summary(recorder: &FlightRecorder, since_ns: u64) -> (u64, Summary) {
    let all = || recorder.generations.iter().flat_map(|generation| generation.slices.iter());
    let wanted = || all().filter(|slice| slice.end_ns >= since_ns);
    let start_ns = wanted().next().map_or(since_ns, |slice| slice.start_ns.max(recorder.header.start_ns));
    let end_ns = wanted().next_back().map_or(start_ns, |slice| slice.end_ns);
    let (now, none) = (&recorder.figures, Summary::default());
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

/// Whether a stack does not reach the thread's root.
fn is_cut(stack: &Stack) -> bool {
    stack.frames.last().is_some_and(|last| last.kind == FrameKind::Note)
}
