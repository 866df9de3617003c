//! The rule of a pc by a copy of the object's unwind sections: until the object has a table.
//!
//! Idea: a table pays off after many look-ups; most processes make few, as rules are cached. A
//! short process never needs one. A copy, because the object may be unloaded, and because plain
//! loads need no system call.

use crate::arch::{Arch, Native};
use crate::cfi_machine::{Cfa, Descriptions, FrameSetup, Row};
use crate::memory::Memory;
use crate::register_rules::{RegisterRule, Saved};
use crate::rule::{CfaRule, Expression, Extended, Rule, ValueRule};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};

/// Smaller holes between functions are taken for padding. No code calls from there, so a return
/// address right behind padding was not left by a call: a stack was started with it (as by glibc's
/// makecontext, with `__start_context`). libgcc ends a stack there as well.
pub const PADDING: u64 = 16;
/// Most descriptions have fewer instructions.
const USUAL_INSTRUCTIONS: u32 = 64;
/// Bytes of the expressions of one row.
const EXPRESSIONS: usize = 96;

/// Copies of an object's unwind sections.
#[derive(Clone, Copy, Debug)]
pub struct Sections<'a> {
    /// Address and bytes of `.eh_frame_hdr`.
    pub header: (u64, &'a [u8]),
    /// Address and bytes of `.eh_frame`.
    pub frames: (u64, &'a [u8]),
    /// What handlers say of this object.
    pub demand: &'a TableDemand,
    /// Set where an object wants a table; of all objects together.
    pub any_wanted: &'a AtomicBool,
}

/// Whether an object is to have a table.
#[derive(Debug)]
pub struct TableDemand {
    /// Rules that were read; those with a long description count as several.
    reads: AtomicU32,
    /// A table costs as much as so many.
    table_cost: u32,
    is_wanted: AtomicBool,
}

impl TableDemand {
    /// Nothing was read yet.
    pub const fn new(table_cost: u32) -> TableDemand {
        TableDemand { reads: AtomicU32::new(0), table_cost, is_wanted: AtomicBool::new(false) }
    }

    /// A table pays off, or can say more than was read.
    pub fn is_wanted(&self) -> bool {
        self.is_wanted.load(Relaxed)
    }
}

/// Room for reading a rule.
#[derive(Debug)]
pub struct Room {
    pub(crate) descriptions: Descriptions,
    full: Full,
}

/// A rule in full, with the bytes of its expressions.
#[derive(Debug)]
struct Full {
    rule: Extended,
    expressions: [u8; EXPRESSIONS],
    length: usize,
}

impl Room {
    /// Nothing was read yet.
    pub const fn new() -> Room {
        let same = ValueRule::Same;
        let rule = Extended { cfa: CfaRule::Register(0, 0), fp: same, return_address: same, sp: same };
        Room {
            descriptions: Descriptions::new(),
            full: Full { rule, expressions: [0; EXPRESSIONS], length: 0 },
        }
    }
}

impl Default for Room {
    fn default() -> Room {
        Room::new()
    }
}

impl Sections<'_> {
    /// A rule in full, which is to be read again with [`Sections::extended`]. No table has so many.
    const FULL: Rule = match Rule::extended((1 << 28) - 1) {
        Some(rule) => rule,
        None => Rule::NONE,
    };

    /// The rule at `pc`; [`Rule::NONE`] where code is not described, and a table may know more. Of
    /// a description that is not understood a rule without an [`Extended`] one: a guess by the
    /// frame pointer would leave out callers. Async-signal-safe.
    #[inline(never)]
    pub fn rule(&self, pc: u64, room: &mut Room) -> Rule {
        let read = self.read(pc, room);
        let rule = read.unwrap_or(Self::FULL);
        let cost = 1 + room.descriptions.instructions() / USUAL_INSTRUCTIONS;
        let pays = self.demand.reads.fetch_add(cost, Relaxed) >= self.demand.table_cost;
        if pays || read.is_none() || rule == Rule::NONE {
            self.want_table();
        }
        rule
    }

    /// The rule in full at `pc`, and the bytes of its expressions.
    #[inline(never)]
    pub fn extended<'r>(&self, pc: u64, room: &'r mut Room) -> Option<(&'r Extended, &'r [u8])> {
        (self.read(pc, room)? == Self::FULL).then_some((&room.full.rule, &room.full.expressions))
    }

    /// The last place before `pc`, in its function, where `mov %rsp,%rbp` follows `push %rbp`.
    #[inline(never)]
    pub(crate) fn frame_setup(&self, pc: u64) -> Option<FrameSetup> {
        let mut room = Room::new();
        self.read(pc, &mut room)?;
        room.descriptions.frame_setup()
    }

    fn want_table(&self) {
        self.demand.is_wanted.store(true, Relaxed);
        // The thread that sees this sees which object it is, too.
        self.any_wanted.store(true, Release);
    }

    fn read(&self, pc: u64, room: &mut Room) -> Option<Rule> {
        let Room { descriptions, full } = room;
        let mut copy = *self;
        // As in other steps that are rare: one copy of the code serves every memory.
        let memory: &mut dyn Memory = &mut copy;
        let function = descriptions.function(memory, self.header.0, pc)?;
        if !function.contains(pc) {
            let hole = function.next.map_or(u64::MAX, |next| next.saturating_sub(function.end));
            return Some(if (1..PADDING).contains(&hole) { Rule::PADDING } else { Rule::NONE });
        }
        let common = *descriptions.common();
        if common.is_signal && !Native::CALL_PUSHES {
            return Some(Rule::SIGNAL);
        }
        let return_register = u8::try_from(common.return_register).ok()?;
        let row = descriptions.row(memory, pc, [Native::FP, return_register, Native::SP])?;
        full.set(self, row, return_register)?;
        if common.is_signal {
            match full.rule.of_marked() {
                Some(rule) => full.rule = rule,
                None => return Some(Rule::SIGNAL),
            }
        }
        let aarch64 = cfg!(target_arch = "aarch64");
        Some(Rule::packed(&full.rule, &full.expressions, aarch64).unwrap_or(Self::FULL))
    }
}

impl Full {
    fn set(&mut self, sections: &Sections<'_>, row: Row, return_register: u8) -> Option<()> {
        self.length = 0;
        let [fp, return_address, sp] = row.saved;
        self.rule.cfa = match row.cfa {
            Cfa::Register(register, offset) => CfaRule::Register(u8::try_from(register).ok()?, offset as i64),
            Cfa::Expression { address, length } => {
                CfaRule::Expression(self.expression(sections, address, length)?)
            }
        };
        self.rule.fp = self.value(sections, fp)?;
        self.rule.return_address = match self.value(sections, return_address)? {
            // "Unchanged" means the link register, wherever that is not the usual one.
            ValueRule::Same if !Native::CALL_PUSHES && return_register != Native::LINK => {
                ValueRule::Register(return_register)
            }
            value => value,
        };
        self.rule.sp = match self.value(sections, sp)? {
            ValueRule::Same => ValueRule::Cfa(0),
            value => value,
        };
        Some(())
    }

    fn value(&mut self, sections: &Sections<'_>, saved: Saved) -> Option<ValueRule> {
        Some(match saved.how {
            RegisterRule::Same => ValueRule::Same,
            RegisterRule::Undefined => ValueRule::Undefined,
            RegisterRule::AtCfa => ValueRule::AtCfa(saved.value as i64),
            RegisterRule::Cfa => ValueRule::Cfa(saved.value as i64),
            RegisterRule::Register => ValueRule::Register(u8::try_from(saved.value).ok()?),
            RegisterRule::At => ValueRule::At(self.expression(sections, saved.value, saved.length)?),
            RegisterRule::Value => ValueRule::Value(self.expression(sections, saved.value, saved.length)?),
        })
    }

    /// Copies an expression.
    fn expression(&mut self, sections: &Sections<'_>, address: u64, length: u16) -> Option<Expression> {
        let end = self.length.checked_add(usize::from(length))?;
        let mut memory = *sections;
        if !memory.code(address, self.expressions.get_mut(self.length..end)?) {
            return None;
        }
        let expression = Expression { start: self.length as u32, length };
        self.length = end;
        Some(expression)
    }
}

/// The two sections, and zeros around them: what is read at once may reach from one into the other.
impl Memory for Sections<'_> {
    fn word(&mut self, _: u64) -> Option<u64> {
        None
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        buffer.fill(0);
        let mut is_inside = false;
        for (start, bytes) in [self.header, self.frames] {
            let skipped = usize::try_from(address.saturating_sub(start)).unwrap_or(usize::MAX);
            let before = usize::try_from(start.saturating_sub(address)).unwrap_or(usize::MAX);
            if let (Some(from), Some(to)) = (bytes.get(skipped..), buffer.get_mut(before..)) {
                let length = to.len().min(from.len());
                if let (Some(to), Some(from)) = (to.get_mut(..length), from.get(..length)) {
                    to.copy_from_slice(from);
                }
                is_inside |= before == 0 && !from.is_empty();
            }
        }
        is_inside
    }
}
