//! One step, from a frame to its caller.

use super::callee_saved::Known;
use super::workspace::Scratch;
use super::{Frame, Stop, extended, java, restorer};
use crate::arch::Arch;
use crate::memory::Memory;
use crate::prologue;
use crate::published::Rules;
use crate::registers::Registers;
use crate::rule::{Kind, Rule};

/// Addresses at which code can be. The first page is never mapped. What is above is the kernel's
/// half, on all processors with any number of page table levels.
pub(super) const CODE: core::ops::Range<u64> = 4096..1 << 56;

/// Why a step to the caller failed.
#[derive(Clone, Copy)]
pub(super) enum StepError {
    Stop(Stop),
    /// The step needs the value of this register, by DWARF number.
    Needs(u8),
    /// The frame is a signal's, behind which another stack may begin.
    Signal,
}

impl From<Stop> for StepError {
    fn from(stop: Stop) -> StepError {
        StepError::Stop(stop)
    }
}

/// Steps to the caller by one of the usual rules; `false`: `rule` is another one. Not inlined. Nor
/// is what [`unwind_fast`] calls beside it: stack frames of calls that follow one another take the
/// same room.
#[inline(never)]
pub(super) fn step_fast<A: Arch, M: Memory + ?Sized>(
    memory: &mut M,
    frame: &mut Frame,
    rule: Rule,
) -> Result<bool, Stop> {
    match cfa(frame, rule) {
        Some(cfa) => step_to_caller::<A, M>(memory, frame, cfa, rule.fp_offset()).map(|()| true),
        None => Ok(false),
    }
}

/// The CFA by the rules that nearly all code has.
#[inline(always)]
fn cfa(frame: &Frame, rule: Rule) -> Option<u64> {
    match rule.kind() {
        Kind::Sp => Some(frame.at.sp.wrapping_add(rule.cfa_offset())),
        Kind::Fp => frame.at.fp.map(|fp| fp.wrapping_add(rule.cfa_offset())),
        _ => None,
    }
}

/// Repeats a step that the walk has made before.
#[inline(always)]
pub(super) fn step<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    known: Known<'_>,
    scratch: &mut Scratch,
) -> Result<(), StepError> {
    let rule = rules.rule(frame.look_up());
    match cfa(frame, rule) {
        Some(cfa) => Ok(step_to_caller::<A, M>(memory, frame, cfa, rule.fp_offset())?),
        None => step_rare::<A, M>(rules, memory, frame, rule, known, scratch),
    }
}

/// Steps to the caller by one of the rarer rules. Inlined: the two calls then begin less deep.
#[inline(always)]
pub(super) fn step_rare<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    rule: Rule,
    known: Known<'_>,
    scratch: &mut Scratch,
) -> Result<(), StepError> {
    if rule.kind() == Kind::Extended {
        extended::step::<A, M>(rules, memory, frame, rule, known, scratch)
    } else {
        step_special::<A, M>(rules, memory, frame, rule)
    }
}

/// Steps to the caller of a frame whose CFA is known and that saved registers as compilers do.
#[inline(always)]
fn step_to_caller<A: Arch, M: Memory + ?Sized>(
    memory: &mut M,
    frame: &mut Frame,
    cfa: u64,
    fp_offset: i64,
) -> Result<(), Stop> {
    if !frame.in_stack(cfa) {
        return Err(Stop::OutOfBounds);
    }
    let mut fp = frame.at.fp;
    let saved = cfa.wrapping_add_signed(fp_offset);
    if fp_offset != 0 {
        fp = Some(memory.word(saved).ok_or(Stop::OutOfBounds)?);
    }
    let pc = if A::CALL_PUSHES {
        memory.word(cfa.wrapping_sub(8)).ok_or(Stop::OutOfBounds)?
    } else if fp_offset != 0 {
        memory.word(saved.wrapping_add(8)).ok_or(Stop::OutOfBounds)? // the frame record's second word
    } else {
        frame.at.link.ok_or(Stop::Unsupported)?
    };
    enter_caller::<A>(frame, pc, cfa, fp)
}

#[inline(always)]
pub(super) fn enter_caller<A: Arch>(
    frame: &mut Frame,
    pc: u64,
    cfa: u64,
    fp: Option<u64>,
) -> Result<(), Stop> {
    let pc = pc & A::ADDRESS_MASK;
    if !CODE.contains(&pc) {
        // Thread entries without unwind information begin their stacks with a zero.
        return Err(if pc == 0 { Stop::Root } else { Stop::OutOfBounds });
    }
    frame.set_caller(pc, cfa, fp);
    Ok(())
}

#[cold]
#[inline(never)]
fn step_special<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    rule: Rule,
) -> Result<(), StepError> {
    match rule.kind() {
        Kind::End if frame.is_outermost(rules, rule) => Err(Stop::Root.into()),
        Kind::End if rule == Rule::OTHER_STACK => Ok(step_to_other_stack::<A, M>(memory, frame)?),
        Kind::Plt => {
            let pushed = frame.at.pc & 15 >= rule.plt_threshold();
            let cfa = frame.at.sp.wrapping_add(if pushed { 16 } else { 8 });
            Ok(step_to_caller::<A, M>(memory, frame, cfa, 0)?)
        }
        Kind::Deref => {
            let fp = frame.at.fp.ok_or(Stop::FramePointerUnknown)?;
            let cfa = memory.word(fp.wrapping_add_signed(rule.deref_offset())).ok_or(Stop::OutOfBounds)?;
            if !frame.in_stack(cfa) {
                return Err(Stop::OutOfBounds.into());
            }
            let caller_fp = memory.word(fp).ok_or(Stop::OutOfBounds)?;
            let pc = memory.word(cfa.wrapping_sub(8)).ok_or(Stop::OutOfBounds)?;
            Ok(enter_caller::<A>(frame, pc, cfa, Some(caller_fp))?)
        }
        Kind::Fp => {
            let look_up = frame.look_up();
            let cfa =
                prologue::cfa(rules, memory, look_up, frame.at.sp, rule).ok_or(Stop::FramePointerUnknown)?;
            Ok(step_to_caller::<A, M>(memory, frame, cfa, rule.fp_offset())?)
        }
        Kind::Signal => Err(StepError::Signal),
        Kind::None | Kind::Sp | Kind::End | Kind::Extended => {
            let of_java = rules.code_cache.filter(|cache| cache.may_have(frame.look_up()));
            match of_java.and_then(|cache| java::step::<A, M>(rules, memory, frame, cache)) {
                // No stack begins with code of Java: a return address of 0 is none.
                Some(stepped) => Ok(stepped.map_err(|_| Stop::OutOfBounds)?),
                None if restorer::is_here::<A, M>(memory, frame) => Err(StepError::Signal),
                None => Ok(step_without_table::<A, M>(rules, memory, frame)?),
            }
        }
    }
}

/// Steps to the caller whose frame pointer is known, wherever its stack is.
#[cold]
#[inline(never)]
fn step_to_other_stack<A: Arch, M: Memory + ?Sized>(memory: &mut M, frame: &mut Frame) -> Result<(), Stop> {
    let fp = frame.at.fp.ok_or(Stop::FramePointerUnknown)?;
    let word = |memory: &mut M, at: u64| memory.word(at).ok_or(Stop::OutOfBounds);
    let (caller_fp, pc) = (word(memory, fp)?, word(memory, fp.wrapping_add(8))?);
    let cfa = fp.wrapping_add(16);
    enter_caller::<A>(frame, pc, cfa, Some(caller_fp))?;
    frame.begin_other_stack();
    Ok(())
}

/// Steps from the trampoline behind a signal handler to the frame that the signal interrupted.
#[cold]
#[inline(never)]
pub(super) fn enter_interrupted<A: Arch, M: Memory + ?Sized>(
    memory: &mut M,
    frame: &mut Frame,
) -> Result<(), Stop> {
    let context = frame.at.sp.wrapping_add(A::SIGNAL_CONTEXT);
    let at = Registers::from_context::<A, M>(memory, context).ok_or(Stop::OutOfBounds)?;
    if !CODE.contains(&at.pc) && at.pc != 0 || at.sp == 0 {
        return Err(Stop::OutOfBounds);
    }
    // The interrupted code may have had another stack: the limit holds if sp is still below it.
    let high = if at.sp > frame.at.sp { frame.limit } else { 0 };
    *frame = Frame::new(at, high);
    Ok(())
}

/// Whether `pc`, which nothing but its place on the stack says to be one, may be a return address.
/// A function pointer is none: it leads to a first instruction, and behind no call.
fn may_return_to<A: Arch, M: Memory + ?Sized>(rules: &Rules<'_>, memory: &mut M, pc: u64) -> bool {
    let rule = rules.rule(pc);
    let is_first = A::CALL_PUSHES && rule.kind() == Kind::Sp && rule.cfa_offset() == 8;
    rules.snapshot.is_executable(pc)
        && !(is_first && prologue::follows_call(rules, memory, pc) == Some(false))
}

/// Whether nothing was pushed since the call: where no code can be, as at a null pointer that was
/// called, and in stubs of the PLT by lld.
fn has_no_frame<A: Arch, M: Memory + ?Sized>(rules: &Rules<'_>, memory: &mut M, frame: &Frame) -> bool {
    let pc = frame.at.pc;
    let is_stub = |memory: &mut M| rules.snapshot.object(pc).is_some() && prologue::is_plt_stub(memory, pc);
    A::CALL_PUSHES
        && frame.exact
        && (!CODE.contains(&pc) || is_stub(memory))
        && memory
            .word(frame.at.sp)
            .is_some_and(|top| prologue::follows_call(rules, memory, top) == Some(true))
}

/// Code without unwind information: JIT code, or hand-written. Follows the frame pointer if it
/// points to what looks like a frame, and the code may have one. Else, for the innermost frame,
/// takes the word on top of the stack (or the link register) as the return address.
#[inline(never)]
fn step_without_table<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
) -> Result<(), Stop> {
    let (sp, limit) = (frame.at.sp, frame.limit);
    if let Some(fp) = frame.at.fp
        && fp >= sp
        && fp & 7 == 0
        && fp.checked_add(16).is_some_and(|end| end <= limit)
        && let Some(pc) = memory.word(fp + 8).map(|pc| pc & A::ADDRESS_MASK)
        && may_return_to::<A, M>(rules, memory, pc)
        && !has_no_frame::<A, M>(rules, memory, frame)
    {
        let caller_fp = memory.word(fp).ok_or(Stop::OutOfBounds)?;
        frame.set_caller(pc, fp + 16, Some(caller_fp));
        return Ok(());
    }
    if frame.exact {
        let (pc, caller_sp) =
            if A::CALL_PUSHES { (memory.word(sp), sp.wrapping_add(8)) } else { (frame.at.link, sp) };
        if let Some(pc) = pc.map(|pc| pc & A::ADDRESS_MASK)
            && may_return_to::<A, M>(rules, memory, pc)
        {
            frame.set_caller(pc, caller_sp, frame.at.fp);
            return Ok(());
        }
    }
    // A frame pointer of 0 marks the outermost frame (psABI), but hand-written code uses the
    // register for other things.
    Err(Stop::NoTable)
}
