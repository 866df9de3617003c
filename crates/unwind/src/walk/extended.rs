//! Leaving a frame by a rule in full: any register, any DWARF expression.

use super::callee_saved::Known;
use super::steps::{StepError, enter_caller};
use super::workspace::Scratch;
use super::{Frame, Stop};
use crate::arch::Arch;
use crate::expression::{self, Stack};
use crate::memory::Memory;
use crate::prologue;
use crate::published::Rules;
use crate::registers::of_context;
use crate::rule::{CfaRule, Expression, Rule, ValueRule};
use crate::sections::Room;

/// Steps to the caller by an extended rule. After [`StepError::Needs`] it can be tried again with
/// that register's value among `known`.
#[inline(never)]
pub(super) fn step<A: Arch, M: Memory + ?Sized>(
    rules: &Rules<'_>,
    memory: &mut M,
    frame: &mut Frame,
    rule: Rule,
    known: Known<'_>,
    scratch: &mut Scratch,
) -> Result<(), StepError> {
    let room = scratch.room.write(Room::new());
    let (extended, expressions) = rules.extended(frame.look_up(), rule, room).ok_or(Stop::Unsupported)?;
    if extended.return_address == ValueRule::Undefined {
        return Err(Stop::Root.into());
    }
    let mut here = Here {
        frame,
        known,
        expressions,
        missing: None,
        stack: scratch.stack.write(Stack::new()),
        cfa: None,
    };
    let unknown = if here.frame.at.fp.is_none() { Stop::FramePointerUnknown } else { Stop::Unsupported };
    let cfa = match extended.cfa {
        CfaRule::Register(number, offset) => {
            here.register::<A, M>(memory, number).map(|value| value.wrapping_add_signed(offset))
        }
        CfaRule::Expression(range) | CfaRule::OtherStack(range) => here.evaluate::<A, M>(memory, range),
    };
    let cfa = cfa.ok_or_else(|| here.needs(unknown))?;
    here.cfa = Some(cfa);
    let sp = here.value::<A, M>(memory, &extended.sp, Some(cfa));
    let sp = sp.ok_or_else(|| here.needs(Stop::Unsupported))?;
    let is_elsewhere = !here.frame.in_stack(sp);
    if is_elsewhere && (sp & 7 != 0 || !may_switch_stacks::<A>(extended.cfa)) {
        return Err(Stop::OutOfBounds.into());
    }
    let link = here.frame.at.link;
    let pc = here.value::<A, M>(memory, &extended.return_address, link);
    let nowhere = if is_elsewhere { Stop::OutOfBounds } else { Stop::Unsupported };
    let pc = pc.ok_or_else(|| here.needs(nowhere))?;
    let fp = here.frame.at.fp;
    let fp = here.value::<A, M>(memory, &extended.fp, fp);
    if fp.is_none() && here.missing.is_some() {
        return Err(here.needs(Stop::Unsupported));
    }
    enter_caller::<A>(frame, pc, sp, fp)?;
    scratch.cfa = Some(cfa).filter(|cfa| *cfa != sp);
    if is_elsewhere {
        let is_said = matches!(extended.cfa, CfaRule::OtherStack(_));
        if !is_said && prologue::follows_call(rules, memory, frame.at.pc) != Some(true) {
            return Err(Stop::OutOfBounds.into());
        }
        frame.begin_other_stack();
    }
    Ok(())
}

/// Whether the CFA may be on another stack. Code that calls on another stack and keeps its own
/// stack pointer in a register meanwhile, as OCaml's for functions in C, need not say so.
fn may_switch_stacks<A: Arch>(cfa: CfaRule) -> bool {
    match cfa {
        CfaRule::OtherStack(_) => true,
        CfaRule::Register(number, _) => number != A::SP && number != A::FP,
        CfaRule::Expression(_) => false,
    }
}

/// What rules refer to in one frame.
struct Here<'a> {
    frame: &'a Frame,
    known: Known<'a>,
    expressions: &'a [u8],
    /// A register that was needed and may still be found.
    missing: Option<u8>,
    stack: &'a mut Stack,
    cfa: Option<u64>,
}

impl Here<'_> {
    fn needs(&self, otherwise: Stop) -> StepError {
        self.missing.map_or(StepError::Stop(otherwise), StepError::Needs)
    }

    fn register<A: Arch, M: Memory + ?Sized>(&mut self, memory: &mut M, number: u8) -> Option<u64> {
        register::<A, M>(self.frame, self.known, &mut self.missing, memory, number)
    }

    #[inline(never)]
    fn evaluate<A: Arch, M: Memory + ?Sized>(&mut self, memory: &mut M, range: Expression) -> Option<u64> {
        let start = range.start as usize;
        let code = self.expressions.get(start..start + range.length as usize)?;
        let Here { frame, known, missing, stack, .. } = self;
        let mut register = |memory: &mut M, number| register::<A, M>(frame, *known, missing, memory, number);
        expression::evaluate(code, self.cfa, memory, stack, &mut register)
    }

    #[inline(never)]
    fn value<A: Arch, M: Memory + ?Sized>(
        &mut self,
        memory: &mut M,
        rule: &ValueRule,
        same: Option<u64>,
    ) -> Option<u64> {
        let at_cfa = |offset: i64| self.cfa.map(|cfa| cfa.wrapping_add_signed(offset));
        match *rule {
            ValueRule::Same => same,
            ValueRule::Undefined => None,
            ValueRule::AtCfa(offset) => memory.word(at_cfa(offset)?),
            ValueRule::Cfa(offset) => at_cfa(offset),
            ValueRule::Register(number) => self.register::<A, M>(memory, number),
            ValueRule::At(range) => {
                let address = self.evaluate::<A, M>(memory, range)?;
                memory.word(address)
            }
            ValueRule::Value(range) => self.evaluate::<A, M>(memory, range),
        }
    }
}

/// A register's value in `frame`; records it as `missing` where it may still be found.
#[inline(never)]
fn register<A: Arch, M: Memory + ?Sized>(
    frame: &Frame,
    known: Known<'_>,
    missing: &mut Option<u8>,
    memory: &mut M,
    number: u8,
) -> Option<u64> {
    let at = &frame.at;
    if number == A::SP {
        Some(at.sp)
    } else if number == A::FP {
        at.fp
    } else if number == A::PC {
        Some(at.pc)
    } else if number == A::LINK && at.link.is_some() {
        at.link
    } else if at.context != 0 {
        of_context::<A, M>(memory, at.context, number)
    } else {
        // Any register, not only those that the ABI lets calls keep: see `callee_saved`.
        A::context_offset(number)?;
        let known = known.value(number);
        if known.is_none() {
            *missing = Some(number);
        }
        known.flatten()
    }
}
