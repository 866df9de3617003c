//! Ruby's list: of each ractor its threads; before 3.0 of the virtual machine. Lists are rings.

use super::{MAX_STATES, StateEntry, StateList, word};
use swipr_runtimes::ruby::RubyLayout;

impl StateList for RubyLayout {
    fn states(&self, memory_file: i32) -> Vec<StateEntry> {
        let row = self.row;
        let Some(machine) = word(self.machine, memory_file) else { return vec![] };
        let owners = match row.machine_ractors {
            0 => vec![machine],
            at => ring(machine.wrapping_add(at.into()), row.ractor_node, memory_file),
        };
        let threads = owners.into_iter().flat_map(|owner| {
            ring(owner.wrapping_add(row.ractor_threads.into()), row.thread_node, memory_file)
        });
        let entry = |state: u64| {
            let (ident, tid) = self.native_of(state, |at| word(at, memory_file))?;
            Some(StateEntry { state, ident, native: tid.into() })
        };
        threads.take(MAX_STATES).filter_map(entry).collect()
    }
}

/// The structures in the ring at `head`, which have their link at `node`.
fn ring(head: u64, node: u16, memory_file: i32) -> Vec<u64> {
    let links = std::iter::successors(word(head, memory_file), |link| word(*link, memory_file));
    let links = links.take_while(|link| *link != head).take(MAX_STATES);
    links.map(|link| link.wrapping_sub(node.into())).collect()
}
