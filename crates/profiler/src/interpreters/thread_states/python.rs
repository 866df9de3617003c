//! CPython's list: of each interpreter the states of its threads.

use super::{MAX_STATES, StateEntry, StateList, word};
use swipr_runtimes::python::Layout;
use swipr_unwind::memory::guarded_copy_or_file;

/// Longer lists are damaged ones.
const MAX_INTERPRETERS: usize = 256;
/// Larger structures than CPython's.
const MAX_STATE_BYTES: usize = 2048;

impl StateList for Layout {
    fn states(&self, memory_file: i32) -> Vec<StateEntry> {
        let row = &self.row;
        let mut entries = vec![];
        let mut interpreter = word(self.runtime.wrapping_add(row.interpreters), memory_file).unwrap_or(0);
        for _ in 0..MAX_INTERPRETERS {
            let threads = word(interpreter.wrapping_add(row.interpreter_threads), memory_file);
            let mut state = threads.unwrap_or(0);
            while let Some((entry, next)) = new_entry(&entries, state, self, memory_file) {
                entries.push(entry);
                state = next;
            }
            match word(interpreter.wrapping_add(row.interpreter_next), memory_file) {
                Some(next) if next != 0 => interpreter = next,
                _ => break,
            }
        }
        entries
    }
}

/// The entry at `state`, and where the next one is.
fn new_entry(
    known: &[StateEntry],
    state: u64,
    layout: &Layout,
    memory_file: i32,
) -> Option<(StateEntry, u64)> {
    let row = &layout.row;
    let mut bytes = [0; MAX_STATE_BYTES];
    let end = row.thread_native.unwrap_or(0).max(row.thread_ident).max(row.thread_next) + 8;
    let bytes = bytes.get_mut(..end as usize).filter(|_| state != 0)?;
    let is_new = known.len() < MAX_STATES && !known.iter().any(|known| known.state == state);
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
