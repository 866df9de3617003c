//! One frame on the way up.

use crate::memory::Memory;
use crate::prologue;
use crate::published::Rules;
use crate::registers::Registers;
use crate::rule::{Kind, Rule};

/// How far above the stack pointer a stack of unknown extent may reach.
const UNKNOWN_STACK: u64 = 64 << 20;

/// One frame on the way up.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) at: Registers,
    /// `pc` is where the code was interrupted, not a return address.
    pub(super) exact: bool,
    /// The stack's upper end: no CFA is above it.
    pub(super) limit: u64,
}

impl Frame {
    pub(super) fn new(at: Registers, high: u64) -> Frame {
        let limit = if at.sp < high { high } else { at.sp.saturating_add(UNKNOWN_STACK) };
        Frame { at, exact: true, limit }
    }

    /// The address whose rule holds. Of a return address it is the byte before: the return address
    /// may already belong to the next function.
    #[inline(always)]
    pub(super) fn look_up(&self) -> u64 {
        self.at.pc.wrapping_sub(u64::from(!self.exact))
    }

    #[inline(always)]
    pub(super) fn is_outermost(&self, rules: &Rules<'_>, rule: Rule) -> bool {
        rule == Rule::END || rule == Rule::PADDING && self.was_begun_by_hand(rules)
    }

    /// Whether the return address is the first byte behind padding: a stack was started with it. If
    /// it is still in the padding, that may be an undescribed small function that does make calls.
    #[cold]
    #[inline(never)]
    pub(super) fn was_begun_by_hand(&self, rules: &Rules<'_>) -> bool {
        !self.exact && rules.rule(self.at.pc) != Rule::PADDING
    }

    /// Whether the thread may be at the first instruction of its function, by the function's
    /// `rule`.
    #[inline(always)]
    pub(super) fn is_first_instruction(&self, rule: Rule) -> bool {
        self.exact && self.at.pc & 15 == 0 && rule.kind() == Kind::Sp && rule.cfa_offset() == 8
    }

    /// Whether the function that was just left at its first instruction was not called from here. A
    /// signal handler may have put the interrupted pc on the stack and resumed in that function, as
    /// Go's does to preempt a goroutine. Reads code only where the answer can matter.
    #[cold]
    #[inline(never)]
    pub(super) fn was_not_left_by_a_call<M: Memory + ?Sized>(
        &self,
        rules: &Rules<'_>,
        memory: &mut M,
    ) -> bool {
        let pc = self.at.pc;
        let may_begin = pc & 15 == 0 || rules.rule(pc) != rules.rule(pc.wrapping_sub(1));
        may_begin && prologue::follows_call(rules, memory, pc) == Some(false)
    }

    #[inline(always)]
    pub(super) fn in_stack(&self, cfa: u64) -> bool {
        (cfa > self.at.sp || cfa == self.at.sp && self.exact) && cfa <= self.limit && cfa & 7 == 0
    }

    /// The current frame is on a stack of unknown extent.
    pub(super) fn begin_other_stack(&mut self) {
        self.limit = Frame::new(self.at, 0).limit;
    }

    /// Makes the caller the current frame.
    #[inline(always)]
    pub(super) fn set_caller(&mut self, pc: u64, sp: u64, fp: Option<u64>) {
        self.at = Registers { pc, sp, fp, link: None, context: 0 };
        self.exact = false;
    }
}
