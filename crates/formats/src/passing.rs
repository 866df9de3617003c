//! Numbers for threads, without keeping those of ended threads: a recording of days meets any
//! number of them.
//!
//! Idea: two tables by turns. A thread that is seen is in the younger one. When that is [`TURN_NS`]
//! old, it becomes the older one, whose threads are forgotten. A thread that comes back after that
//! gets a new number.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::intern::Interned;
use crate::model::Thread;

/// A thread is remembered for so long after its last sample, and at most twice as long.
const TURN_NS: u64 = 60_000_000_000;

type Table = FxHashMap<Arc<Thread>, usize>;

pub(crate) struct AgingIds {
    younger: Table,
    older: Table,
    turn_ns: u64,
    next: usize,
}

impl AgingIds {
    pub(crate) fn new() -> Self {
        AgingIds { younger: Table::default(), older: Table::default(), turn_ns: 0, next: 0 }
    }

    /// The number of a thread that is seen at `time_ns`.
    pub(crate) fn intern(&mut self, thread: &Arc<Thread>, time_ns: u64) -> Interned {
        if time_ns.saturating_sub(self.turn_ns) >= TURN_NS {
            self.older = std::mem::take(&mut self.younger);
            self.turn_ns = time_ns;
        }
        if let Some(&id) = self.younger.get(thread) {
            return Interned { id, new: false };
        }
        let known = self.older.get(thread).copied();
        let id = known.unwrap_or(self.next);
        self.next += usize::from(known.is_none());
        self.younger.insert(Arc::clone(thread), id);
        Interned { id, new: known.is_none() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32) -> Arc<Thread> {
        Arc::new(Thread { tid, name: "worker".into() })
    }

    #[test]
    fn a_thread_has_one_number_for_as_long_as_it_is_seen() {
        let mut threads = AgingIds::new();
        let ids = (0..1000).map(|second| threads.intern(&thread(7), second * 1_000_000_000));
        let met: Vec<(usize, bool)> = ids.map(|found| (found.id, found.new)).collect();
        assert_eq!(met[0], (0, true));
        assert!(met[1..].iter().all(|&found| found == (0, false)));
    }

    #[test]
    fn threads_that_have_ended_are_forgotten_and_no_number_is_given_twice() {
        let mut threads = AgingIds::new();
        let mut ids = vec![];
        for second in 0..10_000u32 {
            let found = threads.intern(&thread(second), u64::from(second) * 1_000_000_000);
            assert!(found.new);
            ids.push(found.id);
            assert!(threads.younger.len() + threads.older.len() <= 2 * 60);
        }
        assert_eq!(ids, (0..10_000).collect::<Vec<_>>());
        assert!(threads.intern(&thread(3), 10_000 * 1_000_000_000).new, "back after hours");
    }
}
