//! Samples in the order of time, in bounded memory. Where there are too many, those of a thread
//! with the same stack and in the same bucket of time are merged. The buckets grow until there are
//! few enough. Sums stay the same.
//!
//! An hour of 500 threads at 100 Hz is 180 million samples. What is kept of them shows which thread
//! was where when, to half a second or so. Not here: stacks (a number each), and how it is written.

use crate::aggregate::Sum;
use crate::intern::ThreadNumbers;
use crate::model::{Header, Sample, State, Thread};
use crate::order::sorted;
use std::sync::Arc;

/// More spans are not kept. They take 12 MB.
const MAX_SPANS: usize = 250_000;
/// Moments are at least so long before anything is put together.
const LEAST_MOMENT_NS: u64 = 1_000_000;

/// Samples in a row, or within a moment, of one thread with one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Nanoseconds since the epoch; of the first tick.
    pub(crate) time_ns: u64,
    /// Number of the thread.
    pub(crate) thread: u32,
    /// Number of the stack.
    pub(crate) stack: u32,
    pub(crate) state: State,
    pub(crate) sum: Sum,
}

/// See the module's text.
pub(crate) struct Timeline {
    threads: ThreadNumbers,
    spans: Vec<Span>,
    moment_ns: u64,
    start_ns: u64,
    most: usize,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self::with_at_most(MAX_SPANS)
    }

    fn with_at_most(most: usize) -> Self {
        Timeline {
            threads: ThreadNumbers::new(),
            spans: Vec::new(),
            moment_ns: LEAST_MOMENT_NS,
            start_ns: 0,
            most,
        }
    }

    pub(crate) fn begin(&mut self, header: &Header) {
        self.start_ns = header.start_ns;
    }

    pub(crate) fn add(&mut self, sample: &Sample<'_>, stack: u32) {
        let thread = u32::try_from(self.threads.intern(sample.thread).id).unwrap_or(u32::MAX);
        let mut sum = Sum::default();
        sum.add(sample);
        let time_ns = sample.times_ns().next().unwrap_or(sample.time_ns);
        self.spans.push(Span { time_ns, thread, stack, state: sample.state, sum });
        if self.spans.len() > self.most {
            self.downsample(self.most / 2);
            // If more spans than that differ, their number is the bound.
            self.most = self.most.max(2 * self.spans.len());
        }
    }

    /// Puts spans together until there are at most so many, or none of a thread's have the same
    /// stack and state.
    pub(crate) fn downsample(&mut self, most: usize) {
        let last_ns = self.spans.iter().map(|span| span.time_ns).max().unwrap_or(0);
        let whole_ns = last_ns.saturating_sub(self.start_ns);
        while self.spans.len() > most {
            self.moment_ns = self.moment_ns.saturating_mul(2);
            self.merge_pairs();
            if self.moment_ns > whole_ns.saturating_mul(2) {
                break;
            }
        }
    }

    fn merge_pairs(&mut self) {
        let (start_ns, moment_ns) = (self.start_ns, self.moment_ns);
        let moment = |span: &Span| span.time_ns.saturating_sub(start_ns) / moment_ns;
        let alike = |span: &Span| (span.thread, moment(span), span.stack, span.state);
        let key = |span: &Span| (alike(span), span.time_ns);
        self.spans = sorted(&self.spans, &|a, b| key(a).cmp(&key(b)));
        self.spans.dedup_by(|next, kept| {
            let same = alike(next) == alike(kept);
            if same {
                kept.sum.samples = kept.sum.samples.saturating_add(next.sum.samples);
                kept.sum.ns = kept.sum.ns.saturating_add(next.sum.ns);
            }
            same
        });
        self.in_order_of_time();
    }

    fn in_order_of_time(&mut self) {
        self.spans = sorted(&self.spans, &|a, b| a.time_ns.cmp(&b.time_ns));
    }

    /// Threads in order of their numbers, and spans in order of time.
    pub(crate) fn finish(mut self, most: usize) -> (Vec<Arc<Thread>>, Vec<Span>) {
        self.downsample(most);
        self.in_order_of_time();
        (self.threads.into_values(), self.spans)
    }
}

/// The spans of each thread, still in order of time.
pub(crate) fn by_thread(spans: &[Span]) -> Vec<Span> {
    sorted(spans, &|a, b| a.thread.cmp(&b.thread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Stack;

    fn spans(most: usize, samples: u64, stacks: u32) -> Vec<Span> {
        let thread = Arc::new(Thread { tid: 1, name: "t".into() });
        let stack = Arc::new(Stack { frames: vec![] });
        let mut timeline = Timeline::with_at_most(most);
        for number in 0..samples {
            let sample = Sample {
                time_ns: number * 10_000_000,
                ticks: 2,
                thread: &thread,
                state: State::Running,
                weight_ns: 5,
                stack: &stack,
            };
            timeline.add(&sample, number as u32 % stacks);
        }
        timeline.finish(most).1
    }

    #[test]
    fn few_samples_stay_as_they_are() {
        assert_eq!(spans(100, 100, 3).len(), 100);
    }

    #[test]
    fn many_samples_are_put_together_and_their_sums_stay() {
        let spans = spans(100, 10_000, 3);
        assert!(spans.len() <= 100 && spans.len() > 20, "{}", spans.len());
        assert_eq!(spans.iter().map(|span| span.sum.samples).sum::<u64>(), 20_000);
        assert_eq!(spans.iter().map(|span| span.sum.ns).sum::<u64>(), 100_000);
        assert!(spans.is_sorted_by_key(|span| span.time_ns));
        assert!(spans.last().is_some_and(|span| span.time_ns > 90_000_000_000), "time is still told");
    }

    #[test]
    fn stacks_that_all_differ_are_all_kept() {
        assert_eq!(spans(100, 1000, 1000).len(), 1000);
    }
}
