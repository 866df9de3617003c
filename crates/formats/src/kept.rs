//! A recording in memory, to be written in any format later, as often as wanted.
//!
//! What was sampled within a slice of time is summed up, so that memory grows with different stacks
//! and not with samples. When it is written, the samples of a slice follow each other thread by
//! thread: their order within it is lost, their sums are not.

use crate::model::{Frame, FrameKind, Function, Header, Mode, Sample, Stack, State, Summary, Thread};
use crate::order::sorted;
use crate::{Format, PtrCache, Selection};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// More distinct stacks are not kept: what comes then is `[left out]`. They are 100 MB or so.
const MAX_STACKS: usize = 200_000;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct MemoryRecording {
    header: Header,
    summary: Option<Summary>,
    slice_ns: u64,
    most_slices: usize,
    slices: VecDeque<Slice>,
    ids: FxHashMap<Arc<Thread>, u32>,
    threads: Vec<Arc<Thread>>,
    stacks: FxHashMap<Arc<Stack>, u32>,
    by_number: Vec<Arc<Stack>>,
    recent: PtrCache<Stack, u32>,
}

#[derive(Clone, Debug, Default)]
struct Slice {
    start_ns: u64,
    /// By thread, state and stack.
    sums: FxHashMap<(u32, State, u32), KeptSum>,
}

#[derive(Clone, Copy, Debug, Default)]
struct KeptSum {
    ticks: u64,
    ns: u64,
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
    /// What they stand for, nanoseconds.
    pub weight_ns: u64,
}

impl MemoryRecording {
    /// Keeps the latest `most_slices` slices of so many nanoseconds each.
    pub fn new(slice_ns: u64, most_slices: usize) -> MemoryRecording {
        let header = Header {
            pid: 0,
            process_name: String::new(),
            executable: String::new(),
            start_ns: 0,
            interval_ns: 0,
            mode: Mode::Wall,
        };
        MemoryRecording {
            header,
            summary: None,
            slice_ns: slice_ns.max(1),
            most_slices: most_slices.max(1),
            slices: VecDeque::new(),
            ids: FxHashMap::default(),
            threads: vec![],
            stacks: FxHashMap::default(),
            by_number: vec![],
            recent: PtrCache::default(),
        }
    }

    /// Everything that is kept, in the order of time.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.slices.iter().flat_map(|slice| self.entries_of(slice))
    }

    fn entries_of(&self, slice: &Slice) -> Vec<Entry<'_>> {
        let keys: Vec<_> = slice.sums.iter().collect();
        let keys = sorted(&keys, &|(a, _), (b, _)| a.cmp(b));
        let entry = |(&(thread, state, stack), sum): (&(u32, State, u32), &KeptSum)| {
            Some(Entry {
                thread: self.threads.get(thread as usize)?,
                state,
                stack: self.by_number.get(stack as usize)?,
                samples: sum.ticks,
                weight_ns: sum.ns,
            })
        };
        keys.into_iter().filter_map(entry).collect()
    }

    /// Which process was recorded, and how.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The recording's figures, once it has ended.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// Writes what was sampled from `since_ns` (since the epoch) on in that format.
    pub fn write(&self, selection: &Selection, since_ns: u64) -> Vec<u8> {
        self.write_with(selection, since_ns, |thread, stack| (thread.clone(), stack.clone()))
    }

    /// The same with other threads and stacks.
    pub fn write_with(
        &self,
        selection: &Selection,
        since_ns: u64,
        mut of: impl FnMut(&Arc<Thread>, &Arc<Stack>) -> (Arc<Thread>, Arc<Stack>),
    ) -> Vec<u8> {
        let mut format = (selection.format.make)(&selection.options);
        let (mut out, mut samples) = (vec![], 0);
        let slices = || self.slices.iter().filter(|slice| slice.start_ns + self.slice_ns > since_ns);
        let mut header = self.header.clone();
        header.start_ns =
            slices().next().map_or(header.start_ns, |slice| slice.start_ns.max(header.start_ns));
        format.begin(&header, &mut out);
        let mut known: FxHashMap<(usize, usize), (Arc<Thread>, Arc<Stack>)> = FxHashMap::default();
        for slice in slices() {
            let mut behind = (None, slice.start_ns);
            for entry in self.entries_of(slice) {
                if behind.0 != Some(entry.thread.tid) {
                    behind = (Some(entry.thread.tid), slice.start_ns);
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

    /// The slice of that time; of what comes too late, the first.
    fn slice_at(&mut self, time_ns: u64) -> Option<&mut Slice> {
        let start_ns = time_ns - time_ns.saturating_sub(self.header.start_ns) % self.slice_ns;
        let is_new = self.slices.back().is_none_or(|last| last.start_ns < start_ns);
        if is_new {
            if self.slices.len() >= self.most_slices {
                self.slices.pop_front();
            }
            self.slices.push_back(Slice { start_ns, sums: FxHashMap::default() });
        }
        let at = self.slices.iter().rposition(|slice| slice.start_ns <= start_ns);
        self.slices.get_mut(at.unwrap_or(0))
    }

    fn stack(&mut self, stack: &Arc<Stack>) -> u32 {
        let (stacks, by_number) = (&mut self.stacks, &mut self.by_number);
        *self.recent.get_or_make(stack, || {
            let stack = match stacks.len() >= MAX_STACKS && !stacks.contains_key(stack) {
                true => Arc::new(left_out()),
                false => Arc::clone(stack),
            };
            let next = by_number.len() as u32;
            let number = *stacks.entry(Arc::clone(&stack)).or_insert(next);
            if number == next {
                by_number.push(stack);
            }
            number
        })
    }

    fn thread(&mut self, thread: &Arc<Thread>) -> u32 {
        if let Some(&number) = self.ids.get(thread) {
            return number;
        }
        let number = self.threads.len() as u32;
        self.threads.push(Arc::clone(thread));
        self.ids.insert(Arc::clone(thread), number);
        number
    }
}

impl Format for MemoryRecording {
    fn begin(&mut self, header: &Header, _: &mut Vec<u8>) {
        self.header = header.clone();
    }

    fn sample(&mut self, sample: &Sample<'_>, _: &mut Vec<u8>) {
        let (thread, stack) = (self.thread(sample.thread), self.stack(sample.stack));
        let Some(slice) = self.slice_at(sample.time_ns) else { return };
        let sum = slice.sums.entry((thread, sample.state, stack)).or_default();
        sum.ticks += u64::from(sample.ticks);
        sum.ns += u64::from(sample.ticks).saturating_mul(sample.weight_ns);
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

fn left_out() -> Stack {
    let name = "[left out: too many different stacks]".into();
    let function = Function { name, mangled: None, offset: 0, file: None, line: None };
    let frame = Frame { address: 0, kind: FrameKind::Note, module: None, functions: [function].into() };
    Stack { frames: vec![frame] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, find};

    const SECOND: u64 = 1_000_000_000;

    fn stack(name: &str) -> Arc<Stack> {
        let function = Function { name: name.into(), mangled: None, offset: 0, file: None, line: None };
        let frame = Frame { address: 1, kind: FrameKind::Native, module: None, functions: [function].into() };
        Arc::new(Stack { frames: vec![frame] })
    }

    fn kept(most_slices: usize, samples: &[(u64, &str, u32, u64)]) -> MemoryRecording {
        let mut kept = MemoryRecording::new(SECOND, most_slices);
        let header = Header { interval_ns: 10, ..kept.header.clone() };
        kept.begin(&header, &mut vec![]);
        for &(time_ns, name, ticks, weight_ns) in samples {
            let thread = &Arc::new(Thread { tid: 1, name: "one".into() });
            let (state, stack) = (State::Running, &stack(name));
            kept.sample(&Sample { time_ns, ticks, thread, state, weight_ns, stack }, &mut vec![]);
        }
        kept
    }

    fn folded(kept: &MemoryRecording, since_ns: u64, weight: crate::Weight) -> String {
        let options = Options { weight: Some(weight), ..Options::default() };
        let selection = Selection { format: find("folded").unwrap(), options };
        String::from_utf8(kept.write(&selection, since_ns)).unwrap()
    }

    #[test]
    fn what_is_written_sums_to_what_was_sampled_as_often_as_it_is_written() {
        let samples = [(1, "a", 3, 7), (2, "b", 1, 5), (SECOND, "a", 2, 10), (SECOND + 1, "a", 1, 1)];
        let kept = kept(10, &samples);
        for _ in 0..2 {
            assert_eq!(folded(&kept, 0, crate::Weight::Samples), "one;a 6\none;b 1\n");
            assert_eq!(folded(&kept, 0, crate::Weight::Nanoseconds), "one;a 42\none;b 5\n");
        }
        assert_eq!(kept.entries().map(|entry| entry.samples).sum::<u64>(), 7);
    }

    #[test]
    fn the_latest_slices_stay_and_the_latest_of_them_can_be_asked_for() {
        let samples: Vec<_> = (0..10).map(|n| (n * SECOND, ["a", "b"][n as usize % 2], 1, 1)).collect();
        let kept = kept(4, &samples);
        assert_eq!(folded(&kept, 0, crate::Weight::Samples), "one;a 2\none;b 2\n");
        assert_eq!(folded(&kept, 8 * SECOND, crate::Weight::Samples), "one;a 1\none;b 1\n");
        assert_eq!(folded(&kept, 9 * SECOND, crate::Weight::Samples), "one;b 1\n");
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
