//! What runs the instructions: its registers, and the rows so far.

use super::{Cfa, FrameSetup, Row};
use crate::arch::{Arch, Native};
use crate::cfi_reader::Reader;
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
                0x40..=0x7f => self.advance(u64::from(instruction & 0x3f))?,
                0x80..=0xbf => {
                    let offset = reader.uleb()?;
                    let register = u64::from(instruction & 0x3f);
                    self.set(register, RegisterRule::AtCfa, self.common.factored(offset as i64));
                }
                0xc0..=0xff => self.restore(u64::from(instruction & 0x3f)),
                0x01 => {
                    let to = reader.pointer(self.common.encoding)?;
                    self.move_to(Some(to).filter(|&to| to >= self.location)?);
                }
                0x02 => self.advance_by(reader, 1)?,
                0x03 => self.advance_by(reader, 2)?,
                0x04 => self.advance_by(reader, 4)?,
                0x0a => {
                    *self.remembered.get_mut(self.depth)? = self.row;
                    self.depth += 1;
                }
                0x0b => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.row = *self.remembered.get(self.depth)?;
                }
                0x00 => {}
                // Return addresses are signed from here on.
                0x2d if cfg!(target_arch = "aarch64") => {}
                // args_size
                0x2e => _ = reader.uleb()?,
                0x0c | 0x0d | 0x0e | 0x0f | 0x12 | 0x13 => self.run_cfa(reader, instruction)?,
                _ => self.run_long(reader, instruction)?,
            }
        }
        None
    }

    /// Instructions that say where the CFA is.
    #[inline(never)]
    fn run_cfa<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, code: u8) -> Option<()> {
        if code == 0x0f {
            let bytes = reader.uleb()?;
            self.row.cfa = Cfa::Expression { address: reader.at(), length: u16::try_from(bytes).ok()? };
            return reader.skip(bytes);
        }
        let (mut register, mut offset) = match self.row.cfa {
            Cfa::Register(register, offset) => (register, offset),
            // def_cfa and def_cfa_sf say both.
            Cfa::Expression { .. } if matches!(code, 0x0c | 0x12) => (0, 0),
            Cfa::Expression { .. } => return None,
        };
        // def_cfa, def_cfa_register, def_cfa_sf
        if matches!(code, 0x0c | 0x0d | 0x12) {
            register = u16::try_from(reader.uleb()?).ok()?;
        }
        match code {
            // def_cfa, def_cfa_offset
            0x0c | 0x0e => offset = reader.uleb()?,
            // def_cfa_sf, def_cfa_offset_sf
            0x12 | 0x13 => offset = self.common.factored(reader.sleb()?),
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
            0x05 => {
                let offset = reader.uleb()? as i64;
                self.set(register, RegisterRule::AtCfa, self.common.factored(offset));
            }
            0x06 => self.restore(register),
            0x07 => self.set(register, RegisterRule::Undefined, 0),
            0x08 => self.set(register, RegisterRule::Same, 0),
            0x09 => {
                let other = reader.uleb()?;
                self.set(register, RegisterRule::Register, other);
            }
            0x10 => self.expression(reader, register, RegisterRule::At)?,
            0x11 => {
                let offset = reader.sleb()?;
                self.set(register, RegisterRule::AtCfa, self.common.factored(offset));
            }
            0x14 => {
                let offset = reader.uleb()? as i64;
                self.set(register, RegisterRule::Cfa, self.common.factored(offset));
            }
            0x15 => {
                let offset = reader.sleb()?;
                self.set(register, RegisterRule::Cfa, self.common.factored(offset));
            }
            0x16 => self.expression(reader, register, RegisterRule::Value)?,
            0x2f => {
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
