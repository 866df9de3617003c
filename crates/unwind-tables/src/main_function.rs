//! The `main` that rustc writes around `std::rt::lang_start`: with `panic=abort` and optimization
//! it has no entry in `.eh_frame`, and every stack of the program's first thread would end there.

use crate::code_scan::{self, Code, CodeState};
use std::ops::Range;
use swipr_unwind::rule::Rule;

/// The address of `main`, from the code of `_start` at `entry`: its first argument to
/// `__libc_start_main` (`lea main(%rip),%rdi` or `mov $main,%rdi`).
pub fn main_of_start(entry: u64, code: &[u8]) -> Option<u64> {
    code.windows(7).zip(entry..).find_map(|(instruction, at)| match *instruction {
        [0x48, 0x8d, 0x3d, a, b, c, d] => {
            Some(at.wrapping_add(7).wrapping_add_signed(four_bytes(a, b, c, d)))
        }
        [0x48, 0xc7, 0xc7, a, b, c, d] => u64::try_from(four_bytes(a, b, c, d)).ok(),
        _ => None,
    })
}

fn four_bytes(a: u8, b: u8, c: u8, d: u8) -> i64 {
    i64::from(i32::from_le_bytes([a, b, c, d]))
}

/// A function and its code, as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct Function<'c> {
    pub start: u64,
    pub code: &'c [u8],
}

impl Function<'_> {
    /// The states of its code if all of it lies in this hole between described functions.
    pub fn states_in(mut self, hole: &Range<u64>) -> Vec<(Range<u64>, CodeState)> {
        let states = if hole.contains(&self.start) { code_scan::scan(self.start, &mut self) } else { vec![] };
        let lies_in_hole = |(range, _): &(Range<u64>, _)| hole.start <= range.start && range.end <= hole.end;
        if states.iter().all(lies_in_hole) { states } else { vec![] }
    }
}

impl Code for Function<'_> {
    fn bytes(&mut self, address: u64) -> &[u8] {
        let from = address.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.code.get(from..)).unwrap_or(&[])
    }

    /// It calls other functions.
    fn rule(&mut self, address: u64) -> Rule {
        let is_own = address.checked_sub(self.start).is_some_and(|from| from < self.code.len() as u64);
        if is_own { Rule::NONE } else { Rule::END }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// push %rax; mov %rsi,%rcx; movslq %edi,%rdx; lea -0x70e(%rip),%rax; mov %rax,(%rsp); lea
    /// 0x48e7f(%rip),%rsi; mov %rsp,%rdi; xor %r8d,%r8d; call *0x4b783(%rip); pop %rcx; ret
    const RUSTC_MAIN: [u8; 39] = [
        0x50, 0x48, 0x89, 0xf1, 0x48, 0x63, 0xd7, 0x48, 0x8d, 0x05, 0xf2, 0xf8, 0xff, 0xff, 0x48, 0x89, 0x04,
        0x24, 0x48, 0x8d, 0x35, 0x7f, 0x8e, 0x04, 0x00, 0x48, 0x89, 0xe7, 0x45, 0x31, 0xc0, 0xff, 0x15, 0x83,
        0xb7, 0x04, 0x00, 0x59, 0xc3,
    ];

    #[test]
    fn the_main_of_a_rust_program_has_exact_rows() {
        let main = Function { start: 0x1000, code: &RUSTC_MAIN };
        let states = main.states_in(&(0x1000..0x1027));
        let rules: Vec<_> =
            states.iter().map(|(range, state)| (range.start, state.rule(&mut vec![]).unwrap())).collect();
        let [entry, pushed] = [8, 16].map(|cfa| Rule::sp(cfa, 0).unwrap());
        assert_eq!(rules, [(0x1000, entry), (0x1001, pushed), (0x1026, entry)]);
        assert_eq!(states.last().unwrap().0.end, 0x1027);
        assert!([0x1001..0x2000, 0..0x1026].iter().all(|hole| main.states_in(hole).is_empty()));
        for length in 0..RUSTC_MAIN.len() {
            let cut = Function { start: 0, code: &RUSTC_MAIN[..length] };
            assert!(cut.states_in(&(0..0x1000)).is_empty(), "cut after {length} bytes");
        }
    }

    #[test]
    fn start_tells_where_main_is() {
        // xor %edi... ; lea 0x8205(%rip),%rdi; call *...
        let relative = [0x31, 0xc9, 0x48, 0x8d, 0x3d, 0x05, 0x82, 0, 0, 0xff, 0x15];
        assert_eq!(main_of_start(0x19322, &relative), Some(0x21530));
        assert_eq!(main_of_start(0, &[0x48, 0xc7, 0xc7, 0x30, 0x12, 0x40, 0]), Some(0x401230));
        assert_eq!(main_of_start(0, &[0; 64]), None);
    }
}
