//! Rows of where registers are saved, see [`swipr_unwind::register_table`]. gimli's own rows are
//! read, which follow every register: that takes several times as long as [`super::cfi_machine`],
//! and is not done for many objects.

use super::convert::Converter;
use super::descriptions::{Description, Slice};
use crate::order::sorted_by;
use gimli::{BaseAddresses, Register, RegisterRule as GimliRule, UnwindContext, UnwindSection};
use std::ops::Range;
use swipr_unwind::register_rules::RegisterRule;
use swipr_unwind::register_table::{DESCRIBED, RegisterRow};
use swipr_unwind::rule::Expression;

/// Rows up to which they are kept: of code that is larger, what lies behind has none.
const MAX_ROWS: usize = 4 << 20;
const REGISTERS: usize = 31;

/// Collects rows, function by function in the order of their addresses.
pub(super) struct RegisterRows {
    base: u64,
    aarch64: bool,
    rows: Vec<RegisterRow>,
    context: Box<UnwindContext<usize>>,
}

/// What is said of a register.
type RuleOperands = (RegisterRule, u16, i32);
const SAME: RuleOperands = (RegisterRule::Same, 0, 0);
const LOST: RuleOperands = (RegisterRule::Undefined, 0, 0);

impl RegisterRows {
    /// Of code that begins at `base`.
    pub(super) fn new(base: u64, aarch64: bool) -> RegisterRows {
        RegisterRows { base, aarch64, rows: Vec::new(), context: Box::new(UnwindContext::new()) }
    }

    /// Adds a function whose description holds for `code`; `bias` is what was added to the
    /// description's own addresses.
    pub(super) fn add<'a>(
        &mut self,
        description: &Description<'a>,
        (section, bases, bias): (&impl UnwindSection<Slice<'a>>, &BaseAddresses, u64),
        code: Range<u64>,
        converter: &mut Converter<'a>,
    ) {
        let RegisterRows { base, aarch64, rows, context } = self;
        let offset = |address: u64| u32::try_from(address.wrapping_sub(*base)).ok();
        let (Some(start), Some(end)) = (offset(code.start), offset(code.end)) else { return };
        if rows.len() > MAX_ROWS || start >= end {
            return;
        }
        push(rows, start, DESCRIBED, SAME);
        let mut said = [SAME; REGISTERS];
        let mut at = start;
        if let Ok(mut table) = description.rows(section, bases, context) {
            loop {
                let row = match table.next_row() {
                    Ok(Some(row)) => row,
                    Ok(None) => break,
                    Err(_) => {
                        push(rows, at, DESCRIBED, LOST);
                        break;
                    }
                };
                if rows.len() > MAX_ROWS {
                    push(rows, at, DESCRIBED, LOST);
                    break;
                }
                match offset(row.start_address().wrapping_add(bias)) {
                    Some(next) if next < end => at = next.max(at),
                    _ => break,
                }
                for (number, said) in (0..).zip(&mut said).filter(|(number, _)| is_kept(*aarch64, *number)) {
                    let now = row.register(Register(u16::from(number)));
                    let now = now.map_or(SAME, |rule| place(&rule, converter).unwrap_or(LOST));
                    if std::mem::replace(said, now) != now {
                        push(rows, at, number, now);
                    }
                }
            }
        }
        for (number, _) in (0..).zip(said).filter(|(_, said)| *said != SAME) {
            push(rows, end, number, SAME);
        }
        push(rows, end, DESCRIBED, LOST);
    }

    /// All rows, sorted; of several at one place the last, and none that repeats the one before it.
    pub(super) fn finish(self) -> Vec<RegisterRow> {
        let mut rows = sorted_by(&self.rows, |row| u64::from(row.register) << 32 | u64::from(row.start));
        rows.reverse();
        rows.dedup_by_key(|row| row.key());
        rows.reverse();
        rows.dedup_by_key(|row| (row.register, row.how, row.length, row.value));
        rows.shrink_to_fit();
        rows
    }
}

fn push(rows: &mut Vec<RegisterRow>, start: u32, register: u8, (how, length, value): RuleOperands) {
    rows.push(RegisterRow { start, register, how, length, value });
}

/// Whether it is not one of those that the unwind table follows.
fn is_kept(aarch64: bool, number: u8) -> bool {
    if aarch64 { number < 31 && number != 29 } else { number < 16 && !matches!(number, 6 | 7) }
}

fn place<'a>(rule: &GimliRule<usize>, converter: &mut Converter<'a>) -> Option<RuleOperands> {
    let number = |how, value: i64| Some((how, 0, i32::try_from(value).ok()?));
    match *rule {
        GimliRule::SameValue => Some(SAME),
        GimliRule::Offset(offset) => number(RegisterRule::AtCfa, offset),
        GimliRule::ValOffset(offset) => number(RegisterRule::Cfa, offset),
        GimliRule::Register(other) => number(RegisterRule::Register, i64::from(other.0)),
        GimliRule::Expression(code) => expression(RegisterRule::At, converter.expression(code.into())?),
        GimliRule::ValExpression(code) => expression(RegisterRule::Value, converter.expression(code.into())?),
        _ => None,
    }
}

fn expression(how: RegisterRule, code: Expression) -> Option<RuleOperands> {
    Some((how, code.length, i32::try_from(code.start).ok()?))
}
