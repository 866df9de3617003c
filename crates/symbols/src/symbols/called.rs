//! Where code begins that instructions call, or whose address they take. This separates
//! hand-written functions that have neither a size nor unwind information. Instructions are not
//! decoded in order: bytes that only look like a call end a name too early, and nothing else.

use super::function_at;
use crate::elf::{ElfFile, Section};
use object::elf;
use std::ops::Range;
use swipr_unwind_tables::order::sorted_by;

/// Bytes of code that are searched; objects with more have no such beginnings.
const MAX_CODE_BYTES: u64 = 16 << 20;
/// Bytes of code that are in memory at a time.
const PART_BYTES: u64 = 1 << 20;
/// Bytes of the longest instruction that is looked for: parts overlap by less.
const INSTRUCTION_BYTES: usize = 7;

/// The beginnings outside of the described `functions`, sorted.
pub(super) fn starts(object: &ElfFile, functions: &[Range<u64>]) -> Vec<u64> {
    let is_code = |section: &&Section| section.is_executable() && section.kind != elf::SHT_NOBITS;
    let code: Vec<&Section> = object.sections().iter().filter(is_code).collect();
    let bytes = code.iter().fold(0u64, |sum, section| sum.saturating_add(section.size));
    let mut starts = Vec::new();
    if bytes > MAX_CODE_BYTES {
        return starts;
    }
    for section in &code {
        let mut at = 0;
        while at < section.size {
            let size = (section.size - at).min(PART_BYTES);
            let offset = section.offset.saturating_add(at);
            let part = Section { offset, size, ..(*section).clone() };
            let Ok(bytes) = object.bytes(&part, PART_BYTES) else { break };
            let targets = targets(&bytes, section.address.wrapping_add(at), object.is_aarch64());
            starts.extend(targets.filter(|&target| {
                code.iter().any(|section| section.contains(target))
                    && function_at(functions, target).is_none()
            }));
            starts = sorted_by(&starts, |&start| start);
            starts.dedup();
            at += if size == PART_BYTES { PART_BYTES - INSTRUCTION_BYTES as u64 - 1 } else { size };
        }
    }
    starts
}

/// What the code at `address` calls or takes the address of.
fn targets(code: &[u8], address: u64, is_aarch64: bool) -> impl Iterator<Item = u64> + '_ {
    let target = if is_aarch64 { aarch64_target } else { x86_64_target };
    let step = if is_aarch64 { 4 } else { 1 };
    (0..code.len()).step_by(step).filter_map(move |at| {
        let (length, distance) = target(code.get(at..)?)?;
        Some(address.wrapping_add(at as u64 + length).wrapping_add_signed(distance))
    })
}

/// `call TARGET`, `lea TARGET(%rip),%reg`: the instruction's length and the way from its end.
fn x86_64_target(code: &[u8]) -> Option<(u64, i64)> {
    let (length, distance) = match *code {
        [0xe8, a, b, c, d, ..] => (5, [a, b, c, d]),
        [0x48 | 0x4c, 0x8d, modrm, a, b, c, d, ..] if modrm & 0xc7 == 5 => (7, [a, b, c, d]),
        _ => return None,
    };
    Some((length, i64::from(i32::from_le_bytes(distance))))
}

/// `bl TARGET`: the way from its beginning.
fn aarch64_target(code: &[u8]) -> Option<(u64, i64)> {
    let word = u32::from_le_bytes(code.get(..4)?.try_into().ok()?);
    (word >> 26 == 0b10_0101).then(|| (0, i64::from((word << 6) as i32 >> 6) * 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_addresses_lead_to_where_objdump_says() {
        // nop; call 0x20; lea 0x40(%rip),%rax; mov 0x40(%rip),%rax; call -5
        let code = [
            &[0x90, 0xe8, 0x1a, 0, 0, 0][..],
            &[0x48, 0x8d, 5, 0x40, 0, 0, 0],
            &[0x48, 0x8b, 5, 0x40, 0, 0, 0],
            &[0xe8, 0xf6, 0xff, 0xff, 0xff],
        ];
        let found: Vec<u64> = targets(&code.concat(), 0x1000, false).collect();
        assert_eq!(found, [0x1020, 0x104d, 0x100f]);
        // bl +8; nop; bl -4
        let code = [0x9400_0002u32, 0xd503_201f, 0x97ff_ffff].map(u32::to_le_bytes).concat();
        assert_eq!(targets(&code, 0x1000, true).collect::<Vec<_>>(), [0x1008, 0x1004]);
    }
}
