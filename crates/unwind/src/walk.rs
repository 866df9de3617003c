//! From registers to the frames of a stack, by rules.
//!
//! The walk is the same for a thread that is interrupted (its own stack, all
//! registers known) and for one that is blocked (another's stack, pc and sp known).
//! It is bounded in frames, goes strictly upwards within a stack, and says why it stopped.

mod callee_saved;
mod code_ahead;
mod extended;
mod frame;
mod java;
mod java_stubs;
mod moved_sp;
mod restorer;
mod stack_cache;
mod steps;
mod stop;
mod workspace;

pub use java::is_entry_or_exit;
pub use stop::Stop;
pub use workspace::Workspace;

use crate::arch::{self, Arch};
use crate::frame_runs::FrameRuns;
use crate::frames::{EXACT, Frames};
use crate::memory::Memory;
use crate::published::Rules;
use crate::registers::Registers;
use crate::rule::{Kind, Rule};
use core::ffi::c_void;
use frame::Frame;
use stack_cache::{CachedRules, RuleSource, Step, UncachedRules};
use steps::{StepError, enter_interrupted, step_fast, step_rare};
use workspace::WalkState;

/// Frames that a walk follows at most.
pub const MAX_FRAMES: usize = 16_384;
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
    // SAFETY: started in the line above.
    let (state, runs, _) = unsafe { workspace.parts() };
    let mut tables = UncachedRules(rules);
    loop {
        let outcome = resume_fast::<A, M, _>(&mut tables, memory, state, frames)
            .and_then(|rule| step_slow::<A>(rules, memory, (state, runs), rule, frames).map(drop));
        if let Err(stop) = outcome {
            return stop;
        }
    }
}

/// As [`walk`], from the `ucontext` at `context`. The registers go straight to the workspace. From
/// the first step on that needs more than a few hundred bytes of stack, it runs on the workspace's.
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
    match begin_fast::<A, M>(rules, memory, context, high, frames, workspace) {
        // SAFETY: `begin_fast` has started the workspace where it gives a rule. No signal handler
        // runs, says the caller.
        Ok(rule) => unsafe { walk_slowly::<A, M>(rules, memory, frames, workspace, rule) },
        Err(stop) => stop,
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

/// Walks on, on the workspace's stack, from the frame whose rule is `rule`.
///
/// # Safety
/// The workspace was started. No signal handler runs before this returns.
#[cold]
#[inline(never)]
unsafe fn walk_slowly<A: Arch, M: Memory>(
    rules: &Rules<'_>,
    memory: &mut M,
    frames: &mut Frames<'_>,
    workspace: &mut Workspace,
    rule: Rule,
) -> Stop {
    let top = workspace.stack_top();
    let mut job = SlowWalk { rules, memory, workspace, frames, rule, stop: Stop::NotReady };
    // SAFETY: it has these very types. The stack is the workspace's own, and many times as large as
    // what these steps use. Nothing else runs there, says the caller.
    unsafe { arch::call_on_stack(top, walk_on_own_stack::<A, M>, (&raw mut job).cast()) };
    job.stop
}

/// Arguments and result of [`walk_on_own_stack`].
struct SlowWalk<'w, 'r, 'f, M> {
    rules: &'w Rules<'r>,
    memory: &'w mut M,
    workspace: &'w mut Workspace,
    frames: &'w mut Frames<'f>,
    rule: Rule,
    stop: Stop,
}

/// # Safety
/// `job` is the address of a [`SlowWalk`] with this memory, and its workspace was started.
unsafe extern "C" fn walk_on_own_stack<A: Arch, M: Memory>(job: *mut c_void) {
    // SAFETY: says the caller.
    let SlowWalk { rules, memory, workspace, frames, rule, stop } =
        unsafe { &mut *job.cast::<SlowWalk<'_, '_, '_, M>>() };
    // SAFETY: says the caller.
    let (state, runs, stack_cache) = unsafe { workspace.parts() };
    *stop = loop {
        let outcome = step_slow::<A>(rules, *memory, (state, runs), *rule, frames).and_then(|step| {
            step.into_iter().for_each(|step| stack_cache.add(step));
            resume_fast::<A, M, _>(&mut CachedRules::new(rules, stack_cache), *memory, state, frames)
        });
        match outcome {
            Ok(next) => *rule = next,
            Err(stop) => break stop,
        }
    };
}

/// Steps from the current frame to its caller by `rule`, one of the rarer ones. Returns the step if
/// it was made by a usual rule, which the code itself has said. There is one copy of it and of what
/// it calls, for every memory: most of the code is here, and little of the time.
#[inline(never)]
fn step_slow<A: Arch>(
    rules: &Rules<'_>,
    memory: &mut dyn Memory,
    (state, runs): (&mut WalkState, &mut FrameRuns),
    rule: Rule,
    frames: &mut Frames<'_>,
) -> Result<Option<Step>, Stop> {
    // The code has no table, or seems to be padding.
    let is_undescribed = matches!(rule.kind(), Kind::None | Kind::End);
    let pc = state.frame.look_up();
    let cache = rules.code_cache.filter(|_| is_undescribed);
    let is_interpreter = cache.is_some_and(|cache| cache.is_interpreter(pc));
    let of_compiled = cache.filter(|_| !is_interpreter && !state.frame.exact);
    // A method that calls something else may have moved its stack pointer for that.
    if let Some(cache) = of_compiled.filter(|cache| cache.may_have(frames.before_last()))
        && let compiled = state.compiled.rule(cache, memory, pc)
        && compiled != Rule::NONE
    {
        let step = Step::of(&state.frame, compiled);
        step_fast::<A, _>(memory, &mut state.frame, compiled)?;
        state.number += 1;
        return Ok(Some(step));
    }
    let frame_pointer = state.frame.at.fp.filter(|_| is_undescribed);
    if let Some(cache) = of_compiled
        && let Some(pc) = cache.original_pc(memory, state.frame.at.pc, state.frame.at.sp)
    {
        frames.set_last(pc);
    }
    // Each round recovers one more register, and there are not many.
    loop {
        let WalkState { frame, number, origin, scratch, .. } = &mut *state;
        match step_rare::<A, _>(rules, memory, frame, rule, origin.known(*number), scratch) {
            Ok(()) => break,
            Err(StepError::Stop(stop)) => return Err(stop),
            Err(StepError::Needs(register)) => {
                if !callee_saved::recover::<A, _>(rules, memory, state, register) {
                    return Err(Stop::Unsupported);
                }
            }
            Err(StepError::Signal) => {
                // The kernel made this return address: it is the trampoline's first instruction.
                frames.mark_last(EXACT);
                enter_interrupted::<A, _>(memory, frame)?;
                origin.move_to(frame, *number + 1);
                break;
            }
        }
    }
    if let Some(fp) = frame_pointer
        && (is_interpreter || state.frame.at.sp == fp.wrapping_add(16))
    {
        runs.note(state.number, fp);
    }
    state.number += 1;
    Ok(None)
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

#[cfg(test)]
mod tests;
