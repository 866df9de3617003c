//! Runs a frame description's instructions (DWARF 5, section 6.4.2), for three registers.
//!
//! Bounded in steps and in remembered rows, without allocation: it may run in a signal handler.

mod machine;

use crate::cfi_reader::{CfiBytes, Reader};
use crate::fde::{self, Cie};
use crate::memory::Memory;
use crate::register_rules::Saved;
use machine::Machine;

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
    /// Where the three registers are.
    pub(crate) saved: [Saved; 3],
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
        let [saved, ..] = self.row(memory, pc, [register; 3])?.saved;
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
        registers: [u8; 3],
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
    /// first of its registers.
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
