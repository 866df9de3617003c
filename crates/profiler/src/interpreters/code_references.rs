//! What a function's code refers to: variables and functions of the same object, also those that
//! have no exported name. What is found is checked by its content: bytes may look like an
//! instruction and be none.

use super::exported::Exported;
use std::ops::Range;

/// Longer functions are damaged ones.
const MAX_CODE: u64 = 1 << 16;

/// The code of a function.
fn code_of(exported: &Exported, code: &Range<u64>) -> Vec<u8> {
    let mut bytes = vec![0; code.end.saturating_sub(code.start).min(MAX_CODE) as usize];
    match exported.copy_into(code.start, &mut bytes) {
        Some(()) => bytes,
        None => vec![],
    }
}

/// Which functions it calls or ends with.
pub fn calls(exported: &Exported, code: &Range<u64>) -> Vec<u64> {
    calls_in(&code_of(exported, code), code.start).filter(|target| !code.contains(target)).collect()
}

/// Which variables it reads or has the address of.
pub fn variables(exported: &Exported, code: &Range<u64>) -> Vec<u64> {
    variables_in(&code_of(exported, code), code.start)
}

#[cfg(target_arch = "x86_64")]
fn calls_in(code: &[u8], start: u64) -> impl Iterator<Item = u64> {
    code.windows(5).zip(start..).filter_map(|(window, at)| match *window {
        [0xe8 | 0xe9, a, b, c, d] => {
            Some((at + 5).wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()))
        }
        _ => None,
    })
}

/// `mov` and `lea` whose address is relative to the next instruction.
#[cfg(target_arch = "x86_64")]
fn variables_in(code: &[u8], start: u64) -> Vec<u64> {
    let windows = code.windows(6).zip(start..);
    let found = windows.filter_map(|(window, at)| match *window {
        [0x8b | 0x8d, to, a, b, c, d] if to & 0xc7 == 5 => {
            Some((at + 6).wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into()))
        }
        _ => None,
    });
    found.collect()
}

#[cfg(target_arch = "aarch64")]
fn calls_in(code: &[u8], start: u64) -> impl Iterator<Item = u64> {
    code.as_chunks::<4>().0.iter().zip((start..).step_by(4)).filter_map(|(word, at)| {
        let word = u32::from_le_bytes(*word);
        // b, bl
        (word >> 26 & 0x1f == 5).then(|| at.wrapping_add_signed(4 * i64::from((word << 6) as i32 >> 6)))
    })
}

/// `adrp`, and an `add` or `ldr` of the same register behind it.
#[cfg(target_arch = "aarch64")]
fn variables_in(code: &[u8], start: u64) -> Vec<u64> {
    let (mut pages, mut found) = ([None; 32], vec![]);
    for (word, at) in code.as_chunks::<4>().0.iter().zip((start..).step_by(4)) {
        let word = u32::from_le_bytes(*word);
        let (to, from, number) = (word & 31, word >> 5 & 31, u64::from(word >> 10 & 0xfff));
        let page = pages.get(from as usize).copied().flatten();
        match word {
            _ if word & 0x9f00_0000 == 0x9000_0000 => {
                let pages_on = (word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3;
                let distance = i64::from((pages_on << 11) as i32 >> 11) << 12;
                if let Some(known) = pages.get_mut(to as usize) {
                    *known = Some((at & !0xfff).wrapping_add_signed(distance));
                }
            }
            _ if word & 0xffc0_0000 == 0x9100_0000 => found.extend(page.map(|page: u64| page + number)),
            _ if word & 0xffc0_0000 == 0xf940_0000 => found.extend(page.map(|page: u64| page + 8 * number)),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_and_variables_are_relative_to_the_next_instruction() {
        // lea 0x10(%rip),%rdi; mov -8(%rip),%rax; call +4; jmp -2
        let code = [
            0x48, 0x8d, 0x3d, 0x10, 0, 0, 0, 0x48, 0x8b, 0x05, 0xf8, 0xff, 0xff, 0xff, 0xe8, 4, 0, 0, 0,
            0xe9, 0xfe, 0xff, 0xff, 0xff,
        ];
        assert_eq!(variables_in(&code, 0x1000), [0x1017, 0x1006]);
        assert_eq!(calls_in(&code, 0x1000).collect::<Vec<_>>(), [0x1017, 0x1016]);
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn calls_and_variables_are_relative_to_the_instruction_or_its_page() {
        // adrp x0, +2 pages; add x1, x0, #0x18; ldr x2, [x0, #0x20]; bl +8; b -4
        let words = [0xd000_0000u32, 0x9100_6001, 0xf940_1002, 0x9400_0002, 0x17ff_ffff];
        let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(variables_in(&code, 0x1000), [0x3018, 0x3020]);
        assert_eq!(calls_in(&code, 0x1000).collect::<Vec<_>>(), [0x1014, 0x100c]);
    }
}
