//! Runs a frame description's instructions (DWARF 5, section 6.4.2), for two registers.
//!
//! Bounded in steps and in remembered rows, without allocation: it may run in a signal handler.

use crate::arch::{Arch, Native};
use crate::cfi_reader::{CfiBytes, Reader};
use crate::fde::{self, Cie};
use crate::memory::Memory;
use crate::register_rules::{RegisterRule, Saved};

/// Instructions that are run at most for one frame. A function of 120 KB of GCC's C++ compiler has
/// more than 4096.
const MAX_STEPS: u32 = 32_768;
/// Deepest nesting of `remember_state` that is followed; compilers nest it once.
const MAX_REMEMBERED: usize = 4;

/// Where the CFA is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cfa {
    /// A register plus an offset; both are 0 until an instruction sets it.
    Register(u16, u64),
    /// What the expression of so many bytes at that address says.
    Expression { address: u64, length: u16 },
}

/// What holds at one pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cfa: Cfa,
    /// Where the two registers are.
    pub(crate) saved: [Saved; 2],
}

/// Where `mov %rsp,%rbp` follows `push %rbp`, by the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameSetup {
    /// Behind `push %rbp`.
    pub(crate) pushed: u64,
    /// Behind `mov %rsp,%rbp`.
    pub(crate) moved: u64,
}

/// A function that is described.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// Its first address.
    pub(crate) start: u64,
    /// The address behind its last.
    pub(crate) end: u64,
    /// Where the next one begins.
    pub(crate) next: Option<u64>,
}

impl Function {
    /// Whether `pc` is in it.
    pub(crate) fn contains(&self, pc: u64) -> bool {
        (self.start..self.end).contains(&pc)
    }
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

    /// Where the function at `pc` (a look-up address) keeps its caller's `register`, by the
    /// `.eh_frame_hdr` at `header` and what it leads to. `None`: no description, or none that is
    /// understood. Async-signal-safe.
    #[inline(never)]
    pub fn saved<M: Memory + ?Sized>(
        &mut self,
        memory: &mut M,
        header: u64,
        pc: u64,
        register: u8,
    ) -> Option<Saved> {
        let found = self.function(memory, header, pc)?;
        if !found.contains(pc) {
            return None;
        }
        let [saved, _] = self.row(memory, pc, [register; 2])?.saved;
        Some(saved)
    }

    /// The last function that begins at or before `pc`, by the `.eh_frame_hdr` at `header`.
    #[inline(never)]
    pub(crate) fn function<M: Memory + ?Sized>(
        &mut self,
        memory: &mut M,
        header: u64,
        pc: u64,
    ) -> Option<Function> {
        let Descriptions { window, machine } = self;
        *machine = Machine::new();
        let mut reader = Reader::new(memory, window);
        let entry = fde::search(&mut reader, header, pc)?;
        machine.prepare(&mut reader, entry.description)?;
        let (start, length) = (machine.location, machine.length);
        let end = start.checked_add(length).filter(|&end| start == entry.start && end > start)?;
        Some(Function { start, end, next: entry.next })
    }

    /// What the description of the function that was found last has in common with others.
    pub(crate) fn common(&self) -> &Cie {
        &self.machine.common
    }

    /// How many instructions were run since that function was found.
    pub(crate) fn instructions(&self) -> u32 {
        self.machine.steps
    }

    /// The row of `pc`, which is in the function that was found last.
    #[inline(never)]
    pub(crate) fn row<M: Memory + ?Sized>(
        &mut self,
        memory: &mut M,
        pc: u64,
        registers: [u8; 2],
    ) -> Option<Row> {
        let Descriptions { window, machine } = self;
        let mut reader = Reader::new(memory, window);
        machine.registers = registers.map(u64::from);
        let start = core::mem::replace(&mut machine.location, 0);
        let (at, end) = machine.common_instructions;
        reader.seek(at, end)?;
        machine.run(&mut reader, u64::MAX)?;
        machine.initial = machine.row;
        machine.location = start;
        (machine.row_start, machine.before) = (start, (start, machine.row));
        let (at, end) = machine.instructions;
        reader.seek(at, end)?;
        machine.run(&mut reader, pc)?;
        Some(machine.row)
    }

    /// The last such place before the pc whose row was read last, for the frame pointer as the
    /// first of its two registers.
    pub(crate) fn frame_setup(&mut self) -> Option<FrameSetup> {
        self.machine.end_row();
        self.machine.frame_setup
    }
}

impl Default for Descriptions {
    fn default() -> Descriptions {
        Descriptions::new()
    }
}

#[derive(Debug)]
struct Machine {
    registers: [u64; 2],
    location: u64,
    row: Row,
    /// Where that row began, and the one before that says something else.
    row_start: u64,
    before: (u64, Row),
    frame_setup: Option<FrameSetup>,
    initial: Row,
    remembered: [Row; MAX_REMEMBERED],
    depth: usize,
    /// Instructions that were run.
    steps: u32,
    common: Cie,
    /// Bytes of the function.
    length: u64,
    /// From the first to behind the last instruction, of what is common and of the function's own.
    common_instructions: (u64, u64),
    instructions: (u64, u64),
}

impl Machine {
    const fn new() -> Machine {
        let row = Row { cfa: Cfa::Register(0, 0), saved: [Saved::SAME; 2] };
        Machine {
            registers: [0; 2],
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
    fn prepare<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, description: u64) -> Option<()> {
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
    fn run<M: Memory + ?Sized>(&mut self, reader: &mut Reader<'_, M>, pc: u64) -> Option<()> {
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

    fn end_row(&mut self) {
        let (start, before) = self.before;
        let is_of = |row: Row, register: u16| {
            let fp = Saved { how: RegisterRule::AtCfa, length: 0, value: -16_i64 as u64 };
            let [saved, _] = row.saved;
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
