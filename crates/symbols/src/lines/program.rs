//! A unit's line table, as the program that makes it (DWARF 5, 6.2). The program is run once, to
//! record which addresses begin at which places of it. After that it runs only from the nearest
//! such place on. The whole table would be ten times larger than the program, which is in the file
//! anyhow.
//!
//! gimli reads the table's header; it cannot run a program from a place in its middle.

use super::window::Window;
use crate::pages::PagedReader;
use gimli::{DwLne, DwLns, LineProgramHeader, Reader};
use swipr_unwind_tables::order::sorted_by;

/// Bytes of the program between two places from which it can be resumed.
const STRETCH_BYTES: usize = 1 << 10;
/// Bytes without a row that are passed over: more is no table of lines.
const MAX_BYTES_BETWEEN_ROWS: usize = 64 << 10;
/// From here on, addresses are those of what the linker left out.
const TOMBSTONES: u64 = u64::MAX - 1;

/// A row: the line of the code from its address to the next row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) address: u64,
    pub(super) file: u32,
    /// 0 for none.
    pub(super) line: u32,
}

/// Rows that follow one another, as the part of the program that makes them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineSequence {
    /// Of the first row.
    pub(super) begin: u64,
    pub(super) end: u64,
    file: u32,
    line: u32,
    /// Where the program continues behind the first row.
    from: u32,
    behind: u32,
}

/// What the header says of how the program is to be read.
#[derive(Debug)]
pub(super) struct Program {
    code: PagedReader,
    /// What the addresses of instructions are multiples of.
    unit: u64,
    line_base: i8,
    line_range: u8,
    opcode_base: u8,
    /// How many operands opcodes have.
    operands: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Registers {
    row: Row,
    is_tombstone: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Nothing,
    Row,
    EndOfSequence,
}

impl Program {
    /// The program behind a header.
    pub(super) fn of(header: &LineProgramHeader<PagedReader>) -> Program {
        Program {
            code: header.raw_program_buf(),
            unit: u64::from(header.minimum_instruction_length()),
            line_base: header.line_base(),
            line_range: header.line_range(),
            opcode_base: header.opcode_base(),
            operands: header.standard_opcode_lengths().to_slice().unwrap_or_default().into_owned(),
        }
    }

    /// All stretches of the code from `code_begin` on, by where they begin; at most so many. What
    /// is malformed ends them.
    pub(super) fn stretches(&self, code_begin: u64, most: usize) -> Vec<LineSequence> {
        let (mut found, mut open) = (Vec::new(), None::<LineSequence>);
        let mut registers = Registers::new(code_begin);
        let mut window = Window::new(self.code.clone());
        let (mut at, mut last_row) = (0, 0);
        while found.len() < most && at - last_row < MAX_BYTES_BETWEEN_ROWS && u32::try_from(at).is_ok() {
            let Ok(code @ [_, ..]) = window.from(at) else { break };
            let Some((length, step)) = self.step(&mut registers, code) else {
                if window.more(at) {
                    continue;
                }
                break;
            };
            // A length may be any number.
            at = at.saturating_add(length);
            if step == Step::Nothing {
                continue;
            }
            last_row = at;
            let row = registers.row;
            let ended =
                open.filter(|open| step == Step::EndOfSequence || at - open.from as usize >= STRETCH_BYTES);
            // Of several rows of one address the last holds: a stretch without code is none.
            found.extend(ended.filter(|ended| ended.begin < row.address).map(|ended| LineSequence {
                end: row.address,
                behind: at as u32,
                ..ended
            }));
            if step == Step::EndOfSequence {
                (open, registers) = (None, Registers::new(code_begin));
            } else if open.is_none() || ended.is_some() {
                let Row { address, file, line } = row;
                open = Some(LineSequence {
                    begin: address,
                    end: address,
                    file,
                    line,
                    from: at as u32,
                    behind: 0,
                });
            }
        }
        sorted_by(&found, |stretch| stretch.begin)
    }

    /// The row that an address of a stretch is in.
    pub(super) fn row(&self, stretch: &LineSequence, address: u64) -> Row {
        let mut found = stretch.first();
        self.each(stretch, |row| {
            let is_before = row.address <= address;
            if is_before {
                found = row;
            }
            is_before
        });
        found
    }

    /// Calls back with the rows of a stretch, by address, until the answer is no.
    pub(super) fn each(&self, stretch: &LineSequence, mut wants_more: impl FnMut(Row) -> bool) {
        let mut code = vec![0; stretch.behind.saturating_sub(stretch.from) as usize];
        let mut reader = self.code.clone();
        if reader.skip(stretch.from as usize).and_then(|()| reader.read_slice(&mut code)).is_err() {
            return;
        }
        let mut registers = Registers { row: stretch.first(), is_tombstone: false };
        let mut goes_on = wants_more(registers.row);
        let mut rest = &*code;
        while goes_on && let Some((length, step)) = self.step(&mut registers, rest) {
            rest = rest.get(length..).unwrap_or_default();
            goes_on = match step {
                Step::Nothing => true,
                Step::Row => registers.row.address < stretch.end && wants_more(registers.row),
                Step::EndOfSequence => false,
            };
        }
    }

    /// Does what the first instruction of `code` says; how long that is. `None`: it is not whole,
    /// and nothing is done.
    fn step(&self, registers: &mut Registers, code: &[u8]) -> Option<(usize, Step)> {
        let mut code = Code { bytes: code, at: 0 };
        let opcode = code.byte()?;
        let row = &mut registers.row;
        let mut step = Step::Nothing;
        if opcode == 0 {
            let length = usize::try_from(code.unsigned()?).ok()?;
            let end = code.at.checked_add(length)?;
            match DwLne(code.byte()?) {
                gimli::DW_LNE_end_sequence => step = Step::EndOfSequence,
                gimli::DW_LNE_set_address => {
                    let address = code.number(length.checked_sub(1)?)?;
                    // Nothing goes back within a sequence, or before the code: it is of code that
                    // the linker left out.
                    registers.is_tombstone = address < row.address || address >= TOMBSTONES;
                    if !registers.is_tombstone {
                        row.address = address;
                    }
                }
                _ => {}
            }
            return Some((end, registers.seen(step)));
        }
        if opcode >= self.opcode_base {
            let line = self.advance(registers, opcode)?;
            registers.row.line = registers.row.line.wrapping_add_signed(line);
            return Some((code.at, registers.seen(Step::Row)));
        }
        match DwLns(opcode) {
            gimli::DW_LNS_copy => step = Step::Row,
            gimli::DW_LNS_advance_pc => {
                let by = code.unsigned()?.checked_mul(self.unit)?;
                registers.advance(by)?;
            }
            gimli::DW_LNS_advance_line => row.line = row.line.wrapping_add(code.signed()? as u32),
            gimli::DW_LNS_set_file => row.file = u32::try_from(code.unsigned()?).unwrap_or(u32::MAX),
            gimli::DW_LNS_const_add_pc => {
                self.advance(registers, u8::MAX)?;
            }
            gimli::DW_LNS_fixed_advance_pc => {
                let by = code.number(2)?;
                registers.advance(by)?;
            }
            _ => {
                for _ in 0..self.operands.get(usize::from(opcode) - 1).copied().unwrap_or(0) {
                    code.unsigned()?;
                }
            }
        }
        Some((code.at, registers.seen(step)))
    }

    /// Moves the address as a special opcode says; by how much it moves the line.
    fn advance(&self, registers: &mut Registers, opcode: u8) -> Option<i32> {
        let adjusted = opcode.wrapping_sub(self.opcode_base);
        let by = u64::from(adjusted.checked_div(self.line_range)?) * self.unit;
        registers.advance(by)?;
        Some(i32::from(self.line_base) + i32::from(adjusted.checked_rem(self.line_range)?))
    }
}

impl LineSequence {
    fn first(&self) -> Row {
        Row { address: self.begin, file: self.file, line: self.line }
    }
}

impl Registers {
    /// Of a new sequence, whose address is 0 until it says otherwise.
    fn new(code_begin: u64) -> Registers {
        Registers { row: Row { address: code_begin, file: 1, line: 1 }, is_tombstone: code_begin != 0 }
    }

    fn advance(&mut self, by: u64) -> Option<()> {
        if !self.is_tombstone {
            self.row.address = self.row.address.checked_add(by)?;
        }
        Some(())
    }

    /// Rows of what the linker left out are none.
    fn seen(self, step: Step) -> Step {
        if self.is_tombstone && step == Step::Row { Step::Nothing } else { step }
    }
}

/// Bytes of a program, and how many were read.
struct Code<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Code<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    fn number(&mut self, bytes: usize) -> Option<u64> {
        let mut number = [0; 8];
        let part = self.bytes.get(self.at..self.at.checked_add(bytes)?)?;
        number.get_mut(..bytes)?.copy_from_slice(part);
        self.at += bytes;
        Some(u64::from_le_bytes(number))
    }

    fn unsigned(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0_u32);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                return Some(number);
            }
        }
    }

    fn signed(&mut self) -> Option<i64> {
        let first = self.at;
        let number = self.unsigned()?;
        let bits = 7 * (self.at - first) as u32;
        Some(if bits < 64 { (number << (64 - bits)) as i64 >> (64 - bits) } else { number as i64 })
    }
}
