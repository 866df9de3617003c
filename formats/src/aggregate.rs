//! Sums of samples by thread, state and stack, for the formats that write at the
//! end. Not here: how a sum is written.

use std::collections::HashMap;
use std::sync::Arc;

use crate::intern::{Stacks, Threads};
use crate::model::{Sample, Stack, State, Thread};

/// How often, and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) samples: u64,
    pub(crate) ns: u64,
}

/// Samples that are alike, and their sum.
pub(crate) struct Total {
    /// `None` when threads are not told apart.
    pub(crate) thread: Option<Arc<Thread>>,
    pub(crate) state: State,
    pub(crate) stack: Arc<Stack>,
    pub(crate) sum: Sum,
}

/// Adds samples up.
pub(crate) struct Totals {
    merge_threads: bool,
    threads: Threads,
    stacks: Stacks,
    sums: HashMap<(Option<usize>, State, usize), Sum>,
}

impl Totals {
    pub(crate) fn new(merge_threads: bool) -> Self {
        Totals { merge_threads, threads: Threads::new(), stacks: Stacks::new(), sums: HashMap::new() }
    }

    pub(crate) fn add(&mut self, sample: &Sample<'_>) {
        let thread = (!self.merge_threads).then(|| self.threads.intern(Arc::clone(sample.thread)).id);
        let stack = self.stacks.intern(sample.stack).id;
        let sum = self.sums.entry((thread, sample.state, stack)).or_default();
        let ticks = u64::from(sample.ticks);
        sum.samples = sum.samples.saturating_add(ticks);
        sum.ns = sum.ns.saturating_add(sample.weight_ns.saturating_mul(ticks));
    }

    /// The sums, ordered by first appearance of thread, then state, then stack.
    pub(crate) fn finish(self) -> Vec<Total> {
        let threads = self.threads.into_values();
        let stacks = self.stacks.into_values();
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_unstable_by_key(|&(key, _)| key);
        sums.into_iter()
            .filter_map(|((thread, state, stack), sum)| {
                Some(Total {
                    thread: thread.and_then(|id| threads.get(id).cloned()),
                    state,
                    stack: Arc::clone(stacks.get(stack)?),
                    sum,
                })
            })
            .collect()
    }
}
