//! Unwind rows of a function that nothing describes, from its instructions: only straight-line code
//! up to its `ret`, and only instructions whose effect on the stack pointer is certain. Anything
//! else has no rows at all.
//!
//! Made for the `main` that rustc writes around `std::rt::lang_start`: with `panic=abort`
//! and optimization it has no entry in `.eh_frame`, and every stack of the program's
//! first thread would end there.

use std::ops::Range;
use swipr_unwind::rule::Rule;
use swipr_unwind::x86_code::{Effect, Instruction};

/// Instructions that are read.
const MAX_INSTRUCTIONS: usize = 64;
/// The CFA when a function begins: above the return address.
const AT_ENTRY: i64 = 8;

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

/// A straight-line function.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Straight {
    start: u64,
    end: u64,
    /// Where the CFA's distance from the stack pointer changes, and to what.
    cfa: Vec<(u64, i64)>,
}

impl Straight {
    /// Reads the code of a function that begins at `start`.
    pub fn new(start: u64, mut code: &[u8]) -> Option<Straight> {
        let (mut at, mut distance) = (start, AT_ENTRY);
        let mut cfa = vec![(start, distance)];
        for _ in 0..MAX_INSTRUCTIONS {
            let Instruction { length, effect } = Instruction::decode(code)?;
            (at, code) = (at.checked_add(length as u64)?, code.get(length..)?);
            match effect {
                Effect::None | Effect::Call => {}
                Effect::Push => distance += 8,
                Effect::Pop => distance -= 8,
                Effect::Down(bytes) => distance += i64::from(bytes),
                Effect::Return => return (distance == AT_ENTRY).then_some(Straight { start, end: at, cfa }),
            }
            if distance < AT_ENTRY {
                return None;
            }
            if cfa.last().is_some_and(|&(_, last)| last != distance) {
                cfa.push((at, distance));
            }
        }
        None
    }

    /// Whether all of it lies there.
    pub fn lies_in(&self, hole: Range<u64>) -> bool {
        hole.start <= self.start && self.end <= hole.end
    }

    /// The address behind its `ret`.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Its rows, by address.
    pub fn rows(&self) -> impl Iterator<Item = (u64, Rule)> + '_ {
        // `frame pointer unchanged`: none of the known instructions writes it.
        self.cfa.iter().map(|&(at, distance)| (at, Rule::sp(distance, 0).unwrap_or(Rule::NONE)))
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
        let main = Straight::new(0x1000, &RUSTC_MAIN).unwrap();
        assert_eq!(main.cfa, [(0x1000, 8), (0x1001, 16), (0x1026, 8)]);
        assert_eq!(main.end(), 0x1027);
        assert!(main.lies_in(0x1000..0x1027) && !main.lies_in(0x1001..0x2000) && !main.lies_in(0..0x1026));
        assert_eq!(main.rows().nth(1), Some((0x1001, Rule::sp(16, 0).unwrap())));
    }

    #[test]
    fn code_that_is_not_wholly_understood_has_no_rows() {
        for length in 0..RUSTC_MAIN.len() {
            assert_eq!(Straight::new(0, &RUSTC_MAIN[..length]), None, "cut after {length} bytes");
        }
        let cases: [&[u8]; 6] = [
            &[0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3], // push %rbp; mov %rsp,%rbp; pop %rbp: the frame pointer is written
            &[0x50, 0xc3],                         // returns to what it pushed
            &[0x59, 0x50, 0xc3],                   // pops its return address
            &[0x50, 0x74, 0x01, 0x59, 0xc3],       // a branch
            &[0x5c, 0xc3],                         // pop %rsp
            &[0x48, 0x8b, 0x24, 0x24, 0xc3],       // mov (%rsp),%rsp
        ];
        for code in cases {
            assert_eq!(Straight::new(0, code), None, "{code:x?}");
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
