//! Code of HotSpot that has no frame of a known size, as most stubs: the instructions ahead say
//! where the return address is.

use crate::memory::Memory;
use crate::x86_code::{Effect, FP, Instruction, SP, decode};
use core::ops::Range;

/// Bytes of code that are read at once, how often at most, and those of the longest instruction.
const WINDOW: usize = 128;
const WINDOWS: usize = 4;
const LONGEST: usize = 15;

/// Instructions from an address on, as they lie there.
pub(super) struct CodeAhead {
    window: [u8; WINDOW],
    read: usize,
    windows: usize,
    at: u64,
    end: u64,
}

impl CodeAhead {
    /// Those from `at` to `end`.
    pub(super) fn new(at: u64, end: u64) -> CodeAhead {
        CodeAhead { window: [0; WINDOW], read: WINDOW, windows: WINDOWS, at, end }
    }

    /// The code from the next instruction on; `None`: that is far, or cannot be read.
    #[inline(never)]
    pub(super) fn code<M: Memory + ?Sized>(&mut self, memory: &mut M) -> Option<&[u8]> {
        if self.read + LONGEST > WINDOW {
            let bytes = self.end.saturating_sub(self.at).min(WINDOW as u64) as usize;
            self.windows = self.windows.checked_sub(1)?;
            (self.window, self.read) = ([0; WINDOW], 0);
            if bytes == 0 || !memory.code(self.at, self.window.get_mut(..bytes)?) {
                return None;
            }
        }
        self.window.get(self.read..).filter(|_| self.at < self.end)
    }

    /// Goes so far.
    pub(super) fn skip(&mut self, bytes: u64) {
        self.at = self.at.saturating_add(bytes);
        self.read = self.read.saturating_add(bytes as usize).min(WINDOW);
    }
}

/// Where the code from an instruction on returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Return {
    /// The stack pointer there.
    pub sp: u64,
    /// Where the last word lay, if it was popped before a jump elsewhere: that may be the return
    /// address.
    pub popped: Option<u64>,
    /// The frame pointer there.
    pub fp: Option<u64>,
}

/// How the code from `pc` on returns: straight on, and along jumps ahead in its `piece` that are
/// always taken. `None`: it does not say so.
#[cold]
#[inline(never)]
pub(super) fn next_return<M: Memory + ?Sized>(
    memory: &mut M,
    pc: u64,
    piece: Range<u64>,
    (mut sp, mut fp): (u64, Option<u64>),
) -> Option<Return> {
    let mut ahead = CodeAhead::new(pc, piece.end);
    let mut popped = None;
    loop {
        let Instruction { length, effect } = decode(ahead.code(memory)?)?;
        ahead.skip(length as u64);
        let before = sp;
        let base = |register| match register {
            SP => Some(sp),
            FP => fp,
            _ => None,
        };
        match effect {
            Effect::Return => return Some(Return { sp, popped: None, fp }),
            Effect::End => return Some(Return { sp, popped, fp }),
            Effect::Jump(distance) if !piece.contains(&ahead.at.wrapping_add_signed(distance.into())) => {
                return Some(Return { sp, popped, fp });
            }
            Effect::Jump(distance) => ahead.skip(u64::try_from(distance).ok()?),
            Effect::Push(_) => sp = sp.checked_sub(8)?,
            Effect::Down(bytes) => sp = sp.checked_add_signed(bytes.checked_neg()?)?,
            Effect::Pop(SP) | Effect::Write(SP) => return None,
            Effect::Pop(register) => {
                fp = if register == FP { memory.word(sp) } else { fp };
                popped = Some(sp);
                sp = sp.checked_add(8)?;
                continue;
            }
            Effect::Leave => {
                let at = fp?;
                (sp, fp) = (at.checked_add(8)?, memory.word(at));
            }
            Effect::Copy { to: SP, from, plus } => sp = base(from)?.checked_add_signed(plus)?,
            Effect::Copy { to: FP, from, plus } => fp = base(from).and_then(|at| at.checked_add_signed(plus)),
            Effect::Load { to: SP, base: from, offset } => {
                sp = memory.word(base(from)?.checked_add_signed(offset)?)?;
            }
            Effect::Load { to: FP, base: from, offset } => {
                fp = base(from).and_then(|at| memory.word(at.checked_add_signed(offset)?));
            }
            Effect::Write(FP) => fp = None,
            Effect::None | Effect::Write(_) | Effect::Copy { .. } | Effect::Load { .. } => {}
            Effect::Store { .. } | Effect::Call(_) | Effect::Branch(_) => {}
        }
        if sp != before {
            popped = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code at 1000, and the stack at 2000: the words 0, 1, 2 and so on.
    struct Parts<'a>(&'a [u8]);

    impl Memory for Parts<'_> {
        fn word(&mut self, address: u64) -> Option<u64> {
            Some(address.checked_sub(2000)? / 8)
        }

        fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
            let at = (address - 1000) as usize;
            self.0.get(at..at + buffer.len()).is_some_and(|code| {
                buffer.copy_from_slice(code);
                true
            })
        }
    }

    fn after(code: &[u8]) -> Option<Return> {
        next_return(&mut Parts(code), 1000, 1000..1000 + code.len() as u64, (2000, Some(2080)))
    }

    fn at(at: u64, fp: u64) -> Option<Return> {
        Some(Return { sp: at, popped: None, fp: Some(fp) })
    }

    #[test]
    fn a_return_address_is_where_the_instructions_ahead_return() {
        // push %rax; test; js +1; pop %rax; add $24, %rsp; ret
        assert_eq!(after(&[0x50, 0x85, 0xc0, 0x78, 1, 0x58, 0x48, 0x83, 0xc4, 24, 0xc3]), at(2024, 2080));
        // push %rbp; mov %rsp, %rbp; sub $32, %rsp; call; leave; ret: the frame is still ahead.
        let enters = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 32, 0xe8, 0, 0, 0, 0, 0xc9, 0xc3];
        assert_eq!(after(&enters), Some(Return { sp: 2000, popped: None, fp: None }));
        // The rest of it.
        assert_eq!(after(&enters[8..]), at(2088, 10));
        assert_eq!(after(&[0x5d, 0xc3]), at(2008, 0));
        // lea -8(%rbp), %rsp; pop %rbx; pop %rbp; ret
        assert_eq!(after(&[0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3]), at(2088, 10));
        // jmp +2, over code that is not run; ret
        assert_eq!(after(&[0xeb, 2, 0x58, 0x58, 0xc3]), at(2000, 2080));
    }

    #[test]
    fn a_return_address_that_is_popped_before_a_jump_elsewhere_lies_below() {
        let popped = |at, sp, fp| Some(Return { sp, popped: Some(at), fp: Some(fp) });
        // pop %rdx; jmp *%rax, or to another piece
        assert_eq!(after(&[0x5a, 0xff, 0xe0]), popped(2000, 2008, 2080));
        assert_eq!(after(&[0x5a, 0xe9, 0, 0, 0, 0x10]), popped(2000, 2008, 2080));
        // add $16, %rsp; pop %rbp; pop %rdx; jmp *%rax
        assert_eq!(after(&[0x48, 0x83, 0xc4, 16, 0x5d, 0x5a, 0xff, 0xe0]), popped(2024, 2032, 2));
        // pop %rdx; add $16, %rsp; jmp *%rax
        assert_eq!(after(&[0x5a, 0x48, 0x83, 0xc4, 16, 0xff, 0xe0]), at(2024, 2080));
    }

    #[test]
    fn code_that_does_not_say_where_it_returns_is_not_followed() {
        let too_long = [0x90; WINDOW * (WINDOWS + 1)];
        // A jump back; and $-32, %rsp; nothing.
        for code in [&[0xeb, 0xfe, 0xc3][..], &[0x48, 0x83, 0xe4, 0xe0, 0xc3], &[], &too_long] {
            assert_eq!(after(code), None, "{code:x?}");
        }
    }
}
