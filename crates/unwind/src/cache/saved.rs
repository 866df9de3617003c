//! (pc, register) -> where it is saved, in front of the frame descriptions. Built like the cache of
//! rules, and cleared with it.
//!
//! An entry is one word: 37 bits of tag and 5 of the register, two bits of how, 20 of an offset.
//! What does not fit (an expression, another register) is read again each time.

use super::entry::Entry;
use crate::arch::{Arch, Native};
use crate::atomic::AtomicU64;
use crate::register_rules::{RegisterRule, Saved};

const BITS: u32 = 11;
const ENTRIES: usize = 1 << BITS;
const TAG_BITS: u32 = 37;
const REGISTER_BITS: u32 = 5;
const HOW_BITS: u32 = 2;
const OFFSET_BITS: u32 = 64 - TAG_BITS - REGISTER_BITS - HOW_BITS;

/// The cache; 16 KiB.
#[derive(Debug)]
pub(super) struct SavedCache {
    entries: [Entry; ENTRIES],
}

/// The place, and what its entry begins with; `None`: such a pc or register is not cached. The
/// place is a sum of the pc's lowest bits and a multiple of the register: where place and register
/// are the same, the lowest bits are, too.
fn place(pc: u64, register: u8) -> Option<(usize, u64)> {
    let (pc, register) = (pc >> Native::PC_SHIFT, u64::from(register));
    let tag = pc >> BITS;
    let fits = tag != 0 && tag >> TAG_BITS == 0 && register >> REGISTER_BITS == 0;
    let at = (pc.wrapping_add(register * 331)) as usize & (ENTRIES - 1);
    fits.then_some((at, tag << REGISTER_BITS | register))
}

impl SavedCache {
    pub(super) const fn new() -> SavedCache {
        SavedCache { entries: [const { Entry(AtomicU64::new(0)) }; ENTRIES] }
    }

    pub(super) fn get(&self, pc: u64, register: u8) -> Option<Saved> {
        let (at, key) = place(pc, register)?;
        let entry = self.entries.get(at)?.get();
        if entry >> (HOW_BITS + OFFSET_BITS) != key {
            return None;
        }
        let how = match entry >> OFFSET_BITS & ((1 << HOW_BITS) - 1) {
            0 => RegisterRule::Same,
            1 => RegisterRule::Undefined,
            2 => RegisterRule::AtCfa,
            _ => RegisterRule::Cfa,
        };
        let unused = 64 - OFFSET_BITS;
        Some(Saved { how, length: 0, value: ((entry << unused) as i64 >> unused) as u64 })
    }

    pub(super) fn put(&self, pc: u64, register: u8, saved: Saved) {
        let how = match saved.how {
            RegisterRule::Same => 0,
            RegisterRule::Undefined => 1,
            RegisterRule::AtCfa => 2,
            RegisterRule::Cfa => 3,
            RegisterRule::Register | RegisterRule::At | RegisterRule::Value => return,
        };
        let unused = 64 - OFFSET_BITS;
        if (saved.value << unused) as i64 >> unused != saved.value as i64 {
            return;
        }
        if let Some((at, key)) = place(pc, register)
            && let Some(entry) = self.entries.get(at)
        {
            let offset = saved.value & ((1 << OFFSET_BITS) - 1);
            entry.put((key << HOW_BITS | how) << OFFSET_BITS | offset);
        }
    }

    pub(super) fn clear(&self) {
        for entry in &self.entries {
            entry.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_only_for_the_very_pc_and_register() {
        static CACHE: SavedCache = SavedCache::new();
        let pc = 0x7f12_3456_7890;
        let saved = |how, value: i64| Saved { how, length: 0, value: value as u64 };
        for (register, saved) in [
            saved(RegisterRule::AtCfa, -24),
            Saved::SAME,
            saved(RegisterRule::Undefined, 0),
            saved(RegisterRule::Cfa, 524_287),
        ]
        .into_iter()
        .enumerate()
        {
            let register = register as u8;
            CACHE.put(pc, register, saved);
            assert_eq!(CACHE.get(pc, register), Some(saved));
            assert_eq!(CACHE.get(pc, register + 1), None);
            // The same place, with another register and another tag.
            let other = pc - (331 << Native::PC_SHIFT);
            assert_eq!(CACHE.get(other, register + 1), None);
            assert_eq!(CACHE.get(pc + (1 << (BITS + Native::PC_SHIFT)), register), None);
        }
        CACHE.clear();
        assert_eq!(CACHE.get(pc, 0), None);
    }

    #[test]
    fn what_does_not_fit_is_not_remembered() {
        static CACHE: SavedCache = SavedCache::new();
        let pc = 0x7f12_3456_7890;
        for (how, value) in [
            (RegisterRule::AtCfa, 1 << 19),
            (RegisterRule::Register, 3),
            (RegisterRule::At, 8),
            (RegisterRule::Value, 8),
        ] {
            CACHE.put(pc, 3, Saved { how, length: 0, value });
            assert_eq!(CACHE.get(pc, 3), None, "{how:?}");
        }
        CACHE.put(u64::MAX - 8, 3, Saved::SAME);
        assert_eq!(CACHE.get(u64::MAX - 8, 3), None);
    }
}
