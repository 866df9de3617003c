//! A recording in memory, to be written in any format later, as often as wanted.
//!
//! What was sampled within a second is summed up, so that memory grows with different stacks and
//! not with samples. When it is written, the samples of a second follow each other thread by
//! thread: their order within it is lost, their sums are not.

use crate::aggregate::{Sum, Sums};
use crate::intern::{StackNumbers, ThreadNumbers};
use crate::model::{Header, Mode, Sample, Stack, State, Summary, Thread};
use crate::order::sorted;
use crate::raw_tree::{LEFT_OUT, note};
use crate::{Format, Selection};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// More distinct stacks are not kept: what comes then is `[left out]`. They are 100 MB or so.
const MAX_STACKS: usize = 200_000;
/// Samples of this much time are summed up.
const SLICE_NS: u64 = 1_000_000_000;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct MemoryRecording {
    header: Header,
    summary: Option<Summary>,
    /// By their beginnings.
    slices: BTreeMap<u64, Sums>,
    threads: ThreadNumbers,
    stacks: StackNumbers,
}

/// What a thread did within a slice of time: one stack, in one state, for so many samples.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Whose stack.
    pub thread: &'a Arc<Thread>,
    /// What it was doing.
    pub state: State,
    /// The stack.
    pub stack: &'a Arc<Stack>,
    /// Samples.
    pub samples: u64,
    /// What they represent, nanoseconds.
    pub weight_ns: u64,
}

impl MemoryRecording {
    /// Nothing was recorded yet.
    pub fn new() -> MemoryRecording {
        let header = Header {
            pid: 0,
            process_name: String::new(),
            executable: String::new(),
            start_ns: 0,
            interval_ns: 0,
            mode: Mode::Wall,
            measure: None,
        };
        let (threads, stacks) = (ThreadNumbers::new(), StackNumbers::new());
        MemoryRecording { header, summary: None, slices: BTreeMap::new(), threads, stacks }
    }

    /// Everything that is kept, in the order of time.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.slices.values().flat_map(|sums| self.entries_of(sums))
    }

    fn entries_of(&self, sums: &Sums) -> Vec<Entry<'_>> {
        let keys: Vec<_> = sums.iter().collect();
        let keys = sorted(&keys, &|(a, _), (b, _)| a.cmp(b));
        let entry = |(&(thread, state, stack), sum): (&(usize, State, usize), &Sum)| {
            let (thread, stack) = (self.threads.get(thread)?, self.stacks.get(stack)?);
            Some(Entry { thread, state, stack, samples: sum.samples, weight_ns: sum.ns })
        };
        keys.into_iter().filter_map(entry).collect()
    }

    /// The recording's figures, once it has ended.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// Writes it in that format, each thread and stack as `of` has it.
    pub fn write(
        &self,
        selection: &Selection,
        mut of: impl FnMut(&Arc<Thread>, &Arc<Stack>) -> (Arc<Thread>, Arc<Stack>),
    ) -> Vec<u8> {
        let mut format = (selection.format.make)(&selection.options);
        let (mut out, mut samples) = (vec![], 0);
        format.begin(&self.header, &mut out);
        let mut known: FxHashMap<(usize, usize), (Arc<Thread>, Arc<Stack>)> = FxHashMap::default();
        for (&start_ns, sums) in &self.slices {
            let mut behind = (None, start_ns);
            for entry in self.entries_of(sums) {
                if behind.0 != Some(entry.thread.tid) {
                    behind = (Some(entry.thread.tid), start_ns);
                }
                let key = (Arc::as_ptr(entry.thread).addr(), Arc::as_ptr(entry.stack).addr());
                let (thread, stack) = known.entry(key).or_insert_with(|| of(entry.thread, entry.stack));
                samples += entry.samples;
                for (ticks, weight_ns) in parts(entry.samples, entry.weight_ns) {
                    behind.1 += weight_ns.saturating_mul(u64::from(ticks));
                    let (time_ns, state) = (behind.1, entry.state);
                    format.sample(&Sample { time_ns, ticks, thread, state, weight_ns, stack }, &mut out);
                }
            }
        }
        let summary = self.summary.clone().unwrap_or_default();
        let threads = self.threads.len() as u64;
        let is_all = self.summary.is_some() && samples == summary.samples;
        format.finish(&if is_all { summary } else { Summary { samples, threads, ..summary } }, &mut out);
        out
    }
}

impl Default for MemoryRecording {
    fn default() -> MemoryRecording {
        MemoryRecording::new()
    }
}

impl Format for MemoryRecording {
    fn begin(&mut self, header: &Header, _: &mut Vec<u8>) {
        self.header = header.clone();
    }

    fn sample(&mut self, sample: &Sample<'_>, _: &mut Vec<u8>) {
        let thread = self.threads.intern(sample.thread).id;
        let stack = match self.stacks.len() < MAX_STACKS || self.stacks.has(sample.stack) {
            true => self.stacks.intern(sample.stack).id,
            false => self.stacks.intern(&Arc::new(Stack { frames: vec![note(LEFT_OUT)] })).id,
        };
        let start_ns = sample.time_ns - sample.time_ns.saturating_sub(self.header.start_ns) % SLICE_NS;
        self.slices
            .entry(start_ns)
            .or_default()
            .entry((thread, sample.state, stack))
            .or_default()
            .add(sample);
    }

    fn finish(&mut self, summary: &Summary, _: &mut Vec<u8>) {
        self.summary = Some(summary.clone());
    }
}

/// Samples of one weight each that sum to `ns`.
fn parts(ticks: u64, ns: u64) -> impl Iterator<Item = (u32, u64)> {
    let each = ns / ticks.max(1);
    let rest = ns - each * ticks;
    let larger = u64::from(rest > 0);
    let most = u64::from(u32::MAX);
    let equal = ticks.saturating_sub(larger);
    let whole = (0..equal.div_ceil(most)).map(move |n| ((equal - n * most).min(most) as u32, each));
    whole.chain((larger > 0).then_some((1, each + rest)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Frame, FrameKind, Function};
    use crate::{Options, find};

    fn stack(name: &str) -> Arc<Stack> {
        let function = Function { name: name.into(), mangled: None, offset: 0, file: None, line: None };
        let frame = Frame { address: 1, kind: FrameKind::Native, module: None, functions: [function].into() };
        Arc::new(Stack { frames: vec![frame] })
    }

    fn kept(samples: &[(u64, &str, u32, u64)]) -> MemoryRecording {
        let mut kept = MemoryRecording::new();
        let header = Header { interval_ns: 10, ..kept.header.clone() };
        kept.begin(&header, &mut vec![]);
        for &(time_ns, name, ticks, weight_ns) in samples {
            let thread = &Arc::new(Thread { tid: 1, name: "one".into() });
            let (state, stack) = (State::Running, &stack(name));
            kept.sample(&Sample { time_ns, ticks, thread, state, weight_ns, stack }, &mut vec![]);
        }
        kept
    }

    fn folded(kept: &MemoryRecording, weight: crate::Weight) -> String {
        let options = Options { weight: Some(weight), ..Options::default() };
        let selection = Selection { format: find("folded").unwrap(), options };
        String::from_utf8(kept.write(&selection, |thread, stack| (thread.clone(), stack.clone()))).unwrap()
    }

    #[test]
    fn what_is_written_sums_to_what_was_sampled_as_often_as_it_is_written() {
        let samples = [(1, "a", 3, 7), (2, "b", 1, 5), (SLICE_NS, "a", 2, 10), (SLICE_NS + 1, "a", 1, 1)];
        let kept = kept(&samples);
        for _ in 0..2 {
            assert_eq!(folded(&kept, crate::Weight::Samples), "one;a 6\none;b 1\n");
            assert_eq!(folded(&kept, crate::Weight::Nanoseconds), "one;a 42\none;b 5\n");
        }
        assert_eq!(kept.entries().map(|entry| entry.samples).sum::<u64>(), 7);
    }

    #[test]
    fn parts_sum_to_the_whole() {
        for (ticks, ns) in [(1, 0), (1, 9), (3, 9), (3, 10), (7, 3), (u64::from(u32::MAX) + 9, 1 << 40)] {
            let parts: Vec<_> = parts(ticks, ns).collect();
            assert_eq!(parts.iter().map(|(n, _)| u64::from(*n)).sum::<u64>(), ticks);
            assert_eq!(parts.iter().map(|(n, each)| u64::from(*n) * each).sum::<u64>(), ns, "{ticks} {ns}");
        }
    }
}
