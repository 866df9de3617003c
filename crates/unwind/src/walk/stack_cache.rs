//! The stack cache: the steps of the last walk, in the order of the stack.
//!
//! Observation: most frames of a stack were there at the sample before, too. For each frame a walk
//! makes two reads, one after the other: the pc from the stack, then its rule. The program has
//! pushed that memory out of the processor's caches meanwhile. Idea: the steps of the last walk are
//! kept in one array. As long as each one is for the very frame that the walk is at, all addresses
//! follow from the steps alone. So the processor reads for many frames at once, and there is next
//! to nothing to compute. Assumption: a step counts only for its pc and until the rule cache is
//! cleared. So the stack cache changes how fast a walk is, and not where it leads.

use super::Frame;
use super::steps::CODE;
use crate::arch::Arch;
use crate::frames::{BEFORE_ELIDED, Frames};
use crate::memory::Plain;
use crate::published::Rules;
use crate::registers::Registers;
use crate::rule::{Kind, Rule};

/// Steps that are kept of one stack. A walk with more new ones keeps none.
const STEPS: usize = 512;

/// Where a walk gets its rules from.
pub(super) trait RuleSource {
    /// Steps to callers, and pushes frames, as long as that needs no tables; returns how many.
    fn replay<A: Arch>(&mut self, plain: Plain<'_>, frame: &mut Frame, frames: &mut Frames<'_>) -> usize;
    /// The rule of a frame.
    fn rule(&mut self, frame: &Frame) -> Rule;
    /// The tables themselves.
    fn rules(&self) -> &Rules<'_>;
}

/// By the tables alone, through their cache.
pub(super) struct UncachedRules<'t>(pub(super) &'t Rules<'t>);

impl RuleSource for UncachedRules<'_> {
    #[inline(always)]
    fn replay<A: Arch>(&mut self, _: Plain<'_>, _: &mut Frame, _: &mut Frames<'_>) -> usize {
        0
    }

    #[inline(always)]
    fn rule(&mut self, frame: &Frame) -> Rule {
        self.0.rule(frame.look_up())
    }

    fn rules(&self) -> &Rules<'_> {
        self.0
    }
}

/// By the stack cache first.
pub(super) struct CachedRules<'t> {
    rules: &'t Rules<'t>,
    stack_cache: &'t mut StackCache,
}

impl<'t> CachedRules<'t> {
    /// [`StackCache::begin`] was called for this walk.
    #[inline(always)]
    pub(super) fn new(rules: &'t Rules<'t>, stack_cache: &'t mut StackCache) -> CachedRules<'t> {
        CachedRules { rules, stack_cache }
    }
}

/// Makes the branch that calls it a cold jump, as `core::hint::cold_path`, which needs Rust 1.95.
#[cold]
#[inline]
fn unusual() {}

impl RuleSource for CachedRules<'_> {
    #[inline(never)]
    fn replay<A: Arch>(&mut self, plain: Plain<'_>, frame: &mut Frame, frames: &mut Frames<'_>) -> usize {
        let Frame { at: Registers { mut pc, mut sp, fp: Some(mut fp), .. }, exact: false, limit } = *frame
        else {
            return 0;
        };
        let first = self.stack_cache.skip_to(sp);
        let mut next = first;
        while let Some(step) = next.checked_sub(1).and_then(|at| self.stack_cache.path.get(at))
            && step.is_for(pc.wrapping_sub(1), sp)
            && frames.total() < BEFORE_ELIDED
        {
            let mut base = sp;
            if step.rule.kind() == Kind::Fp {
                // A predicted jump: with a conditional move, every step would wait for the read of
                // the frame pointer.
                unusual();
                base = fp;
            }
            let cfa = base.wrapping_add(step.rule.cfa_offset());
            if cfa <= sp || cfa > limit || cfa % 8 != 0 {
                break;
            }
            let fp_offset = step.rule.fp_offset();
            let saved = cfa.wrapping_add_signed(fp_offset);
            let mut caller_fp = fp;
            if fp_offset != 0 {
                let Some(word) = plain.word(saved) else { break };
                caller_fp = word;
            }
            let at = if A::CALL_PUSHES {
                cfa.wrapping_sub(8)
            } else if fp_offset != 0 {
                saved.wrapping_add(8)
            } else {
                break;
            };
            let Some(caller) = plain.word(at).map(|word| word & A::ADDRESS_MASK) else { break };
            if !CODE.contains(&caller) {
                break;
            }
            frames.push(pc);
            (pc, sp, fp) = (caller, cfa, caller_fp);
            next -= 1;
        }
        if next != first {
            frame.set_caller(pc, sp, Some(fp));
            self.stack_cache.went(next);
        }
        first - next
    }

    #[inline(never)]
    fn rule(&mut self, frame: &Frame) -> Rule {
        let rule = self.rules.rule(frame.look_up());
        if !frame.exact && matches!(rule.kind(), Kind::Sp | Kind::Fp) {
            self.stack_cache.add(Step::of(frame, rule));
        }
        rule
    }

    fn rules(&self) -> &Rules<'_> {
        self.rules
    }
}

/// A step from a frame with one of the usual rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The address that was looked up; 0: an empty entry.
    pc: u64,
    /// The stack pointer's lower half, to find the frame again.
    sp: u32,
    rule: Rule,
}

impl Step {
    /// From that frame by one of the usual rules. Code of Java says its rule itself, and stays as
    /// long as a frame of it is on a stack.
    pub(super) fn of(frame: &Frame, rule: Rule) -> Step {
        Step { pc: frame.look_up(), sp: frame.at.sp as u32, rule }
    }

    const NONE: Step = Step { pc: 0, sp: 0, rule: Rule::NONE };

    #[inline(always)]
    fn is_for(&self, pc: u64, sp: u64) -> bool {
        self.pc == pc && self.sp == sp as u32
    }

    /// Whether this step's frame lies below `sp`: it has returned by now.
    #[inline(always)]
    fn is_below(&self, sp: u64) -> bool {
        (self.sp.wrapping_sub(sp as u32) as i32) < 0
    }
}

/// See the module's text. For one walk at a time; zeroed memory is an empty cache.
#[derive(Debug)]
#[repr(C)]
pub(super) struct StackCache {
    /// The rule cache's epoch in which the steps were made.
    epoch: u64,
    /// Steps in `path`.
    length: usize,
    /// `path[..ahead]`: frames not yet passed.
    ahead: usize,
    /// `ahead` when the walk first rejoined `path`, after `fresh`; 0: it has not.
    met: usize,
    /// Steps of `fresh`. More than it has room for: some were not stored.
    added: usize,
    /// Steps of the walk before, the outermost first.
    path: [Step; STEPS],
    /// Steps of the current walk until it rejoined `path`, the innermost first.
    fresh: [Step; STEPS],
}

impl StackCache {
    pub(super) const fn new() -> StackCache {
        let steps = [Step::NONE; STEPS];
        StackCache { epoch: 0, length: 0, ahead: 0, met: 0, added: 0, path: steps, fresh: steps }
    }

    /// Begins a walk: the steps of the walk before become its path.
    #[inline(always)]
    pub(super) fn begin(&mut self, epoch: u64) {
        self.length = self.met.min(STEPS);
        if self.added != 0 {
            self.turn_fresh();
        }
        if self.epoch != epoch {
            (self.epoch, self.length) = (epoch, 0);
        }
        (self.ahead, self.met, self.added) = (self.length, 0, 0);
    }

    /// Appends `fresh`, in reverse, to the path.
    #[inline(never)]
    fn turn_fresh(&mut self) {
        let fresh = self.fresh.get(..self.added).unwrap_or(&[]);
        if fresh.is_empty() {
            self.length = 0; // a path without its outer frames is never rejoined
        }
        let room = self.path.iter_mut().skip(self.length);
        for (place, step) in room.zip(fresh.iter().rev()) {
            *place = *step;
            self.length += 1;
        }
    }

    /// Passes by frames that have returned; returns how many of the path are ahead then.
    #[inline(always)]
    fn skip_to(&mut self, sp: u64) -> usize {
        while let Some(step) = self.ahead.checked_sub(1).and_then(|at| self.path.get(at))
            && step.is_below(sp)
        {
            self.ahead -= 1;
        }
        self.ahead
    }

    /// The walk replayed the path until `ahead` steps were left.
    #[inline(always)]
    fn went(&mut self, ahead: usize) {
        if self.met == 0 {
            self.met = self.ahead;
        }
        self.ahead = ahead;
    }

    /// The walk made a step that is not on the path.
    #[inline(always)]
    pub(super) fn add(&mut self, step: Step) {
        if self.met != 0 {
            self.leave_path();
        }
        if let Some(place) = self.fresh.get_mut(self.added) {
            *place = step;
        }
        self.added += 1;
    }

    /// The replayed steps become part of the new path: a new step follows them.
    #[cold]
    #[inline(never)]
    fn leave_path(&mut self) {
        let gone = self.path.get(self.ahead..self.met).unwrap_or(&[]);
        let places = self.fresh.iter_mut().skip(self.added);
        for (place, step) in places.zip(gone.iter().rev()) {
            *place = *step;
        }
        self.added += gone.len();
        self.met = 0;
    }
}

#[cfg(test)]
mod tests;
