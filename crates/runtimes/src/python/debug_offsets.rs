//! CPython from 3.13 on says itself where it keeps what is read: `_PyRuntime` begins with these
//! numbers (`_Py_DebugOffsets` in its headers), for debuggers. Their order is another one in each
//! version.

use super::ROWS;
use super::layout::{Entry, Instruction, Row};
use super::orders::ORDERS;
use crate::content::LineTable;

/// Bytes that are read of `_PyRuntime`.
const WORDS: usize = 96;
const COOKIE: u64 = u64::from_ne_bytes(*b"xdebugpy");

/// Which of the numbers is which field of a [`Row`], counted from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub minor: u8,
    pub interpreters: usize,
    pub interpreter_next: usize,
    pub interpreter_threads: usize,
    pub thread_next: usize,
    pub thread_frame: usize,
    pub thread_ident: usize,
    pub thread_native: usize,
    pub frame_previous: usize,
    pub frame_code: usize,
    pub frame_instruction: usize,
    pub frame_owner: usize,
    /// Builds without the interpreter's lock, from 3.14 on: each thread has a copy of a function's
    /// instructions. Which one, and where the list is.
    pub frame_copy: usize,
    /// See `frame_copy`; 0: there are no copies.
    pub code_copies: usize,
    pub code_file: usize,
    pub code_name: usize,
    pub code_lines: usize,
    pub code_first_line: usize,
    /// The names of local variables.
    pub code_variables: usize,
    pub code_instructions: usize,
    pub object_type: usize,
    pub bytes_length: usize,
    pub bytes_data: usize,
    pub text_state: usize,
    pub text_length: usize,
    pub text_ascii: usize,
}

impl Row {
    /// The row of this minor version, or what `_PyRuntime`, copied by `read`, says itself. `None`:
    /// the version is not known.
    pub fn of_version(minor: u8, read: impl FnOnce(&mut [u8]) -> Option<()>) -> Option<Row> {
        if let Some(row) = ROWS.iter().find(|row| row.minor == minor) {
            return Some(*row);
        }
        let order = ORDERS.iter().find(|order| order.minor == minor)?;
        let mut bytes = [0; 8 * WORDS];
        read(&mut bytes)?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        of_debug_offsets(order, &words)
    }
}

fn of_debug_offsets(order: &Order, words: &[u64; WORDS]) -> Option<Row> {
    let [cookie, version, free_threaded] = words.first_chunk()?;
    if *cookie != COOKIE || version >> 16 != 0x0300 | u64::from(order.minor) {
        return None;
    }
    let word = |at: usize| words.get(at).copied().filter(|&offset| offset < 1 << 20);
    let at = word(order.frame_instruction)?;
    let has_copies = *free_threaded != 0 && order.code_copies != 0;
    let frame_instruction = match has_copies {
        true => {
            let (copy, copies) = (word(order.frame_copy)?, word(order.code_copies)?);
            Instruction::PointerIntoCopy { at, copy, copies }
        }
        false => Instruction::Pointer { at, code: word(order.code_instructions)? },
    };
    Some(Row {
        minor: order.minor,
        interpreters: word(order.interpreters)?,
        interpreter_next: word(order.interpreter_next)?,
        interpreter_threads: word(order.interpreter_threads)?,
        thread_next: word(order.thread_next)?,
        thread_ident: word(order.thread_ident)?,
        thread_native: Some(word(order.thread_native)?),
        thread_frame: word(order.thread_frame)?,
        c_frame: None,
        frame_previous: word(order.frame_previous)?,
        frame_code: word(order.frame_code)?,
        frame_instruction,
        frame_entry: Entry::Shim(word(order.frame_owner)?),
        line_table: LineTable::Locations,
        code_file: word(order.code_file)?,
        code_name: word(order.code_name)?,
        code_lines: word(order.code_lines)?,
        code_first_line: word(order.code_first_line)?,
        // Not among the numbers: the four bytes before the names of local variables.
        code_version: word(order.code_variables)?.checked_sub(4)?,
        object_type: word(order.object_type)?,
        bytes_length: word(order.bytes_length)?,
        bytes_data: word(order.bytes_data)?,
        text_state: word(order.text_state)?,
        // Since threads have copies of instructions, the bits before it are a byte.
        text_kind_bit: if has_copies { 8 } else { 2 },
        text_length: word(order.text_length)?,
        text_ascii: word(order.text_ascii)?,
        // Two more words: PyCompactUnicodeObject.
        text_compact: word(order.text_ascii)? + 16,
    })
}
