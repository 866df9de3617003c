//! Steps from frames of Java (HotSpot): of compiled code by the size that it says, of its
//! interpreter by the frame pointer.

use super::java_stubs::{from_stub, to_return};
use super::moved_sp::put_back;
use super::steps::enter_caller;
use super::{Frame, Stop};
use crate::arch::Arch;
use crate::code_cache::{CodeCache, CodePiece};
use crate::memory::Memory;
use crate::published::Rules;

/// Below the frame pointer of the interpreter's frame: the stack pointer of its caller, before
/// arguments were moved.
const SENDER_SP: u64 = 8;
/// Bytes of code that are read before and behind an instruction.
const BEFORE: usize = 8;
const CODE: usize = 28;

/// How much of its frame a function has at an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// All.
    Whole,
    /// All but the caller's frame pointer, which is still in its register.
    Unsaved,
    /// The caller's frame pointer is on top of the stack.
    Pushed,
    /// The return address is.
    Nothing,
}

/// Steps to the caller; `None`: the code there has no frame of a kind that is known.
#[cold]
#[inline(never)]
pub(super) fn step<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
) -> Option<Result<(), Stop>> {
    let pc = frame.look_up();
    if cache.is_interpreter(pc) {
        return by_frame_pointer::<A, M>(rules, memory, frame, cache);
    }
    let piece = cache.find(memory, pc)?;
    if piece.frame == 0 {
        return from_stub::<A, M>(rules, memory, frame, cache, piece);
    }
    // A stub whose frame is not said to be whole anywhere.
    if frame.exact
        && piece.complete < piece.code
        && let Some(stepped) = to_return::<A, M>(rules, memory, frame, cache, piece)
    {
        return Some(stepped);
    }
    let made = if frame.exact && A::CALL_PUSHES { made(memory, pc, piece)? } else { Made::Whole };
    let (sp, fp) = (frame.at.sp, frame.at.fp);
    let (cfa, fp) = match made {
        Made::Whole => {
            let sp = whole_frames_sp::<A, M>(rules, memory, (frame.at.pc, sp), cache, piece);
            let cfa = sp.checked_add(piece.frame)?;
            (cfa, Some(memory.word(cfa.checked_sub(16)?)?))
        }
        Made::Unsaved => (sp.checked_add(piece.frame)?, fp),
        Made::Pushed => (sp.checked_add(16)?, Some(memory.word(sp)?)),
        Made::Nothing => (sp.checked_add(8)?, fp),
    };
    if !frame.in_stack(cfa) {
        return Some(Err(Stop::OutOfBounds));
    }
    let pc = memory.word(cfa.checked_sub(8)?)?;
    Some(enter_caller::<A>(frame, pc, cfa, fp))
}

/// The stack pointer of a method with a whole frame, without what its code has pushed for a moment:
/// below that an earlier call may have left its return address.
#[inline(never)]
pub(super) fn whole_frames_sp<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    (pc, sp): (u64, u64),
    cache: &CodeCache,
    piece: CodePiece,
) -> u64 {
    let return_address =
        |memory: &mut M, sp: u64| sp.checked_add(piece.frame - 8).and_then(|at| memory.word(at));
    let to = return_address(memory, sp).unwrap_or(0);
    // Directly. Other calls may lead there, too, through stubs.
    let is_called = |memory: &mut M, pc: u64| {
        let target = call_target(rules, memory, cache, pc);
        target.is_some_and(|target| (piece.start..piece.end).contains(&target))
    };
    let is_stub = piece.complete < piece.code;
    if !A::CALL_PUSHES || is_stub || cache.is_interpreter(to) || is_called(memory, to) {
        return sp;
    }
    let moved = put_back(memory, pc, piece.end, sp);
    // Methods return to code of the cache only.
    moved.filter(|&sp| return_address(memory, sp).is_some_and(|pc| cache.may_have(pc))).unwrap_or(sp)
}

/// Whether there may be code. The cache grows: what it may have is known, and not only what was
/// executable when the snapshot was made.
pub(super) fn may_be_code(rules: &Rules<'_>, cache: &CodeCache, pc: u64) -> bool {
    cache.may_have(pc) || rules.snapshot.is_executable(pc)
}

/// From a frame of the interpreter.
fn by_frame_pointer<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
) -> Option<Result<(), Stop>> {
    let fp = frame.at.fp.filter(|fp| *fp >= frame.at.sp && fp % 8 == 0)?;
    let sender_sp = memory.word(fp.checked_sub(SENDER_SP)?)?;
    let pc = memory.word(fp.checked_add(8)?)? & A::ADDRESS_MASK;
    let caller_fp = memory.word(fp)?;
    let is_frame = sender_sp >= fp.checked_add(16)? && frame.in_stack(sender_sp);
    (is_frame && may_be_code(rules, cache, pc))
        .then(|| enter_caller::<A>(frame, pc, sender_sp, Some(caller_fp)))
}

/// Where the call before a return address goes.
#[inline(never)]
pub(super) fn call_target<M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    cache: &CodeCache,
    pc: u64,
) -> Option<u64> {
    let mut code = [0; 13];
    let start = pc.checked_sub(13).filter(|start| may_be_code(rules, cache, *start))?;
    if !memory.code(start, &mut code) {
        return None;
    }
    match code {
        // mov imm, %r10; call *%r10
        [0x49, 0xba, a, b, c, d, e, f, g, h, 0x41, 0xff, 0xd2] => {
            Some(u64::from_le_bytes([a, b, c, d, e, f, g, h]))
        }
        [.., 0xe8, a, b, c, d] => pc.checked_add_signed(i32::from_le_bytes([a, b, c, d]).into()),
        _ => None,
    }
}

/// How much of the frame there is at an instruction of x86-64.
fn made<M: Memory + ?Sized>(memory: &mut M, pc: u64, piece: CodePiece) -> Option<Made> {
    let mut code = [0; CODE];
    if !memory.code(pc.checked_sub(BEFORE as u64)?, &mut code) {
        return None;
    }
    let (before, code) = code.split_first_chunk::<BEFORE>()?;
    Some(made_at(*before, code, pc < piece.complete))
}

fn made_at(before: [u8; BEFORE], code: &[u8], is_prologue: bool) -> Made {
    match code {
        [POP_FP, ..] => Made::Pushed,
        _ if returns(code) => Made::Nothing,
        _ if !is_prologue => Made::Whole,
        // mov %rbp, disp(%rsp): behind `sub`, where nothing was pushed.
        [0x48, 0x89, 0x6c | 0xac, 0x24, ..] => Made::Unsaved,
        // sub, or mov %rsp, %rbp, behind `push %rbp`; sub behind both.
        [0x48, 0x81 | 0x83, 0xec, ..] | [0x48, 0x8b, 0xec, ..] | [0x48, 0x89, 0xe5, ..] => match before {
            [.., PUSH_FP] | [.., PUSH_FP, 0x48, 0x8b, 0xec] | [.., PUSH_FP, 0x48, 0x89, 0xe5] => Made::Pushed,
            _ => Made::Nothing,
        },
        // The entry barrier, which is behind `sub`: cmpl imm, disp(%r15); a jump; a call.
        [0x41, 0x81, 0x7f, ..] => Made::Whole,
        _ => match before {
            [0x41, 0x81, 0x7f, ..] | [.., 0x74, _] | [.., 0x0f, 0x84, _, _, _, _] => Made::Whole,
            _ => Made::Nothing,
        },
    }
}

/// Whether the instruction makes or leaves the frame: none of the methods that are inlined runs.
pub fn is_entry_or_exit<M: Memory + ?Sized>(memory: &mut M, pc: u64, piece: CodePiece) -> bool {
    let mut code = [0; CODE];
    pc < piece.complete || memory.code(pc, &mut code) && leaves(&code)
}

/// Whether the frame is left by the next instructions: add, or nothing; pop; a return.
pub(super) fn leaves(code: &[u8]) -> bool {
    match code {
        // vzeroupper
        [0xc5, 0xf8, 0x77, rest @ ..] => leaves(rest),
        [0x48, 0x83, 0xc4, _, POP_FP, ..] | [0x48, 0x81, 0xc4, _, _, _, _, POP_FP, ..] | [POP_FP, ..] => true,
        _ => returns(code),
    }
}

pub(super) const PUSH_FP: u8 = 0x55;
pub(super) const POP_FP: u8 = 0x5d;
pub(super) const RETURN: u8 = 0xc3;

/// Whether there is a return, alone or behind instructions of a safepoint poll.
pub(super) fn returns(code: &[u8]) -> bool {
    match code {
        [RETURN, ..] => true,
        // cmp disp(%r15), %rsp
        [0x49, 0x3b, 0xa7, _, _, _, _, rest @ ..] | [0x49, 0x3b, 0x67, _, rest @ ..] => {
            rest.first() == Some(&0x0f) && returns(rest)
        }
        // ja
        [0x0f, 0x87, _, _, _, _, rest @ ..] => rest.first() == Some(&RETURN),
        // test %eax, disp(%rip); test %eax, (%r10)
        [0x85, 0x05, _, _, _, _, rest @ ..] | [0x41, 0x85, 0x02, rest @ ..] => rest.first() == Some(&RETURN),
        // mov disp(%r15), %r10
        [0x4d, 0x8b, 0x97, _, _, _, _, rest @ ..] | [0x4d, 0x8b, 0x57, _, rest @ ..] => {
            rest.first() == Some(&0x41) && returns(rest)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_method_is_known() {
        let at_end = |code: &[u8]| {
            let mut bytes = [0x90; CODE];
            bytes[..code.len()].copy_from_slice(code);
            leaves(&bytes)
        };
        assert!(at_end(&[0x48, 0x83, 0xc4, 0x10, 0x5d, 0x49, 0x3b, 0xa7]));
        assert!(at_end(&[0xc5, 0xf8, 0x77, 0x48, 0x81, 0xc4, 0x10, 1, 0, 0, 0x5d]));
        assert!(at_end(&[0x5d]) && at_end(&[0x0f, 0x87, 1, 0, 0, 0, 0xc3]));
        assert!(!at_end(&[0x48, 0x83, 0xc4, 0x10, 0x58])); // arguments that are dropped
        assert!(!at_end(&[0x0f, 0x87, 1, 0, 0, 0]));
    }

    #[test]
    fn an_instruction_says_how_much_of_the_frame_there_is() {
        let made = |before: [u8; BEFORE], code: &[u8], is_prologue| {
            let mut bytes = [0x90; CODE - BEFORE];
            bytes[..code.len()].copy_from_slice(code);
            made_at(before, &bytes, is_prologue)
        };
        const SUB: [u8; 7] = [0x48, 0x81, 0xec, 0x20, 0, 0, 0];
        const NONE: [u8; BEFORE] = [0x90; BEFORE];
        for (before, code, is_prologue, expected) in [
            (NONE, &[0x89, 0x84, 0x24, 0, 0xc0, 0xfe, 0xff][..], true, Made::Nothing), // the stack bang
            (NONE, &[0x55], true, Made::Nothing),
            (NONE, &SUB, true, Made::Nothing),
            ([0, 0, 0, 0, 0, 0, 0, 0x55], &SUB, true, Made::Pushed),
            ([0, 0, 0, 0, 0, 0, 0, 0x55], &[0x48, 0x8b, 0xec], true, Made::Pushed),
            ([0, 0, 0, 0, 0x55, 0x48, 0x8b, 0xec], &SUB, true, Made::Pushed),
            (NONE, &[0x48, 0x89, 0x6c, 0x24, 0x10], true, Made::Unsaved),
            (NONE, &[0x41, 0x81, 0x7f, 0x20, 1, 0, 0, 0], true, Made::Whole), // the entry barrier
            ([0x41, 0x81, 0x7f, 0x20, 1, 0, 0, 0], &[0x0f, 0x85, 1, 2, 3, 4], true, Made::Whole),
            ([0, 0, 0, 0, 0x3b, 0x46, 0x08, 0], &[0x0f, 0x85, 1, 2, 3, 4], true, Made::Nothing), // another class
            ([0, 0, 0, 0, 0, 0, 0x74, 0x05], &[0xe8, 1, 2, 3, 4], true, Made::Whole),
            (NONE, &[0x48, 0x83, 0xc4, 0x20, 0x5d, 0xc3], false, Made::Whole), // add, pop, ret
            (NONE, &[0x5d, 0xc3], false, Made::Pushed),
            (NONE, &[0xc3], false, Made::Nothing),
            (NONE, &[0x49, 0x3b, 0xa7, 0x38, 3, 0, 0, 0x0f, 0x87, 1, 0, 0, 0, 0xc3], false, Made::Nothing),
            (NONE, &[0x0f, 0x87, 1, 0, 0, 0, 0xc3], false, Made::Nothing),
            (NONE, &[0x0f, 0x87, 1, 0, 0, 0, 0x90], false, Made::Whole), // no poll
            (NONE, &[0x4d, 0x8b, 0x97, 8, 1, 0, 0, 0x41, 0x85, 0x02, 0xc3], false, Made::Nothing),
            (NONE, &[0x41, 0x85, 0x02, 0x90], false, Made::Whole), // a poll in a loop
            (NONE, &[0x85, 0x05, 1, 2, 3, 4, 0xc3], false, Made::Nothing),
        ] {
            assert_eq!(made(before, code, is_prologue), expected, "{before:x?} {code:x?}");
        }
    }
}
