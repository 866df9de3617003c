//! pc -> rule, in front of the tables: direct-mapped, shared by all threads.
//!
//! An entry is one atomic word of 33 bits of tag and 31 bits of rule. A reader always sees a whole
//! entry, so relaxed loads and stores are enough. The thread that changes the published tables
//! clears the cache afterwards.

mod entry;
mod saved;

use crate::arch::{Arch, Native};
use crate::atomic::{AtomicU64, Ordering::*};
use crate::register_rules::Saved;
use crate::rule::Rule;
use entry::Entry;

const BITS: u32 = 14;
const ENTRIES: usize = 1 << BITS;
const RULE_BITS: u32 = 31;

/// The cache; 128 KiB, and what was read of frame descriptions.
#[derive(Debug)]
pub struct Cache {
    entries: [Entry; ENTRIES],
    saved: saved::SavedCache,
    epoch: AtomicU64,
}

/// A pc's place, and its tag. A tag wider than 33 bits cannot be a code address; it never compares
/// equal to a stored tag.
#[inline(always)]
fn place(pc: u64) -> (usize, u64) {
    let pc = pc >> Native::PC_SHIFT;
    (pc as usize & (ENTRIES - 1), pc >> BITS)
}

impl Cache {
    /// An empty cache.
    #[allow(clippy::new_without_default)] // a default would be a 128 KiB temporary
    pub const fn new() -> Cache {
        Cache {
            entries: [const { Entry(AtomicU64::new(0)) }; ENTRIES],
            saved: saved::SavedCache::new(),
            epoch: AtomicU64::new(0),
        }
    }

    /// The rule remembered for `pc`.
    #[inline(always)]
    pub fn get(&self, pc: u64) -> Option<Rule> {
        let (at, tag) = place(pc);
        let entry = self.entries.get(at)?.get();
        if entry >> RULE_BITS == tag && entry != 0 { Some(Rule::from_bits(entry as u32)) } else { None }
    }

    /// Remembers `rule` for `pc`.
    #[inline(always)]
    pub fn put(&self, pc: u64, rule: Rule) {
        let (at, tag) = place(pc);
        if let Some(entry) = self.entries.get(at) {
            entry.put(tag << RULE_BITS | u64::from(rule.bits()));
        }
    }

    /// Where the function at `pc` saves `register`, if that is remembered.
    pub(crate) fn saved(&self, pc: u64, register: u8) -> Option<Saved> {
        self.saved.get(pc, register)
    }

    /// Remembers where the function at `pc` saves `register`.
    pub(crate) fn put_saved(&self, pc: u64, register: u8, saved: Saved) {
        self.saved.put(pc, register, saved);
    }

    /// A number that changes with each [`Cache::clear`]. Rules that were copied under another
    /// number are out of date.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Acquire)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for entry in &self.entries {
            entry.clear();
        }
        self.saved.clear();
        // A thread that reads the new number finds no older entries.
        self.epoch.fetch_add(1, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_only_for_the_very_pc() {
        static CACHE: Cache = Cache::new();
        let rule = Rule::sp(64, -16).unwrap();
        let pc = 0x7f12_3456_7890;
        assert_eq!(CACHE.get(pc), None);
        CACHE.put(pc, rule);
        assert_eq!(CACHE.get(pc), Some(rule));
        // Same place, other tag.
        let same_place = 1 << (BITS + Native::PC_SHIFT);
        assert_eq!(CACHE.get(pc + same_place), None);
        assert_eq!(CACHE.get(pc ^ 1 << 46), None);
        // Regression: a stack word that is a code address but for higher bits got that code's rule.
        for bit in 47 + Native::PC_SHIFT..64 {
            assert_eq!(CACHE.get(pc | 1 << bit), None, "bit {bit}");
        }
        CACHE.clear();
        assert_eq!(CACHE.get(pc), None);
    }
}
