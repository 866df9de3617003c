//! Which thread has which state: the interpreter's list of them. The threads change it while it is
//! read here; whoever uses an entry checks that it is the thread's.

mod php;
mod python;
mod ruby;

use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};
use swipr_runtimes::python::ThreadKey;
use swipr_unwind::memory::guarded_copy_or_file;

/// How often the list is read, at most, when a thread is not in it.
const READ_AGAIN: Duration = Duration::from_millis(20);
/// Longer lists are damaged ones.
const MAX_STATES: usize = 8192;

/// An entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateEntry {
    pub state: u64,
    pub ident: u64,
    native: u64,
}

/// An interpreter that has such a list.
pub trait StateList {
    /// Reads it.
    fn states(&self, memory_file: i32) -> Vec<StateEntry>;

    /// Added to a thread's state if it has several, which the walk finds then.
    const SEVERAL: u64 = 0;

    /// Whether any thread may have several.
    fn has_several(&self, _memory_file: i32) -> bool {
        false
    }
}

/// The list as it was read last.
#[derive(Debug, Default)]
pub struct ThreadStates {
    entries: Vec<StateEntry>,
    read_at: Option<Instant>,
    /// Whether any thread may have several states, and when that was read.
    has_several: bool,
    several_at: Option<Instant>,
    /// Threads that were not in it then.
    missed: FxHashSet<u32>,
}

impl ThreadStates {
    /// A state of the thread, with [`StateList::SEVERAL`] if there may be more. `None`: there is
    /// none, or it is not known yet.
    pub fn find<L: StateList>(&mut self, thread: ThreadKey, list: &L, memory_file: i32) -> Option<u64> {
        if is_old(self.several_at) {
            self.has_several = list.has_several(memory_file);
            self.several_at = Some(Instant::now());
        }
        let found = self.find_one(thread, list, memory_file);
        if self.has_several { Some(found.unwrap_or(0) | L::SEVERAL) } else { found }
    }

    fn find_one<L: StateList>(&mut self, thread: ThreadKey, list: &L, memory_file: i32) -> Option<u64> {
        let known = self.look_up::<L>(thread);
        let is_old = is_old(self.read_at);
        if known.is_some() || !is_old && self.missed.contains(&thread.tid) {
            return known;
        }
        self.read_at = Some(Instant::now());
        self.missed.clear();
        self.entries = list.states(memory_file);
        let found = self.look_up::<L>(thread);
        if found.is_none() {
            self.missed.insert(thread.tid);
        }
        found
    }

    fn look_up<L: StateList>(&self, thread: ThreadKey) -> Option<u64> {
        let is_of = |entry: &&StateEntry| {
            thread.pointer != 0 && entry.ident == thread.pointer
                || entry.native != 0 && entry.native == u64::from(thread.tid)
        };
        let mut found = self.entries.iter().filter(is_of).map(|entry| entry.state);
        let newest = found.next()?;
        // The walk looks at the newest by itself.
        let oldest = found.next_back().filter(|_| L::SEVERAL != 0);
        Some(oldest.map_or(newest, |oldest| oldest | L::SEVERAL))
    }

    /// An entry turned out not to be the thread's any more.
    pub fn forget(&mut self, state: u64) {
        self.missed.clear();
        self.entries.retain(|entry| entry.state != state);
    }
}

fn is_old(at: Option<Instant>) -> bool {
    at.is_none_or(|at| at.elapsed() >= READ_AGAIN)
}

/// The word at `address`.
fn word(address: u64, memory_file: i32) -> Option<u64> {
    let mut bytes = [0; 8];
    let read = guarded_copy_or_file(address, &mut bytes, memory_file);
    (read == bytes.len()).then(|| u64::from_ne_bytes(bytes)).filter(|_| address >= 4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States of threads, the newest first, in one interpreter or several.
    struct List(Vec<(u64, u64)>, bool);

    impl StateList for List {
        const SEVERAL: u64 = 1;

        fn states(&self, _memory_file: i32) -> Vec<StateEntry> {
            self.0.iter().map(|&(state, ident)| StateEntry { state, ident, native: 0 }).collect()
        }

        fn has_several(&self, _memory_file: i32) -> bool {
            self.1
        }
    }

    fn found(states: &[(u64, u64)], has_several: bool) -> Option<u64> {
        let thread = ThreadKey { tid: 7, pointer: 70, pc: 0 };
        ThreadStates::default().find(thread, &List(states.to_vec(), has_several), -1)
    }

    /// Regression: the first thread of a uWSGI with threads has two states, of which only one is
    /// ever used: it had no function.
    #[test]
    fn of_a_thread_that_has_several_states_the_walk_finds_those_in_use() {
        assert_eq!(found(&[(8, 60), (16, 70)], false), Some(16));
        assert_eq!(found(&[(8, 70), (16, 60), (24, 70)], false), Some(24 | 1));
        assert_eq!(found(&[(8, 60)], false), None);
        assert_eq!(found(&[(8, 60), (16, 70)], true), Some(16 | 1), "it may have others there");
        assert_eq!(found(&[(8, 60)], true), Some(1));
    }
}
