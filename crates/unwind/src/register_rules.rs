//! Where a frame keeps its caller's value of one register: the frame
//! description's instructions (DWARF 5, section 6.4.2), run for that one register.
//!
//! Bounded in steps and in remembered states, without allocation: it may run in a signal
//! handler. The CFA is not computed here: it comes from the unwind table.

use crate::cfi_reader::{CfiBytes, Reader};
use crate::fde::{self, Cie};
use crate::memory::Memory;

/// Instructions that are run at most for one frame.
const MAX_STEPS: usize = 4096;
/// Deepest nesting of `remember_state` that is followed; compilers nest it once.
const MAX_REMEMBERED: usize = 4;

/// How a register is saved; see [`Saved`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RegisterRule {
    /// It still holds the caller's value.
    Same,
    /// The caller's value is lost.
    Undefined,
    /// In memory at CFA + `value`.
    AtCfa,
    /// It is CFA + `value`.
    Cfa,
    /// In the register `value`.
    Register,
    /// In memory where the expression at `value` says; the CFA is pushed first.
    At,
    /// What the expression at `value` says; the CFA is pushed first.
    Value,
}

/// Where the caller's value of a register is. Sixteen bytes: the handler's stack is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// How to read `value`.
    pub how: RegisterRule,
    /// Bytes of the expression.
    pub length: u16,
    /// An offset, a register or an address; see [`RegisterRule`].
    pub value: u64,
}

impl Saved {
    /// Unchanged: holds for a register that no instruction mentions.
    pub const SAME: Saved = Saved { how: RegisterRule::Same, length: 0, value: 0 };
}

/// Room for reading descriptions.
#[derive(Debug)]
pub struct Descriptions {
    window: CfiBytes,
    machine: Machine,
}

impl Descriptions {
    /// Nothing was read yet.
    pub const fn new() -> Descriptions {
        Descriptions { window: CfiBytes::new(), machine: Machine::new() }
    }
}

impl Default for Descriptions {
    fn default() -> Descriptions {
        Descriptions::new()
    }
}

/// Where the function at `pc` (a look-up address) keeps its caller's `register`, by the
/// `.eh_frame_hdr` at `header` and what it leads to. `None`: no description, or none that is
/// understood. Async-signal-safe.
#[inline(never)]
pub fn find<M: Memory + ?Sized>(
    memory: &mut M,
    header: u64,
    pc: u64,
    register: u8,
    room: &mut Descriptions,
) -> Option<Saved> {
    let Descriptions { window, machine } = room;
    *machine = Machine::new();
    machine.register = u64::from(register);
    let mut reader = Reader::new(memory, window);
    let description = fde::search(&mut reader, header, pc)?;
    machine.prepare(&mut reader, description)?;
    // First the common entry's instructions, then the function's own.
    machine.run(&mut reader, u64::MAX)?;
    machine.initial = machine.saved;
    let (fields, end) = machine.fields;
    reader.seek(fields, end)?;
    machine.location = fde::function(&mut reader, &machine.common, pc)?;
    machine.run(&mut reader, pc)?;
    Some(machine.saved)
}

#[derive(Debug)]
struct Machine {
    register: u64,
    location: u64,
    saved: Saved,
    initial: Saved,
    remembered: [Saved; MAX_REMEMBERED],
    depth: usize,
    common: Cie,
    /// Where the function's own part of its description begins and ends.
    fields: (u64, u64),
}

impl Machine {
    const fn new() -> Machine {
        Machine {
            register: 0,
            location: 0,
            saved: Saved::SAME,
            initial: Saved::SAME,
            remembered: [Saved::SAME; MAX_REMEMBERED],
            depth: 0,
            common: Cie::new(),
            fields: (0, 0),
        }
    }

    #[inline(never)]
    fn prepare<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, description: u64) -> Option<()> {
        let (fields, end, common) = fde::head(reader, description)?;
        self.fields = (fields, end);
        self.common.read(reader, common)
    }

    /// Runs to the reader's end, or to the row that holds at `pc`.
    #[inline(never)]
    fn run<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, pc: u64) -> Option<()> {
        for _ in 0..MAX_STEPS {
            if reader.is_at_end() || self.location > pc {
                return Some(());
            }
            reader.prepare()?;
            let instruction = reader.byte()?;
            match instruction {
                0x40..=0x7f => self.advance(u64::from(instruction & 0x3f))?,
                0x80..=0xbf => {
                    let offset = reader.uleb()?;
                    self.set(
                        u64::from(instruction & 0x3f),
                        RegisterRule::AtCfa,
                        self.common.factored(offset as i64),
                    );
                }
                0xc0..=0xff => self.restore(u64::from(instruction & 0x3f)),
                0x01 => self.location = reader.pointer(self.common.encoding)?,
                0x02 => self.advance_by(reader, 1)?,
                0x03 => self.advance_by(reader, 2)?,
                0x04 => self.advance_by(reader, 4)?,
                0x0a => {
                    *self.remembered.get_mut(self.depth)? = self.saved;
                    self.depth += 1;
                }
                0x0b => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.saved = *self.remembered.get(self.depth)?;
                }
                _ => self.run_long(reader, instruction)?,
            }
        }
        None
    }

    /// Instructions with the register as an operand, and those that say nothing of registers.
    #[inline(never)]
    fn run_long<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, code: u8) -> Option<()> {
        match code {
            // nop; return addresses are signed from here on (aarch64)
            0x00 | 0x2d => return Some(()),
            // def_cfa_register, def_cfa_offset, args_size; def_cfa_offset_sf
            0x0d | 0x0e | 0x2e | 0x13 => return reader.uleb().map(drop),
            // def_cfa; def_cfa_sf
            0x0c | 0x12 => {
                reader.uleb()?;
                return reader.uleb().map(drop);
            }
            // def_cfa_expression
            0x0f => {
                let length = reader.uleb()?;
                return reader.skip(length);
            }
            _ => {}
        }
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
        if register == self.register {
            self.saved = Saved { how, length: u16::try_from(length).ok()?, value: address };
        }
        Some(())
    }

    fn advance_by<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, size: u32) -> Option<()> {
        let distance = reader.unsigned(size)?;
        self.advance(distance)
    }

    fn advance(&mut self, distance: u64) -> Option<()> {
        self.location = self.location.checked_add(distance.wrapping_mul(self.common.code_factor))?;
        Some(())
    }

    fn set(&mut self, register: u64, how: RegisterRule, value: u64) {
        if register == self.register {
            self.saved = Saved { how, length: 0, value };
        }
    }

    fn restore(&mut self, register: u64) {
        if register == self.register {
            self.saved = self.initial;
        }
    }
}

impl Cie {
    fn factored(&self, offset: i64) -> u64 {
        offset.wrapping_mul(self.data_factor) as u64
    }
}
