//! CPython: where a thread's frames are, and what they say.
//!
//! A thread state leads to the current frame, each frame to the one that called it. A native call
//! of the evaluator runs a whole segment of frames.

mod debug_offsets;
mod layout;
mod orders;
mod rows;
mod several;
#[cfg(feature = "names")]
mod thread_name;

use crate::blocks::BlockMemory;
use crate::content::{HEAD, put_head};
use crate::hash::{hash, hash_of};
use crate::known::KnownKeys;
use crate::room::{Chain, End, Frame};
use core::ops::Range;

use layout::{Entry, Instruction};
pub use layout::{Layout, NativeCalls, Row, ThreadKey};
pub use rows::ROWS;
use several::{MORE_STATES, STATES};
#[cfg(feature = "names")]
pub use thread_name::thread_name;

/// Names and paths are kept up to these lengths in bytes, line tables up to this one.
const MAX_NAME: usize = 512;
const MAX_FILE: usize = 1024;
const MAX_TABLE: usize = 16 * 1024;
/// Frames that are followed, shims included.
const MAX_STEPS: usize = 8192;
/// Blocks that are left for what functions are called.
const FOR_NAMES: usize = 64;
/// Bytes of a name and of a path that are read at once: the head and most of them.
const NAME_BYTES: usize = 112;
const FILE_BYTES: usize = 256;
/// The same of a line table, and how many of its bytes are compared: 99 of 100 functions of the
/// standard library have no more.
const TABLE_BYTES: usize = 256;
const MAX_COMPARED: usize = 1024;
/// Frames whose functions are read at once.
const GROUP: usize = 16;
/// From this owner on a frame represents a native call of the evaluator, not a function.
const SHIM: u8 = 3;
/// From this minor version on the outermost frame of a thread is a shim that its state has.
const WITH_BASE: u8 = 15;
/// Where a type has its flags (`tp_flags`), behind its own type, and what they say of strings.
const TYPE_FLAGS: u64 = 160;
const TEXT_SUBCLASS: u64 = 1 << 28;

/// Reads the frames of the thread whose state is at `state`; 0: it is not known. The thread stands
/// still.
pub fn walk(
    layout: &Layout,
    state: u64,
    (thread, native): (ThreadKey, NativeCalls),
    memory: &mut BlockMemory<'_>,
    known: KnownKeys<'_>,
    chain: &mut Chain,
) {
    chain.begin();
    let mut walk = Walk { layout, memory, known, chain, file: (0, 0) };
    let end = walk.run_thread(state, thread, native);
    chain.finish(end.unwrap_or_else(|end| end));
}

struct Walk<'w, 'p, 'k> {
    layout: &'w Layout,
    memory: &'w mut BlockMemory<'p>,
    known: KnownKeys<'k>,
    chain: &'w mut Chain,
    /// The string that the last function's file is, and its hash.
    file: (u64, u64),
}

impl Walk<'_, '_, '_> {
    fn word(&mut self, structure: u64, at: u64) -> Result<u64, End> {
        structure.checked_add(at).and_then(|at| self.memory.word(at)).ok_or(End::Unreadable)
    }

    fn byte(&mut self, structure: u64, at: u64) -> Result<u8, End> {
        structure.checked_add(at).and_then(|at| self.memory.byte(at)).ok_or(End::Unreadable)
    }

    fn run_thread(&mut self, state: u64, thread: ThreadKey, native: NativeCalls) -> Result<End, End> {
        let is_only = self.is_only_state(state, thread);
        if is_only {
            let end = self.follow_all([state].into_iter());
            if end != End::Root || self.has_all(native) {
                return Ok(self.name_all(end));
            }
        }
        // It may have ended: C code that calls Python makes a state for each call. Or the thread
        // has another one besides it. Where greenlets switch, calls have no frames, but one state.
        let mut most = STATES;
        loop {
            let states = match self.states_in_use(state, thread, native.sp, most) {
                Err(End::Unreadable) if is_only && !self.chain.frames().is_empty() => {
                    return Ok(self.name_all(End::Root));
                }
                states => states?,
            };
            if !states.has_one {
                return Err(End::NoState);
            }
            self.chain.truncate(0);
            let end = self.follow_all(states.iter());
            if end != End::Root || is_only || most == MORE_STATES || self.has_all(native) {
                return Ok(self.name_all(end));
            }
            most = MORE_STATES;
        }
    }

    /// Whether there are frames, and segments of them for all calls of the evaluator.
    fn has_all(&self, native: NativeCalls) -> bool {
        let frames = self.chain.frames();
        !frames.is_empty() && frames.iter().filter(|frame| frame.is_entry).count() >= native.calls
    }

    /// The frames, which lie close together.
    fn follow_all(&mut self, mut states: impl Iterator<Item = u64>) -> End {
        let followed = states.try_fold(End::Root, |end, state| match end {
            End::Root => self.follow(state),
            end => Ok(end),
        });
        followed.unwrap_or_else(|end| if self.memory.is_used_up() { End::Full } else { end })
    }

    /// Their functions, in groups. `end`: of the frames.
    fn name_all(&mut self, mut end: End) -> End {
        let mut at = 0;
        while at < self.chain.frames().len() && matches!(end, End::Root | End::Full) {
            let group = at..at + GROUP;
            self.prefetch(group.clone());
            for at in group {
                match self.name(at) {
                    Ok(()) => {}
                    Err(_) if self.memory.is_used_up() => {
                        self.chain.truncate(at);
                        end = End::Full;
                    }
                    Err(end) => return end,
                }
            }
            at += GROUP;
        }
        end
    }

    /// Adds all frames, each with the address of its code for the key.
    fn follow(&mut self, state: u64) -> Result<End, End> {
        let row = self.layout.row;
        let frame = self.word(state, row.thread_frame)?;
        let Some(current) = row.c_frame else { return self.follow_frames(frame) };
        let begin = self.chain.frames().len();
        let innermost = self.word(frame, current)?;
        match self.follow_frames(innermost) {
            // The evaluator has just been entered: it fills its own structure after it has linked
            // it to the one before.
            Err(wrong) if !self.memory.is_used_up() => {
                self.chain.truncate(begin);
                let before = self.word(frame, current + 8).and_then(|before| self.word(before, current));
                before.and_then(|frame| self.follow_frames(frame)).map_err(|_| wrong)
            }
            followed => followed,
        }
    }

    /// The same from the innermost frame on.
    fn follow_frames(&mut self, mut frame: u64) -> Result<End, End> {
        let row = self.layout.row;
        for _ in 0..MAX_STEPS {
            if frame == 0 {
                // Until the evaluator has linked a frame to its callers, it has none.
                let is_linked = self.chain.frames().last().is_none_or(|outermost| outermost.is_entry);
                return if is_linked { Ok(End::Root) } else { Err(End::Inconsistent) };
            }
            if !frame.is_multiple_of(8) {
                return Err(End::Inconsistent);
            }
            if self.memory.left() < FOR_NAMES {
                return Ok(End::Full);
            }
            let is_entry = match row.frame_entry {
                Entry::Each => Some(true),
                Entry::Flag(at) => Some(self.byte(frame, at)? != 0),
                Entry::Shim(at) => (self.byte(frame, at)? < SHIM).then_some(false),
            };
            match is_entry {
                None => {
                    if !self.end_segment(frame)? {
                        return Ok(End::Full);
                    }
                }
                Some(is_entry) => {
                    // The low bits may be tags.
                    let code = self.word(frame, row.frame_code)? & !7;
                    let offset = self.offset(frame, code)?;
                    if !self.chain.push(Frame { key: code, offset, is_entry, ..Frame::default() }) {
                        return Ok(End::Full);
                    }
                }
            }
            frame = self.word(frame, row.frame_previous)?;
        }
        Ok(End::Full)
    }

    /// At a shim: the frames before it were run by its call of the evaluator. A call has none any
    /// more while it clears its outermost frame, which runs other functions. `false`: there is no
    /// room.
    fn end_segment(&mut self, shim: u64) -> Result<bool, End> {
        let row = self.layout.row;
        let is_empty = self.chain.frames().last().is_none_or(|outer| outer.is_entry);
        if !is_empty {
            self.chain.mark_entry();
            return Ok(true);
        }
        // That one is of the thread's state, and of no call.
        let is_base = row.minor >= WITH_BASE && self.word(shim, row.frame_previous)? == 0;
        Ok(is_base || self.chain.push(Frame { is_entry: true, ..Frame::default() }))
    }

    /// Bytes from the start of a frame's code to its instruction; less than 0: nothing has run.
    fn offset(&mut self, frame: u64, code: u64) -> Result<i32, End> {
        let offset = |at: u64, start: u64| at.wrapping_sub(start) as i64 as i32;
        Ok(match self.layout.row.frame_instruction {
            Instruction::Pointer { at, code: start } => {
                offset(self.word(frame, at)?, code.wrapping_add(start))
            }
            Instruction::PointerIntoCopy { at, copy, copies } => {
                let number = u64::from(self.word(frame, copy)? as u32);
                let list = self.word(code, copies)?;
                // Behind how many there are.
                let start = self.word(list, 8 + 8 * number)?;
                offset(self.word(frame, at)?, start)
            }
            Instruction::Number { at, bytes } => (self.word(frame, at)? as i32).saturating_mul(bytes),
        })
    }

    /// Reads what the functions of a group of frames need, at once.
    fn prefetch(&mut self, group: Range<usize>) {
        let row = self.layout.row;
        let frames = self.chain.frames().get(group.start..).unwrap_or_default();
        let new = |code: &u64| *code != 0 && self.chain.met(*code).is_none();
        let codes = frames.iter().take(GROUP).map(|frame| frame.key).filter(new);
        self.memory.prefetch(codes, row.code_bytes());
        if row.code_version != 0 {
            return;
        }
        for (part, bytes) in
            [(row.code_name, NAME_BYTES), (row.code_file, FILE_BYTES), (row.code_lines, TABLE_BYTES)]
        {
            let mut texts = [0; GROUP];
            for (at, text) in group.clone().zip(&mut texts) {
                let code = self.chain.frames().get(at).map(|frame| frame.key);
                let code = code.filter(|&code| self.chain.met(code).is_none());
                *text = code.and_then(|code| self.word(code, part).ok()).unwrap_or(0);
            }
            self.memory.prefetch(texts.into_iter().filter(|&text| text != 0), bytes);
        }
    }

    /// Puts the function of the frame with this number, if there is one, in the place of its code.
    fn name(&mut self, at: usize) -> Result<(), End> {
        let frame = self.chain.get(at).filter(|frame| frame.key != 0);
        let Some(frame) = frame else { return Ok(()) };
        let code = frame.key;
        let function = match self.chain.met(code) {
            Some(function) => function,
            None => {
                let function = self.function(code)?;
                self.chain.remember(code, function);
                function
            }
        };
        self.chain.set(at, Frame { key: function.key, content: function.content, ..frame });
        Ok(())
    }

    /// The function of a code object: its key, and its content if that is not known.
    fn function(&mut self, code: u64) -> Result<Frame, End> {
        let row = self.layout.row;
        self.expect_type(code, self.layout.code_type)?;
        let name = self.word(code, row.code_name)?;
        let file = self.word(code, row.code_file)?;
        let table = self.word(code, row.code_lines)?;
        let first_line = self.word(code, row.code_first_line)? as u32;
        let key = match row.code_version {
            0 => {
                let size = self.memory.word(code + row.bytes_length).ok_or(End::Unreadable)?;
                if self.file.0 != file {
                    self.file = (file, self.hash_of_text(file, MAX_FILE)?);
                }
                let texts = [self.hash_of_text(name, MAX_NAME)?, self.file.1];
                // The next code object of that name may get the places of the last one.
                let lines = self.hash_of_table(table)?;
                let numbers = hash([u64::from(first_line), size, lines]);
                hash([code, name, file, table, numbers, texts[0], texts[1]])
            }
            at => hash([code, file, table, u64::from(first_line), self.word(code, at)? as u32 as u64]),
        };
        let is_known = self.known.has(key);
        let content = if is_known { 0 } else { self.copy([name, file, table], first_line)? };
        Ok(Frame { key, content, ..Frame::default() })
    }

    /// Copies the content of a function; returns where it is.
    fn copy(&mut self, [name, file, table]: [u64; 3], first_line: u32) -> Result<u16, End> {
        let (name, file) = (self.text(name, MAX_NAME)?, self.text(file, MAX_FILE)?);
        self.expect_type(table, self.layout.bytes_type)?;
        let total = self.word(table, self.layout.row.bytes_length)?;
        let total = u32::try_from(total).map_err(|_| End::Inconsistent)?;
        let free = self.chain.free();
        let names = HEAD + name.bytes + file.bytes;
        // Without room for the table the function has its name, and no lines.
        let fits = |kept: usize| free.len() >= names + kept;
        let kept = Some((total as usize).min(MAX_TABLE)).filter(|&kept| fits(kept)).unwrap_or(0);
        let (name_bytes, file_bytes) = (name.bytes as u32, file.bytes as u32);
        let lines = self.layout.row.line_table as u32;
        let head = [first_line, name.kind, name_bytes, file.kind, file_bytes, total, kept as u32, lines];
        let content = free.get_mut(..names + kept).ok_or(End::Full)?;
        let (into_head, rest) = content.split_at_mut_checked(HEAD).ok_or(End::Full)?;
        put_head(into_head, head);
        let (into_name, rest) = rest.split_at_mut_checked(name.bytes).ok_or(End::Full)?;
        let (into_file, into_table) = rest.split_at_mut_checked(file.bytes).ok_or(End::Full)?;
        let table = table.wrapping_add(self.layout.row.bytes_data);
        for (at, into) in [(name.at, into_name), (file.at, into_file), (table, into_table)] {
            self.memory.copy(at, into).ok_or(End::Unreadable)?;
        }
        self.chain.keep(names + kept).ok_or(End::Full)
    }

    fn hash_of_text(&mut self, object: u64, at_most: usize) -> Result<u64, End> {
        let text = self.text(object, at_most)?;
        let free = self.chain.free().get_mut(..text.bytes).ok_or(End::Full)?;
        self.memory.copy(text.at, free).ok_or(End::Unreadable)?;
        Ok(hash_of(free))
    }

    fn hash_of_table(&mut self, table: u64) -> Result<u64, End> {
        let row = self.layout.row;
        let length = self.word(table, row.bytes_length)?;
        let compared = usize::try_from(length).unwrap_or(MAX_COMPARED).min(MAX_COMPARED);
        let free = self.chain.free().get_mut(..compared).ok_or(End::Full)?;
        self.memory.copy(table.wrapping_add(row.bytes_data), free).ok_or(End::Unreadable)?;
        Ok(hash([length, hash_of(free)]))
    }

    fn expect_type(&mut self, object: u64, expected: u64) -> Result<(), End> {
        if !object.is_multiple_of(8) || self.word(object, self.layout.row.object_type)? != expected {
            return Err(End::Inconsistent);
        }
        Ok(())
    }

    /// Where the characters of a string are. Programs may compile with a path of a class of theirs.
    fn text(&mut self, object: u64, at_most: usize) -> Result<Text, End> {
        let row = self.layout.row;
        if self.expect_type(object, self.layout.text_type).is_err() {
            let class = self.word(object, row.object_type)?;
            let flags = self.word(class, row.object_type + TYPE_FLAGS)?;
            if !object.is_multiple_of(8) || flags & TEXT_SUBCLASS == 0 {
                return Err(End::Inconsistent);
            }
        }
        let length = self.word(object, row.text_length)?;
        let state = self.word(object, row.text_state)? as u32;
        // PEP 393: kind:3, compact:1, ascii:1.
        let state = state >> row.text_kind_bit;
        let (kind, is_compact, is_ascii) = (state & 7, state >> 3 & 1 == 1, state >> 4 & 1 == 1);
        match (kind, u32::try_from(length)) {
            (1 | 2 | 4, Ok(length)) => {
                let at = match is_compact {
                    true => object.wrapping_add(if is_ascii { row.text_ascii } else { row.text_compact }),
                    false => self.word(object, row.text_compact)?,
                };
                // Whole characters.
                let bytes = (length as usize).saturating_mul(kind as usize).min(at_most & !3);
                Ok(Text { at, kind, bytes })
            }
            _ => Err(End::Inconsistent),
        }
    }
}

/// The characters of a string, `kind` bytes each.
struct Text {
    at: u64,
    kind: u32,
    bytes: usize,
}

#[cfg(test)]
mod tests;
