//! Code in methods that HotSpot has compiled which moves the stack pointer behind the prologue:
//! while it searches a string (`String.indexOf`), and around calls of a collector's barriers.

use super::code_ahead::CodeAhead;
use super::java::{POP_FP, leaves, returns};
use crate::memory::Memory;
use crate::x86_code::{Effect, SP, decode};

/// Bytes by which such code moves it at most.
const MAX_MOVED: u64 = 4096;

/// What the instructions from `pc` on, up to `end`, put a stack pointer back to; `None`: they do
/// not. They are read as they lie there: jumps stay in such code, or lead out of it.
#[cold]
#[inline(never)]
pub(super) fn put_back<M: Memory + ?Sized>(memory: &mut M, pc: u64, end: u64, sp: u64) -> Option<u64> {
    let mut ahead = CodeAhead::new(pc, end);
    let (mut moved, mut most, mut is_ahead) = (0i64, 0, false);
    while let Some(code) = ahead.code(memory) {
        let Some(instruction) = decode(code).filter(|_| !leaves(code) || is_result(code)) else { break };
        match instruction.effect {
            Effect::Pop(SP) => return saved(memory, sp, moved),
            Effect::Load { to: SP, base: SP, offset } => {
                return saved(memory, sp, moved.wrapping_add(offset));
            }
            Effect::Write(SP) | Effect::Copy { to: SP, .. } | Effect::Load { to: SP, .. } => break,
            Effect::Leave | Effect::Return => break,
            // What follows is another way out of such code, or of some that is still ahead.
            Effect::Jump(_) | Effect::End if most > 0 || is_ahead => break,
            Effect::Pop(_) => moved += 8,
            Effect::Push(_) => moved -= 8,
            Effect::Down(bytes) => moved = moved.wrapping_sub(bytes),
            _ => {}
        }
        most = moved.max(most);
        is_ahead |= moved < 0;
        ahead.skip(instruction.length as u64);
    }
    (1..=MAX_MOVED as i64).contains(&most).then(|| sp.wrapping_add_signed(most))
}

/// Whether a stub's result is popped, into the register of the frame pointer.
fn is_result(code: &[u8]) -> bool {
    matches!(code, [POP_FP, rest @ ..] if !returns(rest))
}

/// The stack pointer that was saved on the stack, so far from the present one.
fn saved<M: Memory + ?Sized>(memory: &mut M, sp: u64, offset: i64) -> Option<u64> {
    let saved = memory.word(sp.wrapping_add_signed(offset))?;
    (sp..=sp.saturating_add(MAX_MOVED)).contains(&saved).then_some(saved).filter(|saved| saved % 8 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code at 1000, and the stack at 2000.
    struct Parts<'a>(&'a [u8], &'a [u64]);

    impl Memory for Parts<'_> {
        fn word(&mut self, address: u64) -> Option<u64> {
            self.1.get((address.checked_sub(2000)? / 8) as usize).copied()
        }

        fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
            let at = (address - 1000) as usize;
            self.0.get(at..at + buffer.len()).is_some_and(|code| {
                buffer.copy_from_slice(code);
                true
            })
        }
    }

    fn after(code: &[u8], stack: &[u64]) -> Option<u64> {
        put_back(&mut Parts(code, stack), 1000, 1000 + code.len() as u64, 2000)
    }

    #[test]
    fn a_stack_pointer_is_where_the_next_instructions_put_it() {
        const NOPS: [u8; 200] = [0x90; 200];
        // What a call needs is pushed and dropped again; a loop; add $24, %rsp.
        let code = [0x50, 0x58, 0x75, 0xfe, 0x48, 0x83, 0xc4, 24, 0xeb, 2, 0x58];
        assert_eq!(after(&code, &[]), Some(2024));
        // Such code is ahead, with two ways out of it.
        assert_eq!(after(&[0x52, 0x90, 0x48, 0x83, 0xc4, 8, 0xeb, 1, 0x58], &[]), None);
        // It was saved on top of the stack, with a word that is still to be popped; far away.
        assert_eq!(after(&[0x5a, 0x5c, 0x48, 0x83, 0xc4, 8], &[7, 2048]), Some(2048));
        assert_eq!(after(&[&NOPS[..], &[0x5c]].concat(), &[2016]), Some(2016));
        assert_eq!(after(&[0x5c], &[9000]), None);
        // The end of the method: nothing was moved.
        assert_eq!(after(&[0x90, 0x48, 0x83, 0xc4, 32, 0x5d, 0xc3], &[]), None);
        assert_eq!(after(&NOPS, &[]), None);
        assert_eq!(after(&[], &[]), None);
    }
}
