//! Which thread has which state: the interpreter's list of them. The threads change it while it is
//! read here; whoever uses an entry checks that it is the thread's.

mod php;
mod python;
mod ruby;

use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};
use swipr_runtimes::python::{SEVERAL, ThreadKey};
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

    /// Whether a thread may have several states, which the walk finds then.
    fn has_several(&self, _memory_file: i32) -> bool {
        false
    }
}

/// The list as it was read last.
#[derive(Debug, Default)]
pub struct ThreadStates {
    entries: Vec<StateEntry>,
    read_at: Option<Instant>,
    /// [`SEVERAL`], or 0, and when that was read.
    several: u64,
    several_at: Option<Instant>,
    /// Threads that were not in it then.
    missed: FxHashSet<u32>,
}

impl ThreadStates {
    /// A state of the thread, and [`SEVERAL`]. `None`: there is none, or it is not known yet.
    pub fn find(&mut self, thread: ThreadKey, list: &impl StateList, memory_file: i32) -> Option<u64> {
        if is_old(self.several_at) {
            self.several = if list.has_several(memory_file) { SEVERAL } else { 0 };
            self.several_at = Some(Instant::now());
        }
        let found = self.find_one(thread, list, memory_file);
        if self.several == 0 { found } else { Some(found.unwrap_or(0) | self.several) }
    }

    fn find_one(&mut self, thread: ThreadKey, list: &impl StateList, memory_file: i32) -> Option<u64> {
        let known = self.look_up(thread);
        let is_old = is_old(self.read_at);
        if known.is_some() || !is_old && self.missed.contains(&thread.tid) {
            return known;
        }
        self.read_at = Some(Instant::now());
        self.missed.clear();
        self.entries = list.states(memory_file);
        let found = self.look_up(thread);
        if found.is_none() {
            self.missed.insert(thread.tid);
        }
        found
    }

    fn look_up(&self, thread: ThreadKey) -> Option<u64> {
        let is_of = |entry: &&StateEntry| {
            thread.pointer != 0 && entry.ident == thread.pointer
                || entry.native != 0 && entry.native == u64::from(thread.tid)
        };
        self.entries.iter().find(is_of).map(|entry| entry.state)
    }

    /// An entry turned out not to be the thread's any more.
    pub fn forget(&mut self, state: u64) {
        self.missed.clear();
        self.entries.retain(|entry| entry.state != state & !SEVERAL);
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
