//! From registers to the frames of a stack, by rules.
//!
//! The walk is the same for a thread that is interrupted (its own stack, all
//! registers known) and for one that is blocked (another's stack, pc and sp known).
//! It is bounded in frames, goes strictly upwards within a stack, and says why it stopped.

mod callee_saved;
mod extended;
mod stack_cache;
mod workspace;

pub use workspace::Workspace;

use crate::arch::{self, Arch};
use crate::frame_runs::FrameRuns;
use crate::frames::{EXACT, Frames};
use crate::memory::Memory;
use crate::prologue;
use crate::published::Rules;
use crate::registers::Registers;
use crate::rule::{Kind, Rule};
use callee_saved::Known;
use core::ffi::c_void;
use stack_cache::{CachedRules, RuleSource, UncachedRules};
use workspace::{Scratch, WalkState};

/// Frames that a walk follows at most.
pub const MAX_FRAMES: usize = 16_384;
/// How far above the stack pointer a stack of unknown extent may reach.
const UNKNOWN_STACK: u64 = 64 << 20;
/// Addresses at which code can be. The first page is never mapped. What is above is the kernel's
/// half, on all processors with any number of page table levels.
const CODE: core::ops::Range<u64> = 4096..1 << 56;

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

/// Why a step to the caller failed.
#[derive(Clone, Copy)]
enum StepError {
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

/// One frame on the way up.
#[derive(Clone, Copy)]
struct Frame {
    at: Registers,
    /// `pc` is where the code was interrupted, not a return address.
    exact: bool,
    /// The stack's upper end: no CFA is above it.
    limit: u64,
}

impl Frame {
    fn new(at: Registers, high: u64) -> Frame {
        let limit = if at.sp < high { high } else { at.sp.saturating_add(UNKNOWN_STACK) };
        Frame { at, exact: true, limit }
    }

    /// The address whose rule holds. Of a return address it is the byte before: the return address
    /// may already belong to the next function.
    #[inline(always)]
    fn look_up(&self) -> u64 {
        self.at.pc.wrapping_sub(u64::from(!self.exact))
    }

    #[inline(always)]
    fn is_outermost(&self, rules: &Rules<'_>, rule: Rule) -> bool {
        rule.kind() == Kind::End && (rule != Rule::PADDING || self.was_begun_by_hand(rules))
    }

    /// Whether the return address is the first byte behind padding: a stack was begun with it. If
    /// it is still in the padding, that may be an undescribed small function that does make calls.
    #[cold]
    #[inline(never)]
    fn was_begun_by_hand(&self, rules: &Rules<'_>) -> bool {
        !self.exact && rules.rule(self.at.pc) != Rule::PADDING
    }

    /// Whether the thread may be at the first instruction of its function, by the function's
    /// `rule`.
    #[inline(always)]
    fn is_first_instruction(&self, rule: Rule) -> bool {
        self.exact && self.at.pc & 15 == 0 && rule.kind() == Kind::Sp && rule.cfa_offset() == 8
    }

    /// Whether the function that was just left at its first instruction was not called from here. A
    /// signal handler may have put the interrupted pc on the stack and resumed in that function, as
    /// Go's does to preempt a goroutine. Reads code only where the answer can matter.
    #[cold]
    #[inline(never)]
    fn was_not_left_by_a_call<M: Memory>(&self, rules: &Rules<'_>, memory: &mut M) -> bool {
        let pc = self.at.pc;
        let may_begin = pc & 15 == 0 || rules.rule(pc) != rules.rule(pc.wrapping_sub(1));
        may_begin && prologue::follows_call(rules, memory, pc) == Some(false)
    }

    #[inline(always)]
    fn in_stack(&self, cfa: u64) -> bool {
        (cfa > self.at.sp || cfa == self.at.sp && self.exact) && cfa <= self.limit && cfa & 7 == 0
    }

    /// Makes the caller the current frame.
    #[inline(always)]
    fn set_caller(&mut self, pc: u64, sp: u64, fp: Option<u64>) {
        self.at = Registers { pc, sp, fp, link: None, context: 0 };
        self.exact = false;
    }
}

/// Walks from `start` and pushes each frame's address: the pc (marked [`EXACT`]), then return
/// addresses. `high` is the end of the stack's memory where known, else 0.
#[inline(always)]
pub fn walk<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    start: Registers,
    high: u64,
    frames: &mut Frames<'_>,
    workspace: &mut Workspace,
) -> Stop {
    workspace.begin(Frame::new(start, high));
    // SAFETY: begun in the line above.
    let (state, runs, ..) = unsafe { workspace.parts() };
    let mut tables = UncachedRules(rules);
    loop {
        let outcome = resume_fast::<A, M, _>(&mut tables, memory, state, frames)
            .and_then(|rule| step_slow::<A, M>(rules, memory, (state, runs), rule, frames));
        if let Err(stop) = outcome {
            return stop;
        }
    }
}

/// As [`walk`], from the `ucontext` at `context`. The registers go straight to the workspace. Steps
/// that need more than a few hundred bytes of stack run on the workspace's own.
///
/// # Safety
/// No signal handler runs before this returns.
#[inline(always)]
pub unsafe fn walk_interrupted<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    context: u64,
    high: u64,
    frames: &mut Frames<'_>,
    workspace: &mut Workspace,
) -> Stop {
    let mut rule = match begin_fast::<A, M>(rules, memory, context, high, frames, workspace) {
        Ok(rule) => rule,
        Err(stop) => return stop,
    };
    // SAFETY: `begin_fast` has begun it where it gives a rule.
    let (state, runs, stack_cache, top) = unsafe { workspace.parts() };
    loop {
        let mut job = SlowStep { rules, memory, state, runs, frames, rule, outcome: Ok(()) };
        // SAFETY: the job has these very types. The stack is the workspace's own, and many times as
        // large as what these steps use. No signal handler runs, says the caller.
        unsafe { arch::call_on_stack(top, step_on_own_stack::<A, M>, (&raw mut job).cast()) };
        let outcome = job.outcome;
        match outcome.and_then(|()| {
            resume_fast::<A, M, _>(&mut CachedRules::new(rules, stack_cache), memory, state, frames)
        }) {
            Ok(next) => rule = next,
            Err(stop) => return stop,
        }
    }
}

/// The first part of a walk, and mostly all of it: up to the first frame with a rarer rule. The
/// workspace's state is written only then: its memory is not in this processor's caches.
#[inline(never)]
fn begin_fast<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    context: u64,
    high: u64,
    frames: &mut Frames<'_>,
    workspace: &mut Workspace,
) -> Result<Rule, Stop> {
    let start = Registers::from_context::<A, M>(memory, context).ok_or(Stop::OutOfBounds)?;
    let (frame, stack_cache) = workspace.start(Frame::new(start, high));
    stack_cache.begin(rules.cache.epoch());
    let mut source = CachedRules::new(rules, stack_cache);
    let (rule, number) = unwind_fast::<A, M, _>(&mut source, memory, frame, 0, frames)?;
    // SAFETY: started above.
    unsafe { workspace.begin_at::<A, M>(memory, context, high, number) }.ok_or(Stop::OutOfBounds)?;
    Ok(rule)
}

/// Arguments and result of [`step_slow`].
struct SlowStep<'j, 'r, 'f, M> {
    rules: &'j Rules<'r>,
    memory: &'j mut M,
    state: &'j mut WalkState,
    runs: &'j mut FrameRuns,
    frames: &'j mut Frames<'f>,
    rule: Rule,
    outcome: Result<(), Stop>,
}

/// # Safety
/// `job` is the address of a [`SlowStep`] with this memory.
unsafe extern "C" fn step_on_own_stack<A: Arch, M: Memory>(job: *mut c_void) {
    // SAFETY: says the caller.
    let job = unsafe { &mut *job.cast::<SlowStep<'_, '_, '_, M>>() };
    job.outcome = step_slow::<A, M>(job.rules, job.memory, (job.state, job.runs), job.rule, job.frames);
}

/// Steps from the current frame to its caller by `rule`, one of the rarer ones.
#[inline(never)]
fn step_slow<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    (state, runs): (&mut WalkState, &mut FrameRuns),
    rule: Rule,
    frames: &mut Frames<'_>,
) -> Result<(), Stop> {
    // The code has no table, or seems to be padding.
    let is_undescribed = matches!(rule.kind(), Kind::None | Kind::End);
    let frame_pointer = state.frame.at.fp.filter(|_| is_undescribed);
    // Each round recovers one more register, and there are not many.
    loop {
        let WalkState { frame, number, origin, scratch, .. } = &mut *state;
        match step_rare::<A, M>(rules, memory, frame, rule, origin.known(*number), scratch) {
            Ok(()) => break,
            Err(StepError::Stop(stop)) => return Err(stop),
            Err(StepError::Needs(register)) => {
                if !callee_saved::recover::<A, M>(rules, memory, state, register) {
                    return Err(Stop::Unsupported);
                }
            }
            Err(StepError::Signal) => {
                // The kernel made this return address: it is the trampoline's first instruction.
                frames.mark_last(EXACT);
                enter_interrupted::<A, M>(memory, frame)?;
                origin.move_to(frame, *number + 1);
                break;
            }
        }
    }
    if let Some(fp) = frame_pointer
        && state.frame.at.sp == fp.wrapping_add(16)
    {
        runs.note(state.number, fp);
    }
    state.number += 1;
    Ok(())
}

/// Steps to callers as long as frames have the usual rules; returns the first other rule.
#[inline(never)]
fn resume_fast<A: Arch, M: Memory, L: RuleSource>(
    source: &mut L,
    memory: &mut M,
    state: &mut WalkState,
    frames: &mut Frames<'_>,
) -> Result<Rule, Stop> {
    // The frame is not copied: a copy takes an eighth of the stack that a handler may need.
    let (rule, number) = unwind_fast::<A, M, L>(source, memory, &mut state.frame, state.number, frames)?;
    state.number = number;
    Ok(rule)
}

/// As [`resume_fast`]; also returns the number of the frame whose rule it is.
#[inline(always)]
fn unwind_fast<A: Arch, M: Memory, L: RuleSource>(
    source: &mut L,
    memory: &mut M,
    frame: &mut Frame,
    number: usize,
    frames: &mut Frames<'_>,
) -> Result<(Rule, usize), Stop> {
    let mut number = number;
    while number < MAX_FRAMES {
        number += source.replay::<A>(memory.plain(), frame, frames);
        frames.push(frame.at.pc | if frame.exact { EXACT } else { 0 });
        let rule = source.rule(frame);
        let is_first_instruction = A::CALL_PUSHES && frame.is_first_instruction(rule);
        if !step_fast::<A, M>(memory, frame, rule)? {
            return if frame.is_outermost(source.rules(), rule) {
                Err(Stop::Root)
            } else {
                Ok((rule, number))
            };
        }
        if is_first_instruction {
            frame.exact = frame.was_not_left_by_a_call(source.rules(), memory);
        }
        number += 1;
    }
    Err(Stop::TooDeep)
}

/// Steps to the caller by one of the usual rules; `false`: `rule` is another one. Not inlined. Nor
/// is what [`unwind_fast`] calls beside it: stack frames of calls that follow one another take the
/// same room.
#[inline(never)]
fn step_fast<A: Arch, M: Memory>(memory: &mut M, frame: &mut Frame, rule: Rule) -> Result<bool, Stop> {
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
fn step<A: Arch, M: Memory>(
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
fn step_rare<A: Arch, M: Memory>(
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
fn step_to_caller<A: Arch, M: Memory>(
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
    if !CODE.contains(&pc) {
        // Thread entries without unwind information begin their stacks with a zero.
        return Err(if pc == 0 { Stop::Root } else { Stop::OutOfBounds });
    }
    frame.set_caller(pc, cfa, fp);
    Ok(())
}

#[cold]
#[inline(never)]
fn step_special<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    rule: Rule,
) -> Result<(), StepError> {
    match rule.kind() {
        Kind::End if frame.is_outermost(rules, rule) => Err(Stop::Root.into()),
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
            Ok(step_without_table::<A, M>(rules, memory, frame)?)
        }
    }
}

/// Steps from the trampoline behind a signal handler to the frame that the signal interrupted.
#[cold]
#[inline(never)]
fn enter_interrupted<A: Arch, M: Memory>(memory: &mut M, frame: &mut Frame) -> Result<(), Stop> {
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

/// Code without unwind information: JIT code, or hand-written. Follows the frame pointer if it
/// points to what looks like a frame. Else, for the innermost frame, takes the word on top of the
/// stack (or the link register) as the return address.
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
        frame.set_caller(pc, fp + 16, Some(caller_fp));
        return Ok(());
    }
    if frame.exact {
        let (pc, caller_sp) =
            if A::CALL_PUSHES { (memory.word(sp), sp.wrapping_add(8)) } else { (frame.at.link, sp) };
        if let Some(pc) = pc
            && rules.snapshot.is_executable(pc & A::ADDRESS_MASK)
        {
            frame.set_caller(pc & A::ADDRESS_MASK, caller_sp, frame.at.fp);
            return Ok(());
        }
    }
    // A frame pointer of 0 marks the outermost frame (psABI), but hand-written code uses the
    // register for other things.
    Err(Stop::NoTable)
}

#[cfg(test)]
mod tests;
