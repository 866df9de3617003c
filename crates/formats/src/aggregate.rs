//! Sums of samples by thread, state and stack, for the formats that write at the
//! end. Not here: how a sum is written.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Options;
use crate::intern::{Interner, ThreadNumbers};
use crate::model::{Frame, Sample, Stack, State, Thread};
use crate::order::sorted;
use crate::raw_tree::RawTree;
use crate::tree::ROOT;

/// How often, and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) samples: u64,
    pub(crate) ns: u64,
}

impl Sum {
    /// Counts a sample's ticks.
    pub(crate) fn add(&mut self, sample: &Sample<'_>) {
        let ticks = u64::from(sample.ticks);
        self.samples = self.samples.saturating_add(ticks);
        self.ns = self.ns.saturating_add(sample.weight_ns.saturating_mul(ticks));
    }
}

/// Samples that are alike, and their sum.
pub(crate) struct Total {
    /// `None` when threads are merged.
    pub(crate) thread: Option<Arc<Thread>>,
    pub(crate) state: State,
    /// Over-deep stacks are cut already.
    pub(crate) stack: Stack,
    pub(crate) sum: Sum,
}

/// By the thread's number, the state, and the number of the stack or node.
pub(crate) type Sums = FxHashMap<SumKey, Sum>;
type SumKey = (usize, State, usize);
/// In place of a thread's number where threads are merged.
const MERGED: usize = usize::MAX;

/// Adds samples up.
pub(crate) struct Totals {
    options: Options,
    threads: ThreadNumbers,
    stacks: RawTree,
    /// Nodes where stacks end, numbered in order of appearance.
    leaves: Interner<u32>,
    sums: Sums,
}

impl Totals {
    pub(crate) fn new(options: &Options) -> Self {
        Totals {
            options: options.clone(),
            threads: ThreadNumbers::new(),
            stacks: RawTree::new(),
            leaves: Interner::new(),
            sums: Sums::default(),
        }
    }

    pub(crate) fn add(&mut self, sample: &Sample<'_>) {
        let thread = if self.options.merge_threads { MERGED } else { self.threads.intern(sample.thread).id };
        let stack = self.leaves.intern(self.stacks.node(sample.stack, &self.options)).id;
        self.sums.entry((thread, sample.state, stack)).or_default().add(sample);
    }

    /// Adds no more.
    pub(crate) fn finish(self) -> Finished {
        let sums: Vec<(SumKey, Sum)> = self.sums.into_iter().collect();
        let sums = sorted(&sums, &|a, b| a.0.cmp(&b.0));
        let leaves = self.leaves.into_values();
        Finished { threads: self.threads.into_values(), stacks: self.stacks, leaves, sums }
    }
}

/// The sums. Stacks are put together one at a time: all of them at once would take many times the
/// memory.
pub(crate) struct Finished {
    threads: Vec<Arc<Thread>>,
    stacks: RawTree,
    leaves: Vec<u32>,
    sums: Vec<(SumKey, Sum)>,
}

impl Finished {
    pub(crate) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    /// Ordered by first appearance of thread, then state, then stack.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Total> {
        self.sums.iter().map(|&((thread, state, stack), sum)| Total {
            thread: self.threads.get(thread).cloned(),
            state,
            stack: self.stacks.stack(self.leaves.get(stack).copied().unwrap_or(ROOT)),
            sum,
        })
    }

    /// Every frame of every stack.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.stacks.tree.frames().iter().map(|known| &known.0)
    }
}
