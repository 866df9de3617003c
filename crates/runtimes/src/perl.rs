//! Perl 5: where a thread's contexts are, and what they say.
//!
//! A stack of contexts says which subs and evals run, each with the line that was left for it. Sort
//! blocks, overloaded operators and the like have a stack of their own, linked to the one before.
//!
//! The innermost context may be half made, or left already: rules say when it counts.

mod layout;
mod names;
mod rows;
mod segments;

use crate::blocks::{BATCH, BlockMemory};
use crate::known::KnownKeys;
use crate::python::ThreadKey;
use crate::room::{Chain, End, Frame};
pub use layout::{Ops, PerlLayout, PerlRow, Returns, Threads};
use names::Callee;
pub use rows::ROWS;
use segments::Mark;
use swipr_unwind::memory::process_id;

/// Contexts that are looked at, in all stacks.
const MAX_STEPS: usize = 16 * 1024;
/// Stacks that are followed.
const MAX_STACKS: usize = 64;
/// What `cx_type` says, below its flags (`cop.h`), that of a sort's block, and that of `defer`.
const TYPE: u8 = 15;
const SORT_BLOCK: u8 = 0;
const DEFER: u8 = 13;
/// Sub contexts that represent code within a pattern: of a closure (`qr`), and of the sub around.
const PATTERN: u8 = 0x40;
const IN_PATTERN: u8 = 0x80;
/// What `si_type` says: the outermost stack, that of a sort, and that of what runs while code is
/// compiled.
const MAIN: u32 = 1;
const SORT: u32 = 3;
const REQUIRE: u32 = 9;
/// The part of `sv_flags` that is the type, and of an op.
const VALUE_TYPE: u32 = 0xff;
const OP_TYPE: u32 = 0x1ff;
/// The op that is current while C code calls a sub has no number, or that of `entersub`, and
/// nothing follows it.
const CALL_BY_C: u32 = 0;

/// Reads the frames of the thread, which stands still. `state` is its interpreter; 0: it is looked
/// up by the thread's control block.
pub fn walk(
    layout: &PerlLayout,
    state: u64,
    thread: ThreadKey,
    memory: &mut BlockMemory<'_>,
    known: KnownKeys<'_>,
    chain: &mut Chain,
) {
    chain.begin();
    let interpreter = if state != 0 { Some(state) } else { layout.interpreter(thread.pointer, memory) };
    let end = match interpreter {
        Some(interpreter) => {
            let compiling = interpreter.wrapping_add(layout.compiling);
            let pc = thread.pc;
            let is_first = layout.is_program && thread.tid as i32 == process_id();
            let mut walk = PerlWalk {
                layout,
                memory,
                known,
                chain,
                pc,
                compiling,
                is_first,
                line: 0,
                returns: 0,
                steps: 0,
            };
            let end = walk.follow(interpreter);
            end.unwrap_or_else(|end| if walk.memory.is_used_up() { End::Full } else { end })
        }
        None => End::NoState,
    };
    segments::mark_entries(chain);
    chain.finish(end);
}

struct PerlWalk<'w, 'p, 'k> {
    layout: &'w PerlLayout,
    memory: &'w mut BlockMemory<'p>,
    known: KnownKeys<'k>,
    chain: &'w mut Chain,
    /// The line (a COP) at which the next outer frame is.
    line: u64,
    /// The value of `PL_retstack`.
    returns: u64,
    steps: usize,
    /// The thread's innermost instruction.
    pc: u64,
    /// The COP of what is compiled.
    compiling: u64,
    /// It is the first thread of perl itself: subs are recognised that were met in earlier walks.
    is_first: bool,
}

impl PerlWalk<'_, '_, '_> {
    fn word(&mut self, structure: u64, at: u16) -> Result<u64, End> {
        structure.checked_add(at.into()).and_then(|at| self.memory.word(at)).ok_or(End::Unreadable)
    }

    fn half(&mut self, structure: u64, at: u16) -> Result<u32, End> {
        structure.checked_add(at.into()).and_then(|at| self.memory.half(at)).ok_or(End::Unreadable)
    }

    /// One of [`PerlLayout::variables`].
    fn variable(&mut self, interpreter: u64, which: usize) -> Result<u64, End> {
        let at = self.layout.variables.get(which).copied().unwrap_or(0);
        self.memory.word(interpreter.wrapping_add(at)).ok_or(End::Unreadable)
    }

    fn follow(&mut self, interpreter: u64) -> Result<End, End> {
        let op = self.variable(interpreter, 0)?;
        self.line = self.variable(interpreter, 1)?;
        let mut info = self.variable(interpreter, 2)?;
        if self.layout.row.returns.is_some() {
            self.returns = self.variable(interpreter, 3)?;
        }
        let mut innermost = Some(op);
        let mut inner = MAIN;
        for _ in 0..MAX_STACKS {
            if !info.is_multiple_of(8) || info == 0 {
                return Err(End::Inconsistent);
            }
            let kind = self.half(info, self.layout.row.info_type)?;
            if !self.follow_stack(info, (kind, inner), innermost.take())? {
                return Ok(End::Full);
            }
            inner = kind;
            let previous = self.word(info, self.layout.row.info_previous)?;
            if kind == MAIN || previous == 0 {
                let root = self.frame(Callee::Root, Mark::Plain)?;
                return Ok(if self.chain.push(root) { End::Root } else { End::Full });
            }
            info = previous;
        }
        Ok(End::Full)
    }

    /// The contexts of one stack, given with its kind and that of the next inner one; `false`:
    /// there are too many. `op` is what is run now, if this is the innermost one.
    fn follow_stack(&mut self, info: u64, (kind, inner): (u32, u32), op: Option<u64>) -> Result<bool, End> {
        let row = self.layout.row;
        let contexts = self.word(info, row.info_contexts)?;
        let last = self.half(info, row.info_last)? as i32;
        if !(-1..1 << 20).contains(&last) || !contexts.is_multiple_of(8) {
            return Err(End::Inconsistent);
        }
        let context_of = |number: i32| contexts.wrapping_add(number as u64 * u64::from(row.context_bytes));
        for number in (0..=last).rev() {
            self.steps += 1;
            if (last - number) % BATCH as i32 == 0 {
                self.read_ahead((0..=number).rev().map(context_of));
            }
            let context = context_of(number);
            let at = context.wrapping_add(row.context_type.into());
            let flags = self.memory.byte(at).ok_or(End::Unreadable)?;
            let op = op.filter(|_| number == last);
            let is_called = number == 0 && kind != MAIN;
            let frame = match flags & TYPE {
                kind if kind == row.is_sub => self.sub(context, flags, op, is_called)?,
                kind if kind == row.is_format => {
                    let code = self.word(context, row.format_code)?;
                    Some(self.frame(Callee::Sub(code), Mark::Plain)?)
                }
                kind if kind == row.is_eval && flags & row.is_try == 0 => {
                    let is_compiled = inner == REQUIRE && number == last;
                    self.eval(context, op, (is_called, is_compiled))?
                }
                SORT_BLOCK if number == 0 && kind == SORT => Some(Mark::Block.alone()),
                DEFER => Some(Mark::Block.alone()),
                _ => None,
            };
            if let Some(frame) = frame {
                if frame.key != 0 {
                    self.line = self.word(context, row.context_line)?;
                }
                if self.steps > MAX_STEPS || !self.chain.push(frame) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Reads at once the lines from which the first of these contexts were entered, and their subs.
    fn read_ahead(&mut self, contexts: impl Iterator<Item = u64>) {
        let row = self.layout.row;
        let (mut lines, mut codes) = ([0; BATCH], [0; BATCH]);
        for ((line, code), context) in lines.iter_mut().zip(&mut codes).zip(contexts) {
            *line = self.word(context, row.context_line).unwrap_or(0);
            let kind = self.memory.byte(context.wrapping_add(row.context_type.into()));
            if kind.is_some_and(|kind| kind & TYPE == row.is_sub) {
                *code = self.word(context, row.sub_code).unwrap_or(0);
            }
        }
        let (from, length) = row.line_bytes();
        let some = |address: &u64| *address != 0;
        self.memory.prefetch(lines.into_iter().filter(some).map(|line| line.wrapping_add(from)), length);
        self.memory.prefetch(codes.into_iter().filter(some), usize::from(row.value_flags) + 4);
        let bodies = codes.map(|code| if code == 0 { 0 } else { self.word(code, 0).unwrap_or(0) });
        let at = |body: u64| body.wrapping_add(row.code_name.into());
        self.memory.prefetch(bodies.into_iter().filter(some).map(at), size_of::<u64>());
    }

    /// The op at which the caller continues when a sub or an eval returns; 0: C code has called it.
    /// That is so of what is first in a stack of its own (`is_called`).
    fn return_of(&mut self, context: u64, at: u16, is_called: bool) -> Result<u64, End> {
        let row = self.layout.row;
        let Some(returns) = row.returns else { return self.word(context, at) };
        let number = self.half(context, returns.of_context)?;
        // What C code has called adds none.
        let outer = context.wrapping_sub(row.context_bytes.into());
        if is_called || number == 0 || self.half(outer, returns.of_context) == Ok(number) {
            return Ok(0);
        }
        let at = self.returns.wrapping_add(8 * u64::from(number - 1));
        self.memory.word(at).ok_or(End::Unreadable)
    }

    /// `op`: what is run now, if this is the innermost context of all.
    fn sub(
        &mut self,
        context: u64,
        flags: u8,
        op: Option<u64>,
        is_called: bool,
    ) -> Result<Option<Frame>, End> {
        let row = self.layout.row;
        let goes_on = self.return_of(context, row.sub_return, is_called)?;
        let mark = match goes_on {
            0 if flags & (PATTERN | IN_PATTERN) != 0 => Mark::Block,
            0 if is_called => Mark::FirstSub,
            0 => Mark::CalledSub,
            _ => Mark::Plain,
        };
        if flags & IN_PATTERN != 0 {
            return Ok((goes_on == 0).then(|| mark.alone()));
        }
        let Some(op) = op else { return self.called(context, mark).map(Some) };
        let code = self.word(context, row.sub_code)?;
        if code == 0 || !self.is_of_type(code, row.code_type)? {
            return Ok(None);
        }
        let body = self.word(code, 0)?;
        // An earlier call's, which is being written over, or a sub that is left already.
        let depth = self.half(body, row.code_depth)?;
        if depth == 0 || depth != self.half(context, row.sub_depth_before)?.wrapping_add(1) {
            return Ok(None);
        }
        if self.word(context, row.context_line)? != self.line {
            return self.called(context, mark).map(Some);
        }
        // Nothing of it has run yet, or it returns: then its own line is not known any more.
        let ops = self.layout.ops;
        let kind = if op == 0 { CALL_BY_C } else { self.op_type(op)? };
        if kind == ops.enter_sub && self.word(op, 0)? != goes_on {
            return Ok(None);
        }
        let is_return = ops.returns.contains(&kind);
        // The call's line is its own, too, if it has called itself.
        if is_return && self.is_called_by(context, code) {
            return self.called(context, mark).map(Some);
        }
        let start = self.word(body, row.code_start)?;
        if start != 0 && ops.lines.contains(&self.op_type(start)?) {
            self.line = start;
        }
        let frame = self.called(context, mark)?;
        Ok(Some(if is_return { Frame { offset: 0, ..frame } } else { frame }))
    }

    /// Whether the context before this one is of this sub.
    fn is_called_by(&mut self, context: u64, code: u64) -> bool {
        let row = self.layout.row;
        let outer = context.wrapping_sub(row.context_bytes.into());
        let kind = self.memory.byte(outer.wrapping_add(row.context_type.into()));
        kind.is_some_and(|kind| kind & TYPE == row.is_sub) && self.word(outer, row.sub_code) == Ok(code)
    }

    /// `op` as for [`PerlWalk::sub`]; `is_compiled`: it is only being compiled.
    fn eval(
        &mut self,
        context: u64,
        op: Option<u64>,
        (is_called, is_compiled): (bool, bool),
    ) -> Result<Option<Frame>, End> {
        let row = self.layout.row;
        if let Some(op) = op.filter(|&op| op != 0) {
            let is_in = |(low, high): (u64, u64)| low <= self.pc && self.pc < high;
            // It may be the one that was here before: a sub's is being written over it.
            if is_in(self.layout.entering) {
                return Ok(None);
            }
            // The same, where another eval's is being written, or that of a call by C code.
            let is_inside = is_in(self.layout.object) && self.line != self.compiling;
            if is_inside && self.word(context, row.context_line)? != self.line {
                let (ops, kind) = (self.layout.ops, self.op_type(op)?);
                let is_call = kind == ops.enter_sub || kind == CALL_BY_C;
                if ops.evals.contains(&kind) || is_call && self.word(op, 0)? == 0 {
                    return Ok(None);
                }
            }
        }
        let goes_on = self.return_of(context, row.eval_return, is_called)?;
        let mark = match goes_on {
            // Nothing of it runs yet.
            _ if is_compiled || self.line == self.compiling => Mark::Plain,
            0 if is_called => Mark::FirstEval,
            0 => Mark::LastEval,
            _ => Mark::Eval,
        };
        self.frame(Callee::Eval, mark).map(Some)
    }

    fn op_type(&mut self, op: u64) -> Result<u32, End> {
        Ok(self.half(op, self.layout.row.op_type)? & OP_TYPE)
    }

    /// Whether the value is of this type.
    fn is_of_type(&mut self, value: u64, kind: u16) -> Result<bool, End> {
        if !value.is_multiple_of(8) {
            return Ok(false);
        }
        Ok(self.half(value, self.layout.row.value_flags)? & VALUE_TYPE == kind.into())
    }

    /// The frame of a sub.
    fn called(&mut self, context: u64, mark: Mark) -> Result<Frame, End> {
        let code = self.word(context, self.layout.row.sub_code)?;
        self.frame(Callee::Sub(code), mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: Perls of two versions had the rows of others and were not read.
    #[test]
    fn each_version_has_a_row() {
        let kind = |row: &PerlRow| (row.version, row.interpreter_bytes > 0);
        for (row, after) in ROWS.iter().zip(&ROWS[1..]) {
            assert!(kind(row) < kind(after), "{} is twice, or not in order", row.version);
        }
        let is_whole = |row: &PerlRow| kind(row) == (8, false) || row.stack_info > 0;
        assert!(ROWS.iter().all(is_whole));
        assert!(ROWS.iter().any(|row| row.version == 42));
    }
}
