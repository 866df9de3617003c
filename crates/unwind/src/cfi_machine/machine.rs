//! What runs the instructions: its registers, and the rows so far.

use super::{Cfa, FrameSetup, Row};
use crate::arch::{Arch, Native};
use crate::cfi_reader::Reader;
use crate::dwarf::*;
use crate::fde::{self, Cie};
use crate::memory::Memory;
use crate::register_rules::{RegisterRule, Saved};

/// Instructions that are run at most for one frame. A function of 120 KB of GCC's C++ compiler has
/// more than 4096.
const MAX_STEPS: u32 = 32_768;
/// Deepest nesting of `remember_state` that is followed; compilers nest it once.
const MAX_REMEMBERED: usize = 4;

#[derive(Debug)]
pub struct Machine {
    pub(super) registers: [u64; 3],
    pub(super) location: u64,
    pub(super) row: Row,
    /// Where that row began, and the one before that says something else.
    pub(super) row_start: u64,
    pub(super) before: (u64, Row),
    pub(super) frame_setup: Option<FrameSetup>,
    pub(super) initial: Row,
    pub(super) remembered: [Row; MAX_REMEMBERED],
    pub(super) depth: usize,
    /// Instructions that were run.
    pub(super) steps: u32,
    pub(super) common: Cie,
    /// Bytes of the function.
    pub(super) length: u64,
    /// From the first to behind the last instruction, of what is common and of the function's own.
    pub(super) common_instructions: (u64, u64),
    pub(super) instructions: (u64, u64),
}

impl Machine {
    pub(super) const fn new() -> Machine {
        let row = Row { cfa: Cfa::Register(0, 0), saved: [Saved::SAME; 3] };
        Machine {
            registers: [0; 3],
            location: 0,
            row,
            row_start: 0,
            before: (0, row),
            frame_setup: None,
            initial: row,
            remembered: [row; MAX_REMEMBERED],
            depth: 0,
            steps: 0,
            common: Cie::new(),
            length: 0,
            common_instructions: (0, 0),
            instructions: (0, 0),
        }
    }

    #[inline(never)]
    pub(super) fn prepare<M: Memory + ?Sized>(
        &mut self,
        reader: &mut Reader<'_, M>,
        description: u64,
    ) -> Option<()> {
        let (fields, end, common) = fde::head(reader, description)?;
        self.common.read(reader, common)?;
        self.common_instructions = (reader.at(), reader.end());
        reader.seek(fields, end)?;
        (self.location, self.length) = fde::function(reader, &self.common)?;
        self.instructions = (reader.at(), end);
        Some(())
    }

    /// Runs to the reader's end, or to the row that holds at `pc`.
    #[inline(never)]
    pub(super) fn run<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, pc: u64) -> Option<()> {
        while self.steps < MAX_STEPS {
            self.steps += 1;
            if reader.is_at_end() || self.location > pc {
                return Some(());
            }
            reader.prepare()?;
            let instruction = reader.byte()?;
            match instruction {
                DW_CFA_ADVANCE_LOC..=DW_CFA_ADVANCE_LOC_LAST => {
                    self.advance(u64::from(instruction & LOW_OPERAND))?
                }
                DW_CFA_OFFSET..=DW_CFA_OFFSET_LAST => {
                    let offset = reader.uleb()?;
                    let register = u64::from(instruction & LOW_OPERAND);
                    self.set(register, RegisterRule::AtCfa, self.common.factored(offset as i64));
                }
                DW_CFA_RESTORE..=DW_CFA_RESTORE_LAST => self.restore(u64::from(instruction & LOW_OPERAND)),
                DW_CFA_SET_LOC => {
                    let to = reader.pointer(self.common.encoding)?;
                    self.move_to(Some(to).filter(|&to| to >= self.location)?);
                }
                DW_CFA_ADVANCE_LOC1 => self.advance_by(reader, 1)?,
                DW_CFA_ADVANCE_LOC2 => self.advance_by(reader, 2)?,
                DW_CFA_ADVANCE_LOC4 => self.advance_by(reader, 4)?,
                DW_CFA_REMEMBER_STATE => {
                    *self.remembered.get_mut(self.depth)? = self.row;
                    self.depth += 1;
                }
                DW_CFA_RESTORE_STATE => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.row = *self.remembered.get(self.depth)?;
                }
                DW_CFA_NOP => {}
                // Return addresses are signed from here on.
                DW_CFA_AARCH64_NEGATE_RA_STATE if cfg!(target_arch = "aarch64") => {}
                DW_CFA_GNU_ARGS_SIZE => _ = reader.uleb()?,
                DW_CFA_DEF_CFA
                | DW_CFA_DEF_CFA_REGISTER
                | DW_CFA_DEF_CFA_OFFSET
                | DW_CFA_DEF_CFA_EXPRESSION
                | DW_CFA_DEF_CFA_SF
                | DW_CFA_DEF_CFA_OFFSET_SF => self.run_cfa(reader, instruction)?,
                _ => self.run_long(reader, instruction)?,
            }
        }
        None
    }

    /// Instructions that say where the CFA is.
    #[inline(never)]
    fn run_cfa<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, code: u8) -> Option<()> {
        if code == DW_CFA_DEF_CFA_EXPRESSION {
            let bytes = reader.uleb()?;
            self.row.cfa = Cfa::Expression { address: reader.at(), length: u16::try_from(bytes).ok()? };
            return reader.skip(bytes);
        }
        let (mut register, mut offset) = match self.row.cfa {
            Cfa::Register(register, offset) => (register, offset),
            // def_cfa and def_cfa_sf say both.
            Cfa::Expression { .. } if matches!(code, DW_CFA_DEF_CFA | DW_CFA_DEF_CFA_SF) => (0, 0),
            Cfa::Expression { .. } => return None,
        };
        if matches!(code, DW_CFA_DEF_CFA | DW_CFA_DEF_CFA_REGISTER | DW_CFA_DEF_CFA_SF) {
            register = u16::try_from(reader.uleb()?).ok()?;
        }
        match code {
            DW_CFA_DEF_CFA | DW_CFA_DEF_CFA_OFFSET => offset = reader.uleb()?,
            DW_CFA_DEF_CFA_SF | DW_CFA_DEF_CFA_OFFSET_SF => offset = self.common.factored(reader.sleb()?),
            _ => {}
        }
        self.row.cfa = Cfa::Register(register, offset);
        Some(())
    }

    /// Instructions with a register as an operand.
    #[inline(never)]
    fn run_long<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, code: u8) -> Option<()> {
        let register = reader.uleb()?;
        match code {
            DW_CFA_OFFSET_EXTENDED => {
                let offset = reader.uleb()? as i64;
                self.set(register, RegisterRule::AtCfa, self.common.factored(offset));
            }
            DW_CFA_RESTORE_EXTENDED => self.restore(register),
            DW_CFA_UNDEFINED => self.set(register, RegisterRule::Undefined, 0),
            DW_CFA_SAME_VALUE => self.set(register, RegisterRule::Same, 0),
            DW_CFA_REGISTER => {
                let other = reader.uleb()?;
                self.set(register, RegisterRule::Register, other);
            }
            DW_CFA_EXPRESSION => self.expression(reader, register, RegisterRule::At)?,
            DW_CFA_OFFSET_EXTENDED_SF => {
                let offset = reader.sleb()?;
                self.set(register, RegisterRule::AtCfa, self.common.factored(offset));
            }
            DW_CFA_VAL_OFFSET => {
                let offset = reader.uleb()? as i64;
                self.set(register, RegisterRule::Cfa, self.common.factored(offset));
            }
            DW_CFA_VAL_OFFSET_SF => {
                let offset = reader.sleb()?;
                self.set(register, RegisterRule::Cfa, self.common.factored(offset));
            }
            DW_CFA_VAL_EXPRESSION => self.expression(reader, register, RegisterRule::Value)?,
            DW_CFA_GNU_NEGATIVE_OFFSET_EXTENDED => {
                let offset = reader.uleb()? as i64;
                self.set(register, RegisterRule::AtCfa, self.common.factored(offset).wrapping_neg());
            }
            _ => return None,
        }
        Some(())
    }

    fn expression<M: Memory + ?Sized>(
        &mut self,
        reader: &mut Reader<'_, M>,
        register: u64,
        how: RegisterRule,
    ) -> Option<()> {
        let length = reader.uleb()?;
        let address = reader.at();
        reader.skip(length)?;
        let saved = Saved { how, length: u16::try_from(length).ok()?, value: address };
        self.replace(register, saved);
        Some(())
    }

    fn advance_by<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, size: u32) -> Option<()> {
        let distance = reader.unsigned(size)?;
        self.advance(distance)
    }

    fn advance(&mut self, distance: u64) -> Option<()> {
        self.move_to(self.location.checked_add(distance.wrapping_mul(self.common.code_factor))?);
        Some(())
    }

    fn move_to(&mut self, location: u64) {
        if location != self.location {
            self.end_row();
            (self.location, self.row_start) = (location, location);
        }
    }

    pub(super) fn end_row(&mut self) {
        let (start, before) = self.before;
        let is_of = |row: Row, register: u16| {
            let fp = Saved { how: RegisterRule::AtCfa, length: 0, value: -16_i64 as u64 };
            let [saved, ..] = row.saved;
            row.cfa == Cfa::Register(register, 16) && saved == fp
        };
        if is_of(before, u16::from(Native::SP)) && is_of(self.row, u16::from(Native::FP)) {
            self.frame_setup = Some(FrameSetup { pushed: start, moved: self.row_start });
        }
        if before != self.row {
            self.before = (self.row_start, self.row);
        }
    }

    fn set(&mut self, register: u64, how: RegisterRule, value: u64) {
        self.replace(register, Saved { how, length: 0, value });
    }

    fn replace(&mut self, register: u64, saved: Saved) {
        for (place, _) in self.row.saved.iter_mut().zip(self.registers).filter(|(_, own)| *own == register) {
            *place = saved;
        }
    }

    fn restore(&mut self, register: u64) {
        let initial = self.initial.saved;
        for ((place, own), initial) in self.row.saved.iter_mut().zip(self.registers).zip(initial) {
            if own == register {
                *place = initial;
            }
        }
    }
}

impl Cie {
    fn factored(&self, offset: i64) -> u64 {
        offset.wrapping_mul(self.data_factor) as u64
    }
}
