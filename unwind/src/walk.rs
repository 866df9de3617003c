//! From registers to the frames of a stack, by rules.
//!
//! The walk is the same for a thread that is interrupted (its own stack, all
//! registers known) and for one that is blocked (another's stack, pc and sp known).
//! It is bounded in frames, goes strictly upwards within a stack, and says why it stopped.

use crate::arch::Arch;
use crate::expression;
use crate::frames::{EXACT, Frames};
use crate::memory::Memory;
use crate::prologue;
use crate::published::Rules;
use crate::registers::{Registers, of_context};
use crate::rule::{CfaRule, Expression, Extended, Kind, Rule, ValueRule};

/// Frames that a walk follows at most.
pub const MAX_FRAMES: usize = 16_384;
/// How far above the stack pointer a stack of unknown extent may reach.
const UNKNOWN_STACK: u64 = 64 << 20;
/// Code below this address is never valid: the first page is not mapped.
const LOWEST_PC: u64 = 4096;

/// Why a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Stop {
    /// At the thread's outermost frame: the stack is complete.
    Root = 0,
    /// At code without unwind information, whose frame pointer led nowhere.
    NoTable = 1,
    /// The next frame would lie outside of the stack, or could not be read.
    OutOfBounds = 2,
    /// The stack is deeper than [`MAX_FRAMES`].
    TooDeep = 3,
    /// A rule needs the frame pointer, which is not known for a blocked thread.
    FramePointerUnknown = 4,
    /// A rule that this walk does not support, or a register it did not follow.
    Unsupported = 5,
    /// No tables were published.
    NotReady = 6,
}

impl Stop {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Stop; 7] = [
        Stop::Root,
        Stop::NoTable,
        Stop::OutOfBounds,
        Stop::TooDeep,
        Stop::FramePointerUnknown,
        Stop::Unsupported,
        Stop::NotReady,
    ];

    /// The reason with this number; [`Stop::NotReady`] for any other number.
    pub fn from_number(number: u32) -> Stop {
        Stop::ALL.get(number as usize).copied().unwrap_or(Stop::NotReady)
    }

    /// A short text for people.
    pub fn text(self) -> &'static str {
        match self {
            Stop::Root => "complete",
            Stop::NoTable => "no unwind information",
            Stop::OutOfBounds => "out of bounds",
            Stop::TooDeep => "too deep",
            Stop::FramePointerUnknown => "frame pointer unknown",
            Stop::Unsupported => "unsupported rule",
            Stop::NotReady => "no tables yet",
        }
    }
}

/// One frame on the way up.
struct Frame {
    at: Registers,
    /// `pc` is where the thread stands, not a return address.
    exact: bool,
    /// No frame of this stack lies at or above.
    limit: u64,
}

impl Frame {
    fn new(at: Registers, high: u64) -> Frame {
        let limit = if at.sp < high { high } else { at.sp.saturating_add(UNKNOWN_STACK) };
        Frame { at, exact: true, limit }
    }

    /// The address whose rule holds: a return address may already belong to the next function.
    #[inline(always)]
    fn look_up(&self) -> u64 {
        self.at.pc.wrapping_sub(u64::from(!self.exact))
    }

    #[inline(always)]
    fn in_stack(&self, cfa: u64) -> bool {
        (cfa > self.at.sp || cfa == self.at.sp && self.exact) && cfa <= self.limit && cfa & 7 == 0
    }

    /// Goes on to the caller.
    #[inline(always)]
    fn ascend(&mut self, pc: u64, sp: u64, fp: Option<u64>) {
        self.at = Registers { pc, sp, fp, link: None, context: 0 };
        self.exact = false;
    }
}

/// Walks from `start` and pushes each frame's address: the pc (marked [`EXACT`]), then return addresses.
/// `high` is the end of the stack's memory where known, else 0.
#[inline(always)]
pub fn walk<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    start: Registers,
    high: u64,
    frames: &mut Frames<'_>,
) -> Stop {
    let mut frame = Frame::new(start, high);
    for _ in 0..MAX_FRAMES {
        frames.push(frame.at.pc | if frame.exact { EXACT } else { 0 });
        let rule = rules.rule(frame.look_up());
        let cfa = match rule.kind() {
            Kind::Sp => frame.at.sp.wrapping_add(rule.cfa_offset()),
            Kind::Fp if let Some(fp) = frame.at.fp => fp.wrapping_add(rule.cfa_offset()),
            Kind::Signal => {
                // The kernel made this return address: it is the trampoline's first instruction.
                frames.mark_last(EXACT);
                match enter_interrupted::<A, M>(memory, &mut frame) {
                    Ok(()) => continue,
                    Err(stop) => return stop,
                }
            }
            _ => match step_rarely::<A, M>(rules, memory, &mut frame, rule) {
                Ok(()) => continue,
                Err(stop) => return stop,
            },
        };
        if let Err(stop) = ascend::<A, M>(memory, &mut frame, cfa, rule.fp_offset()) {
            return stop;
        }
    }
    Stop::TooDeep
}

/// Leaves a frame whose CFA is known and whose registers were saved as compilers do.
#[inline(always)]
fn ascend<A: Arch, M: Memory>(
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
fn enter_caller<A: Arch>(frame: &mut Frame, pc: u64, cfa: u64, fp: Option<u64>) -> Result<(), Stop> {
    let pc = pc & A::ADDRESS_MASK;
    if pc < LOWEST_PC {
        // Thread entries without unwind information begin their stacks with a zero.
        return Err(if pc == 0 { Stop::Root } else { Stop::OutOfBounds });
    }
    frame.ascend(pc, cfa, fp);
    Ok(())
}

#[cold]
#[inline(never)]
fn step_rarely<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    rule: Rule,
) -> Result<(), Stop> {
    match rule.kind() {
        Kind::End => Err(Stop::Root),
        Kind::Plt => {
            let pushed = frame.at.pc & 15 >= rule.plt_threshold();
            let cfa = frame.at.sp.wrapping_add(if pushed { 16 } else { 8 });
            ascend::<A, M>(memory, frame, cfa, 0)
        }
        Kind::Deref => {
            let fp = frame.at.fp.ok_or(Stop::FramePointerUnknown)?;
            let cfa = memory.word(fp.wrapping_add_signed(rule.deref_offset())).ok_or(Stop::OutOfBounds)?;
            if !frame.in_stack(cfa) {
                return Err(Stop::OutOfBounds);
            }
            let caller_fp = memory.word(fp).ok_or(Stop::OutOfBounds)?;
            let pc = memory.word(cfa.wrapping_sub(8)).ok_or(Stop::OutOfBounds)?;
            enter_caller::<A>(frame, pc, cfa, Some(caller_fp))
        }
        Kind::Fp => {
            let look_up = frame.look_up();
            let cfa =
                prologue::cfa(rules, memory, look_up, frame.at.sp, rule).ok_or(Stop::FramePointerUnknown)?;
            ascend::<A, M>(memory, frame, cfa, rule.fp_offset())
        }
        Kind::Extended => step_extended::<A, M>(rules, memory, frame, rule),
        Kind::None | Kind::Sp | Kind::Signal => step_without_table::<A, M>(rules, memory, frame),
    }
}

/// From the trampoline behind a signal handler to what the signal interrupted.
#[cold]
#[inline(never)]
fn enter_interrupted<A: Arch, M: Memory>(memory: &mut M, frame: &mut Frame) -> Result<(), Stop> {
    let context = frame.at.sp.wrapping_add(A::SIGNAL_CONTEXT);
    let at = Registers::from_context::<A, M>(memory, context).ok_or(Stop::OutOfBounds)?;
    if at.pc < LOWEST_PC && at.pc != 0 || at.sp == 0 {
        return Err(Stop::OutOfBounds);
    }
    // The interrupted code may have had another stack: the limit holds if sp is below it.
    let high = if at.sp > frame.at.sp { frame.limit } else { 0 };
    *frame = Frame::new(at, high);
    Ok(())
}

#[inline(never)]
fn step_extended<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    rule: Rule,
) -> Result<(), Stop> {
    let (Extended { cfa, fp, return_address }, expressions) =
        rules.extended(frame.look_up(), rule).ok_or(Stop::Unsupported)?;
    let at = frame.at;
    let register = |memory: &mut M, number: u8| {
        if number == A::SP {
            Some(at.sp)
        } else if number == A::FP {
            at.fp
        } else if number == A::PC {
            Some(at.pc)
        } else if number == A::RETURN_ADDRESS {
            at.link
        } else if at.context != 0 {
            of_context::<A, M>(memory, at.context, number)
        } else {
            None // callee-saved registers are not followed beyond the interrupted frame
        }
    };
    let bytes = |range: &Expression| {
        let start = range.start as usize;
        expressions.get(start..start + range.length as usize)
    };
    let cfa = match cfa {
        CfaRule::Register(number, offset) => {
            register(memory, *number).map(|value| value.wrapping_add_signed(*offset))
        }
        CfaRule::Expression(range) => {
            bytes(range).and_then(|code| expression::evaluate(code, None, memory, register))
        }
    }
    .ok_or(if at.fp.is_none() { Stop::FramePointerUnknown } else { Stop::Unsupported })?;
    if !frame.in_stack(cfa) {
        return Err(Stop::OutOfBounds);
    }
    let mut value = |rule: &ValueRule, same: Option<u64>| match rule {
        ValueRule::Same => same,
        ValueRule::Undefined => None,
        ValueRule::AtCfa(offset) => memory.word(cfa.wrapping_add_signed(*offset)),
        ValueRule::Cfa(offset) => Some(cfa.wrapping_add_signed(*offset)),
        ValueRule::Register(number) => register(memory, *number),
        ValueRule::At(range) => bytes(range)
            .and_then(|code| expression::evaluate(code, Some(cfa), memory, register))
            .and_then(|address| memory.word(address)),
        ValueRule::Value(range) => {
            bytes(range).and_then(|code| expression::evaluate(code, Some(cfa), memory, register))
        }
    };
    if *return_address == ValueRule::Undefined {
        return Err(Stop::Root);
    }
    let pc = value(return_address, at.link).ok_or(Stop::Unsupported)?;
    let fp = value(fp, at.fp);
    enter_caller::<A>(frame, pc, cfa, fp)
}

/// Code without unwind information (made at run time, or hand-written): follow
/// the frame pointer if what it points to looks like a frame; else, for the
/// innermost frame, take the word on top of the stack as the return address.
#[inline(never)]
fn step_without_table<A: Arch, M: Memory>(
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
        && rules.snapshot.is_executable(pc)
    {
        let caller_fp = memory.word(fp).ok_or(Stop::OutOfBounds)?;
        frame.ascend(pc, fp + 16, Some(caller_fp));
        return Ok(());
    }
    if frame.exact {
        let (pc, caller_sp) =
            if A::CALL_PUSHES { (memory.word(sp), sp.wrapping_add(8)) } else { (frame.at.link, sp) };
        if let Some(pc) = pc
            && rules.snapshot.is_executable(pc & A::ADDRESS_MASK)
        {
            frame.ascend(pc & A::ADDRESS_MASK, caller_sp, frame.at.fp);
            return Ok(());
        }
    } else if frame.at.fp == Some(0) {
        return Err(Stop::Root); // the psABI's mark of the outermost frame
    }
    Err(Stop::NoTable)
}

#[cfg(test)]
mod tests;
