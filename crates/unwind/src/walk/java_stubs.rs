//! Steps from HotSpot's stubs, most of which have no frame.

use super::java::{PUSH_FP, RETURN, call_target, may_be_code};
use super::steps::enter_caller;
use super::{Frame, Stop};
use crate::arch::Arch;
use crate::code_cache::CodeCache;
use crate::memory::Memory;
use crate::published::Rules;

/// From a stub that has no frame at this instruction. What lies on top of the stack is the return
/// address if the call before it goes to that stub; it may be what an earlier call left there.
pub(super) fn without_frame<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
) -> Option<Result<(), Stop>> {
    let (pc, sp, fp) = (frame.at.pc, frame.at.sp, frame.at.fp);
    let top = memory.word(sp).filter(|_| A::CALL_PUSHES)?;
    if let Some(entry) = called_stub(rules, memory, cache, top) {
        let [at_entry, at_pc] = [code_at(memory, entry)?, code_at(memory, pc)?];
        // ret, with vzeroupper before it or not
        let ends = matches!(at_pc, [RETURN, ..] | [0xc5, 0xf8, 0x77, RETURN]);
        let has_frame = makes_frame(at_entry) && pc != entry && !ends;
        return (!has_frame).then(|| enter_caller::<A>(frame, top, sp + 8, fp));
    }
    let under = memory.word(sp.checked_add(8)?)?;
    let is_pushed = called_stub(rules, memory, cache, under)? == pc.checked_sub(1)?;
    is_pushed.then(|| enter_caller::<A>(frame, under, sp + 16, Some(top)))
}

/// The stub to which the call before a return address goes: of the code cache, or of the caller,
/// from which others are jumped to.
fn called_stub<M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    cache: &CodeCache,
    pc: u64,
) -> Option<u64> {
    let target = call_target(rules, memory, cache, pc)?;
    let piece = cache.piece(memory, target)?;
    (piece.frame == 0 || (piece.start..piece.end).contains(&pc)).then_some(target)
}

fn code_at<M: Memory + ?Sized>(memory: &mut M, pc: u64) -> Option<[u8; 4]> {
    let mut code = [0; 4];
    memory.code(pc, &mut code).then_some(code)
}

/// Whether a stub begins with `push %rbp; mov %rsp, %rbp`.
fn makes_frame(code: [u8; 4]) -> bool {
    matches!(code, [PUSH_FP, 0x48, 0x8b, 0xec] | [PUSH_FP, 0x48, 0x89, 0xe5])
}

/// From the stub by which a method asks whether it may be entered, which has a mark between the
/// frame pointer and the return address.
pub(super) fn entry_barrier<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    cache: &CodeCache,
) -> Option<Result<(), Stop>> {
    const MARK: u64 = u64::MAX;
    let fp = frame.at.fp.filter(|fp| *fp >= frame.at.sp && fp % 8 == 0)?;
    let (cfa, mark) = (fp.checked_add(24)?, memory.word(fp.checked_add(8)?)?);
    let pc = memory.word(fp.checked_add(16)?)? & A::ADDRESS_MASK;
    let caller_fp = memory.word(fp)?;
    (mark == MARK && frame.in_stack(cfa) && may_be_code(rules, cache, pc))
        .then(|| enter_caller::<A>(frame, pc, cfa, Some(caller_fp)))
}
