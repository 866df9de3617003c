//! CPython 3.13 says itself where it keeps what is read: `_PyRuntime` begins with these numbers
//! (`_Py_DebugOffsets` in its public headers), for debuggers.

use super::{ROWS, Row};

/// Bytes that are read of `_PyRuntime`.
const WORDS: usize = 72;
const COOKIE: u64 = u64::from_ne_bytes(*b"xdebugpy");

impl Row {
    /// The row of this minor version, or what `_PyRuntime`, copied by `read`, says itself. `None`:
    /// the version is not known, or is built without the interpreter's lock.
    pub fn of_version(minor: u8, read: impl FnOnce(&mut [u8]) -> Option<()>) -> Option<Row> {
        if let Some(row) = ROWS.iter().find(|row| row.minor == minor) {
            return Some(*row);
        }
        let mut bytes = [0; 8 * WORDS];
        read(&mut bytes)?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        (minor == 13).then(|| of_3_13(&words))?
    }
}

/// The order of the numbers in 3.13.
fn of_3_13(words: &[u64; WORDS]) -> Option<Row> {
    let [cookie, version, free_threaded] = words.first_chunk()?;
    if *cookie != COOKIE || version >> 16 != 0x030d || *free_threaded != 0 {
        return None;
    }
    let word = |at: usize| words.get(at).copied().filter(|&offset| offset < 1 << 20);
    Some(Row {
        minor: 13,
        interpreters: word(5)?,
        interpreter_next: word(8)?,
        interpreter_threads: word(9)?,
        thread_next: word(21)?,
        thread_ident: word(24)?,
        thread_native: word(25)?,
        thread_frame: word(23)?,
        c_frame: None,
        frame_previous: word(29)?,
        frame_code: word(30)?,
        frame_instruction: word(31)?,
        frame_owner: word(33)?,
        frame_is_entry: 0,
        code_file: word(35)?,
        code_name: word(37)?,
        code_lines: word(38)?,
        code_first_line: word(39)?,
        // Not among them: the four bytes before the names of local variables.
        code_version: word(41)?.checked_sub(4)?,
        code_instructions: word(43)?,
        object_type: word(45)?,
        bytes_length: word(65)?,
        bytes_data: word(66)?,
        text_state: word(68)?,
        text_length: word(69)?,
        text_ascii: word(70)?,
        // Two more words: PyCompactUnicodeObject.
        text_compact: word(70)? + 16,
    })
}
