//! Which thread has which state: the interpreter's list of them. The threads change it while it is
//! read here; the users of an entry check that it is the thread's.

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
}

/// The list as it was read last.
#[derive(Debug, Default)]
pub struct ThreadStates {
    entries: Vec<StateEntry>,
    read_at: Option<Instant>,
    /// Threads that were not in it then.
    missed: FxHashSet<u64>,
}

impl ThreadStates {
    /// The thread's state. `None`: there is none, or it is not known yet.
    pub fn find(&mut self, thread: ThreadKey, list: &impl StateList, memory_file: i32) -> Option<u64> {
        let known = self.look_up(thread);
        let is_old = self.read_at.is_none_or(|at| at.elapsed() >= READ_AGAIN);
        if known.is_some() || !is_old && self.missed.contains(&thread.tid.into()) {
            return known;
        }
        self.read_at = Some(Instant::now());
        self.missed.clear();
        self.entries = list.states(memory_file);
        let found = self.look_up(thread);
        if found.is_none() {
            self.missed.insert(thread.tid.into());
        }
        found
    }

    fn look_up(&self, thread: ThreadKey) -> Option<u64> {
        let is_of = |entry: &&StateEntry| {
            thread.pointer != 0 && entry.ident == thread.pointer
                || entry.native != 0 && entry.native == u64::from(thread.tid)
        };
        // Of several the oldest one: the walk looks at the newest by itself.
        self.entries.iter().rfind(is_of).map(|entry| entry.state)
    }

    /// An entry turned out not to be the thread's any more.
    pub fn forget(&mut self, state: u64) {
        self.missed.clear();
        self.entries.retain(|entry| entry.state != state);
    }
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

    struct List;

    impl StateList for List {
        fn states(&self, _memory_file: i32) -> Vec<StateEntry> {
            [(8, 70), (16, 60), (24, 70)].map(|(state, ident)| StateEntry { state, ident, native: 0 }).into()
        }
    }

    /// The first thread of a uWSGI with threads has two states, of which one is never used.
    #[test]
    fn of_several_states_of_a_thread_the_oldest_is_known() {
        let find = |pointer| ThreadStates::default().find(ThreadKey { tid: 7, pointer, pc: 0 }, &List, -1);
        assert_eq!([70, 60, 50].map(find), [Some(24), Some(16), None]);
    }
}
