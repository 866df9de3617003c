//! Functions by address. They may lie within one another, as labels with sizes do in hand-written
//! assembly: each one knows the next that ends behind it, so that a look-up passes over any number
//! of them.

use super::names::Name;

/// Functions that are tried for an address: how deep they nest in practice.
const MAX_NESTED: usize = 16;

/// One function of a sorted list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) start: u64,
    size: u32,
    /// The nearest entry before this one that ends behind it, counted from 1. 0: there is none.
    outer: u32,
    pub(super) name: Name,
}

impl Entry {
    pub(super) fn new(start: u64, end: u64, name: Name) -> Entry {
        let size = u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX);
        Entry { start, size, outer: 0, name }
    }

    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.size))
    }
}

/// Tells each entry which one is around it. Their ends do not change any more.
pub(super) fn nest(entries: &mut [Entry]) {
    for at in 0..entries.len() {
        let Some(end) = entries.get(at).map(Entry::end) else { return };
        let outer = outwards(entries, at).find(|(_, before)| before.end() > end);
        let outer = outer.map_or(0, |(number, _)| number as u32);
        if let Some(entry) = entries.get_mut(at) {
            entry.outer = outer;
        }
    }
}

/// The innermost entry that covers an address.
pub(super) fn innermost(entries: &[Entry], address: u64) -> Option<&Entry> {
    let nearest = entries.partition_point(|entry| entry.start <= address);
    let mut tried = outwards(entries, nearest).take(MAX_NESTED).map(|(_, entry)| entry);
    tried.find(|entry| address < entry.end())
}

/// An entry, counted from 1, and those around it, with their numbers.
fn outwards(entries: &[Entry], number: usize) -> impl Iterator<Item = (usize, &Entry)> {
    let numbered = |number: usize| Some((number, entries.get(number.checked_sub(1)?)?));
    std::iter::successors(numbered(number), move |(_, entry)| numbered(entry.outer as usize))
}
