//! Which thread has which state: CPython's list of them. The threads change it while it is read
//! here; whoever uses an entry checks that it is the thread's.

use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};
use swipr_runtimes::python::{Layout, ThreadKey};
use swipr_unwind::memory::guarded_copy_or_file;

/// How often the list is read, at most, when a thread is not in it.
const READ_AGAIN: Duration = Duration::from_millis(20);
/// Longer lists are damaged ones.
const MAX_STATES: usize = 8192;
const MAX_INTERPRETERS: usize = 256;
/// Larger structures than CPython's.
const MAX_STATE_BYTES: usize = 2048;

/// An entry of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateEntry {
    state: u64,
    ident: u64,
    native: u64,
}

/// The list as it was read last.
#[derive(Debug, Default)]
pub struct ThreadStates {
    entries: Vec<StateEntry>,
    read_at: Option<Instant>,
    /// Threads that were not in it then.
    missed: FxHashSet<u32>,
}

impl ThreadStates {
    /// The thread's state; 0: it has several. It runs in subinterpreters, and which of them is at
    /// work now cannot be told. `None`: there is none, or it is not known yet.
    pub fn find(&mut self, thread: ThreadKey, layout: &Layout, memory_file: i32) -> Option<u64> {
        let known = self.look_up(thread);
        let is_old = self.read_at.is_none_or(|at| at.elapsed() >= READ_AGAIN);
        if known.is_some() || !is_old && self.missed.contains(&thread.tid) {
            return known;
        }
        self.read(layout, memory_file);
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
        let mut found = self.entries.iter().filter(is_of);
        let first = found.next()?;
        Some(if found.next().is_some() { 0 } else { first.state })
    }

    /// An entry turned out not to be the thread's any more.
    pub fn forget(&mut self, state: u64) {
        self.missed.clear();
        self.entries.retain(|entry| entry.state != state);
    }

    fn read(&mut self, layout: &Layout, memory_file: i32) {
        self.read_at = Some(Instant::now());
        self.missed.clear();
        self.entries.clear();
        let row = &layout.row;
        let word = |address: u64| {
            let mut bytes = [0; 8];
            let read = guarded_copy_or_file(address, &mut bytes, memory_file);
            (read == bytes.len()).then(|| u64::from_ne_bytes(bytes)).filter(|_| address >= 4096)
        };
        let mut interpreter = word(layout.runtime.wrapping_add(row.interpreters)).unwrap_or(0);
        for _ in 0..MAX_INTERPRETERS {
            let mut state = word(interpreter.wrapping_add(row.interpreter_threads)).unwrap_or(0);
            while let Some((entry, next)) = self.entry(state, layout, memory_file) {
                self.entries.push(entry);
                state = next;
            }
            match word(interpreter.wrapping_add(row.interpreter_next)) {
                Some(next) if next != 0 => interpreter = next,
                _ => return,
            }
        }
    }

    /// The entry at `state`, and where the next one is.
    fn entry(&self, state: u64, layout: &Layout, memory_file: i32) -> Option<(StateEntry, u64)> {
        let row = &layout.row;
        let mut bytes = [0; MAX_STATE_BYTES];
        let end = row.thread_native.unwrap_or(0).max(row.thread_ident).max(row.thread_next) + 8;
        let bytes = bytes.get_mut(..end as usize).filter(|_| state != 0)?;
        let is_new =
            self.entries.len() < MAX_STATES && !self.entries.iter().any(|known| known.state == state);
        if !is_new || guarded_copy_or_file(state, bytes, memory_file) != bytes.len() {
            return None;
        }
        let word = |at: u64| Some(u64::from_ne_bytes(*bytes.get(at as usize..)?.first_chunk()?));
        let ident = word(row.thread_ident)?;
        let native = match (row.thread_native, layout.tid_in_block) {
            (Some(at), _) => word(at)?,
            (None, Some(at)) => {
                let mut tid = [0; 4];
                let read = guarded_copy_or_file(ident.wrapping_add(at), &mut tid, memory_file);
                if read == tid.len() { u32::from_ne_bytes(tid).into() } else { 0 }
            }
            (None, None) => 0,
        };
        Some((StateEntry { state, ident, native }, word(row.thread_next)?))
    }
}
