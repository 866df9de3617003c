//! The part of a function that its compiler has put elsewhere, because it seldom runs, or did not
//! run when the compiler's profile was taken. Only branches of the function lead to it. It has no
//! exported name, but unwind information of its own.

use super::exported::Exported;
use rustc_hash::FxHashMap;
use std::ops::Range;
use swipr_os::objects::Object;

/// Longer functions are damaged ones, and so are longer lists of functions.
const MAX_CODE: u64 = 1 << 20;
const MAX_FUNCTIONS: u64 = 1 << 18;
/// Bytes that look like branches but are none lead anywhere: so many lead into the same function by
/// no chance.
const MIN_JUMPS: usize = 4;
/// The head of `.eh_frame_hdr`, of the only kind that linkers write: a sorted table of pairs of
/// four bytes, relative to the section.
const HEAD: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const HEAD_BYTES: u64 = 12;

/// Where the rest of the function at `code` is; empty: nowhere else.
pub fn of(exported: &Exported, object: &Object, code: &Range<u64>) -> Range<u64> {
    find(exported, object, code).unwrap_or_default()
}

fn find(exported: &Exported, object: &Object, code: &Range<u64>) -> Option<Range<u64>> {
    let starts = starts(exported, object)?;
    let mut bytes = vec![0; (code.end - code.start).min(MAX_CODE) as usize];
    exported.copy_into(code.start, &mut bytes)?;
    let mut into: FxHashMap<usize, usize> = FxHashMap::default();
    for target in branches(&bytes, code.start).filter(|target| !code.contains(target)) {
        // Behind the function's start: a branch to that is a call at the caller's end.
        let behind = starts.partition_point(|start| *start <= target);
        if behind.checked_sub(1).and_then(|at| starts.get(at)).is_some_and(|start| *start != target) {
            *into.entry(behind).or_default() += 1;
        }
    }
    let (&behind, _) =
        into.iter().filter(|(_, count)| **count >= MIN_JUMPS).max_by_key(|(_, count)| **count)?;
    Some(*starts.get(behind - 1)?..*starts.get(behind)?)
}

/// Where the object's functions start, by its unwind information.
pub fn starts(exported: &Exported, object: &Object) -> Option<Vec<u64>> {
    let section = object.segments.iter().find(|segment| segment.kind == libc::PT_GNU_EH_FRAME)?;
    let head: [u8; HEAD_BYTES as usize] = exported.copy(section.address)?;
    let count = u64::from(u32::from_ne_bytes(*head.last_chunk()?));
    if head.first_chunk() != Some(&HEAD) || count > MAX_FUNCTIONS {
        return None;
    }
    let mut table = vec![0; 8 * count as usize];
    exported.copy_into(section.address + HEAD_BYTES, &mut table)?;
    let start = |pair: &[u8; 8]| {
        let [a, b, c, d, ..] = *pair;
        section.address.wrapping_add_signed(i32::from_ne_bytes([a, b, c, d]).into())
    };
    Some(table.as_chunks().0.iter().map(start).collect())
}

/// Where the branches in this code lead, and what looks like a branch.
#[cfg(target_arch = "x86_64")]
fn branches(code: &[u8], start: u64) -> impl Iterator<Item = u64> {
    code.windows(6).zip(start..).filter_map(|(window, at)| {
        let (next, distance) = match *window {
            [0x0f, 0x80..=0x8f, a, b, c, d] => (at + 6, [a, b, c, d]),
            [0xe9, a, b, c, d, _] => (at + 5, [a, b, c, d]),
            _ => return None,
        };
        Some(next.wrapping_add_signed(i32::from_le_bytes(distance).into()))
    })
}

/// Where the branches in this code lead.
#[cfg(target_arch = "aarch64")]
fn branches(code: &[u8], start: u64) -> impl Iterator<Item = u64> {
    code.as_chunks::<4>().0.iter().zip((start..).step_by(4)).filter_map(|(word, at)| {
        let word = u32::from_le_bytes(*word);
        // From the highest bit of the distance down, and from its lowest bit down.
        let (above, below) = match word {
            _ if word >> 26 == 0x05 => (6, 6),                  // b
            _ if word & 0xff00_0010 == 0x5400_0000 => (8, 13),  // b.cond
            _ if word & 0x7e00_0000 == 0x3400_0000 => (8, 13),  // cbz, cbnz
            _ if word & 0x7e00_0000 == 0x3600_0000 => (13, 18), // tbz, tbnz
            _ => return None,
        };
        let words = ((word << above) as i32) >> below;
        Some(at.wrapping_add_signed(4 * i64::from(words)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn branches_lead_forwards_and_back() {
        let code = [0x90, 0x0f, 0x84, 0x10, 0, 0, 0, 0xe9, 0xf0, 0xff, 0xff, 0xff, 0xcc];
        assert_eq!(branches(&code, 0x1000).collect::<Vec<_>>(), [0x1017, 0xffc]);
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn branches_lead_forwards_and_back() {
        // b +8, b.eq -4, cbnz x0 +12, tbz w0 #0 -8, nop
        let words = [0x1400_0002u32, 0x54ff_ffe0, 0xb500_0060, 0x3607_ffc0, 0xd503_201f];
        let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(branches(&code, 0x1000).collect::<Vec<_>>(), [0x1008, 0x1000, 0x1014, 0x1004]);
    }
}
