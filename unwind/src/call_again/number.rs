//! The number of the system call that a thread has just made, which the kernel keeps to itself: by the C library's code in front of it.
//!
//! - Before glibc 2.41 its wrappers have it as an immediate value: `mov $NUMBER,%eax; syscall`.
//! - Since then it is an argument on the stack of the function that all calls share where a thread may be cancelled (pthreads(7)). For a thread
//!   that cannot be, that function makes the call: `mov 16(%rsp),%rax; syscall`.
//! - For others it hands the number on, in a register that the call itself needs, to a piece of assembler ([`bridge`]).
//!
//! Each is read only where all instructions between the place from which the number comes and the system call are known, and leave that place
//! alone. syscall(2) has its number in a register and nowhere else: not known.

mod bridge;

/// `syscall`
pub const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
/// The load of the number and, behind it, up to three loads of arguments; in front of it the byte that could make it another instruction.
const LONGEST: usize = 1 + 5 + 3 * 5 + SYSTEM_CALL.len();

/// Where a thread stands.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Behind the system call.
    pub pc: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Its frame pointer.
    pub fp: u64,
}

/// The number of the call whose `syscall` instruction ends at `at.pc`. `copy` reads memory and returns how many bytes it could read.
/// (What has a buffer is apart and calls nothing else: the handler has little stack.)
#[inline(always)]
pub fn number_before(at: At, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<u32> {
    let number = match load_before(at.pc, &copy)? {
        Load::Value(number) => return Some(number),
        Load::From(base, offset) => word_at(at.place(base, offset), copy)?,
        Load::Other => bridge::number(at, copy)?,
    };
    u32::try_from(number).ok()
}

/// Whether the `syscall` instruction that ends at `pc` is syscall(2)'s own: `mov 8(%rsp),%r9` before it, as its seventh argument is on the stack.
#[inline(never)]
pub fn is_nameless(pc: u64, copy: impl Fn(u64, &mut [u8]) -> usize) -> bool {
    const END: [u8; 7] = [0x4c, 0x8b, 0x4c, 0x24, 8, SYSTEM_CALL[0], SYSTEM_CALL[1]];
    let mut code = [0; END.len()];
    copy(pc.wrapping_sub(END.len() as u64), &mut code) == END.len() && code == END
}

/// The register that a place on the stack is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Sp,
    Fp,
}

/// Where a wrapper has its number from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Value(u32),
    From(Base, u8),
    Other,
}

impl At {
    fn place(self, base: Base, offset: u8) -> u64 {
        let base = match base {
            Base::Sp => self.sp,
            Base::Fp => self.fp,
        };
        base.wrapping_add(u64::from(offset))
    }
}

#[inline(never)]
fn word_at(address: u64, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<u64> {
    let mut word = [0; 8];
    (copy(address, &mut word) == word.len()).then(|| u64::from_ne_bytes(word))
}

#[inline(never)]
fn load_before(pc: u64, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<Load> {
    let mut code = [0; LONGEST];
    let start = pc.checked_sub(LONGEST as u64)?;
    if copy(start, &mut code) == LONGEST { load_in(&code) } else { None }
}

/// How the system call at the end of `code` got its number.
fn load_in(code: &[u8; LONGEST]) -> Option<Load> {
    let before = code.strip_suffix(&SYSTEM_CALL)?;
    let load = (1..before.len()).rev().find_map(|at| match before.get(at - 1..)? {
        // Behind a prefix REX.B it is r8 that is loaded.
        [prefix, 0xb8, a, b, 0, 0, rest @ ..] if prefix & 0xf1 != 0x41 && is_loads(rest) => {
            Some(Load::Value(u32::from_le_bytes([*a, *b, 0, 0])))
        }
        [_, 0x48, 0x8b, 0x44, 0x24, offset @ ..0x80, rest @ ..] if is_loads(rest) => {
            Some(Load::From(Base::Sp, *offset))
        }
        [_, 0x48, 0x8b, 0x45, offset @ ..0x80, rest @ ..] if is_loads(rest) => {
            Some(Load::From(Base::Fp, *offset))
        }
        _ => None,
    });
    Some(load.unwrap_or(Load::Other))
}

/// Whether the code only loads registers other than rax from the stack: `mov disp8(%rsp),%reg`.
fn is_loads(mut code: &[u8]) -> bool {
    loop {
        code = match code {
            [] => return true,
            [0x44 | 0x4c, 0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 => rest,
            [0x44 | 0x4c, 0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 => rest,
            [0x48, 0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 && *modrm != 0x44 => rest,
            [0x48, 0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 && *modrm != 0x04 => rest,
            [0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 && *modrm != 0x44 => rest,
            [0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 && *modrm != 0x04 => rest,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    /// With every word on the stack its own distance from sp, which is zero, or from fp.
    fn number(code: &[u8]) -> Option<u32> {
        let at = At { pc: 0x9000, sp: 0, fp: 0x1000 };
        number_before(at, |address, buffer: &mut [u8]| {
            if address < 0x8000 {
                buffer.copy_from_slice(&address.to_ne_bytes());
            } else {
                let before = [&[0x90; 64], code].concat();
                buffer.copy_from_slice(&before[before.len() - buffer.len()..]);
            }
            buffer.len()
        })
    }

    #[test]
    fn wrappers_have_it_as_a_value() {
        // As glibc 2.36 has them: without and with arguments that are loaded late.
        let pselect = [0xb8, 0x0e, 1, 0, 0, 0x8b, 0x7c, 0x24, 4, 0x48, 0x8b, 0x74, 0x24, 8, 0x0f, 5];
        assert_eq!(number(&[0xb8, 7, 0, 0, 0, 0x0f, 5]), Some(7));
        assert_eq!(number(&pselect), Some(270));
    }

    #[test]
    fn who_all_calls_go_through_has_it_on_its_stack() {
        // As glibc 2.41, 2.43, and 2.41 with frame pointers have it.
        assert_eq!(number(&[0x48, 0x8b, 0x44, 0x24, 0x10, 0x0f, 5]), Some(0x10));
        assert_eq!(number(&[0x48, 0x8b, 0x44, 0x24, 0x20, 0x0f, 5]), Some(0x20));
        assert_eq!(number(&[0x48, 0x8b, 0x45, 0x10, 0x0f, 5]), Some(0x1010));
        assert_eq!(number(&[0x48, 0x8b, 0x44, 0x24, 0xf0, 0x0f, 5]), None, "from below the stack");
    }

    #[test]
    fn what_is_no_call_is_left_alone() {
        assert_eq!(number(&[0x90; 7]), None, "no system call");
        // mov %eax,%ecx in between: not known what it does
        assert_eq!(number(&[0xb8, 7, 0, 0, 0, 0x89, 0xc1, 0x0f, 5]), None);
        assert_eq!(number(&[0x48, 0x8b, 0x44, 0x24, 0x10, 0x89, 0xc1, 0x0f, 5]), None);
        // mov 8(%rsp),%eax: another number
        assert_eq!(number(&[0xb8, 7, 0, 0, 0, 0x8b, 0x44, 0x24, 8, 0x0f, 5]), None);
        // mov $7,%r8d
        assert_eq!(number(&[0x41, 0xb8, 7, 0, 0, 0, 0x0f, 5]), None);
    }

    #[test]
    fn syscall_has_none() {
        // mov %rdi,%rax; mov %rsi,%rdi; …; mov 8(%rsp),%r9; syscall
        let moves = [0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca];
        let rest = [0x4d, 0x89, 0xc2, 0x4d, 0x89, 0xc8, 0x4c, 0x8b, 0x4c, 0x24, 8, 0x0f, 5];
        let code = [&moves[..], &rest].concat();
        assert_eq!(number(&code), None);
        let is_its = |code: &[u8]| {
            is_nameless(0x9000, |_, buffer: &mut [u8]| {
                buffer.copy_from_slice(&code[code.len() - buffer.len()..]);
                buffer.len()
            })
        };
        assert!(is_its(&code));
        assert!(!is_its(&[0x90, 0x90, 0xb8, 7, 0, 0, 0, 0x0f, 5]));
    }
}
