//! All processes, and whose children they are. Those that have only just started are not read, see
//! `descendants.rs`.

use crate::process::Process;
use rustc_hash::{FxHashMap, FxHashSet};

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct ProcessList {
    listed: FxHashSet<u32>,
    parents: FxHashMap<u32, u32>,
    was_scanned: bool,
}

impl ProcessList {
    /// Those that are there.
    pub fn now() -> ProcessList {
        let mut list = ProcessList::default();
        list.refresh();
        list
    }

    /// Takes those in that were there at the last scan, and are still; at the first, all.
    pub fn refresh(&mut self) {
        let listed: FxHashSet<u32> = Process::all().into_iter().map(|process| process.pid).collect();
        self.parents.retain(|pid, _| listed.contains(pid));
        let new = listed.iter().filter(|pid| !self.was_scanned || self.listed.contains(pid));
        let new: Vec<u32> = new.filter(|pid| !self.parents.contains_key(pid)).copied().collect();
        for process in new.into_iter().filter_map(Process::new) {
            self.parents.extend(process.parent().map(|parent| (process.pid, parent)));
        }
        (self.listed, self.was_scanned) = (listed, true);
    }

    /// Whether it is still there.
    pub fn has(&self, pid: u32) -> bool {
        self.listed.contains(&pid)
    }

    /// Its children, and theirs.
    pub fn descendants_of(&self, root: u32) -> Vec<u32> {
        let mut found = vec![root];
        let mut at = 0;
        while let Some(pid) = found.get(at).copied() {
            found.extend(self.parents.iter().filter(|(_, parent)| **parent == pid).map(|(child, _)| *child));
            at += 1;
        }
        found.split_off(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_of_children_are_descendants_and_what_has_just_begun_is_not_read() {
        let mut list = ProcessList::now();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let pid = child.id();
        let is_ours = |list: &ProcessList| list.descendants_of(std::process::id()).contains(&pid);
        list.refresh();
        assert!(list.has(pid) && !is_ours(&list));
        list.refresh();
        assert!(is_ours(&list));
        child.kill().expect("ours");
        child.wait().expect("its end");
        list.refresh();
        assert!(!list.has(pid) && !is_ours(&list));
    }
}
