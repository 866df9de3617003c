//! Names for PLT stubs (x86-64): the linker gives them none. A stub ends in an
//! indirect jump through a slot of the GOT, and the relocation of that slot names
//! the function; the stubs of a `.plt` with separate `.plt.sec` push the number of
//! their relocation instead.

use crate::demangle::PLT;
use crate::elf::{ElfFile, Section, string_at};
use object::LittleEndian as LE;
use object::elf::{self, Rela64, Sym64};
use object::pod;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

const STUB_BYTES: u64 = 16;
/// `jmp *displacement(%rip)`, then four bytes of displacement.
const JUMP: [u8; 2] = [0xff, 0x25];
/// `push imm32`.
const PUSH: u8 = 0x68;

/// A stub and what it is called.
pub(super) struct Stub {
    pub(super) range: Range<u64>,
    /// Of the function that it calls.
    pub(super) target: Arc<str>,
}

impl Stub {
    pub(super) fn name(&self) -> String {
        format!("{}{PLT}", self.target)
    }
}

/// All stubs of an object that have a name.
pub(super) fn stubs(object: &ElfFile, limit: u64) -> Vec<Stub> {
    if !object.is_x86_64() {
        return Vec::new();
    }
    let slots = Slots::read(object, limit);
    let mut found = Vec::new();
    for name in [".plt", ".plt.sec", ".plt.got"] {
        if let Some(section) = object.section(name)
            && let Ok(code) = object.bytes(section, limit)
        {
            slots.name_stubs(section, &code, &mut found);
        }
    }
    found
}

/// Which function each GOT slot, and each numbered jump relocation, is for.
struct Slots {
    by_address: FxHashMap<u64, Arc<str>>,
    by_number: Vec<Option<Arc<str>>>,
}

impl Slots {
    fn read(object: &ElfFile, limit: u64) -> Slots {
        let mut slots = Slots { by_address: FxHashMap::default(), by_number: Vec::new() };
        // Only the stubs of `.plt.got` jump through slots that `.rela.dyn` fills.
        let others = object.section(".plt.got").map(|_| ".rela.dyn");
        for name in [".rela.plt"].into_iter().chain(others) {
            let names = object.section(name).and_then(|section| names_of(object, section, limit));
            for (slot, target) in names.unwrap_or_default() {
                if let Some(target) = &target {
                    slots.by_address.insert(slot, Arc::clone(target));
                }
                if name == ".rela.plt" {
                    slots.by_number.push(target);
                }
            }
        }
        slots
    }

    fn name_stubs(&self, section: &Section, code: &[u8], out: &mut Vec<Stub>) {
        let step = if section.entry_size == STUB_BYTES / 2 { STUB_BYTES / 2 } else { STUB_BYTES };
        for (number, stub) in (0..).zip(code.chunks_exact(step as usize)) {
            let start = section.address.wrapping_add(number * step);
            let target = jump_slot(start, stub).and_then(|slot| self.by_address.get(&slot));
            let target = target.or_else(|| self.by_number.get(pushed_number(stub)? as usize)?.as_ref());
            if let Some(target) = target {
                out.push(Stub { range: start..start.saturating_add(step), target: Arc::clone(target) });
            }
        }
    }
}

/// The address of the slot that a stub jumps through.
fn jump_slot(start: u64, stub: &[u8]) -> Option<u64> {
    let at = stub.windows(JUMP.len()).position(|bytes| bytes == JUMP)? + JUMP.len();
    let displacement = i32::from_le_bytes(stub.get(at..at + 4)?.try_into().ok()?);
    Some(start.wrapping_add(at as u64 + 4).wrapping_add_signed(i64::from(displacement)))
}

/// The relocation's number that a stub pushes: at its start, or behind `endbr64`.
fn pushed_number(stub: &[u8]) -> Option<u32> {
    let rest = stub.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(stub);
    match rest {
        [PUSH, a, b, c, d, ..] => Some(u32::from_le_bytes([*a, *b, *c, *d])),
        _ => None,
    }
}

/// Slot address and symbol name of each relocation that fills a slot with a function. Names beyond
/// the limit are left out.
fn names_of(object: &ElfFile, section: &Section, limit: u64) -> Option<Vec<(u64, Option<Arc<str>>)>> {
    let sections = object.sections();
    let symbols = sections.get(section.link as usize).filter(|symbols| symbols.kind == elf::SHT_DYNSYM)?;
    let strings = object.bytes(sections.get(symbols.link as usize)?, limit).ok()?;
    let symbols = object.bytes(symbols, limit).ok()?;
    let symbols = pod::slice_from_all_bytes::<Sym64<LE>>(&symbols).ok()?;
    let relocations = object.bytes(section, limit).ok()?;
    let relocations = pod::slice_from_all_bytes::<Rela64<LE>>(&relocations).ok()?;
    let mut room = limit as usize;
    let mut name = |relocation: &Rela64<LE>| {
        let info = relocation.r_info.get(LE);
        if !matches!(info as u32, elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT) {
            return None;
        }
        let symbol = symbols.get((info >> 32) as usize)?;
        let name = string_at(&strings, symbol.st_name.get(LE) as usize)?;
        room = room.checked_sub(name.len())?;
        (!name.is_empty()).then(|| name.into())
    };
    Some(relocations.iter().map(|relocation| (relocation.r_offset.get(LE), name(relocation))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_at_the_end_of_all_addresses_have_names() {
        let slots = Slots { by_address: FxHashMap::default(), by_number: vec![Some("f".into())] };
        let section = Section {
            name: ".plt".to_owned(),
            kind: elf::SHT_PROGBITS,
            flags: 0,
            address: 0u64.wrapping_sub(2 * STUB_BYTES),
            offset: 0,
            size: 3 * STUB_BYTES,
            link: 0,
            entry_size: STUB_BYTES,
        };
        let mut stub = vec![PUSH, 0, 0, 0, 0];
        stub.resize(STUB_BYTES as usize, 0x90);
        let mut found = Vec::new();
        slots.name_stubs(&section, &stub.repeat(3), &mut found);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|stub| stub.name() == "f@plt"));
    }
}
