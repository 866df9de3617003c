//! PHP: which functions run, and what they say.
//!
//! A variable, of the process or of each thread, leads to the current frame, each frame to the one
//! that called it. A native call of `execute_ex` runs a whole segment of frames. Functions that are
//! written in C have a frame, too, and run within the segment of their caller.

mod rows;
mod threads;

use crate::blocks::{BATCH, BlockMemory};
use crate::content::{HEAD, Piece, keep_with_line_in_frame, put};
use crate::known::KnownKeys;
use crate::python::ThreadKey;
use crate::room::{Chain, End, Frame};
pub use rows::ROWS;
pub use threads::PhpThreads;

/// Frames that are followed.
const MAX_STEPS: usize = 8192;
/// Bytes of a string that are read with its length.
const STRING_BYTES: usize = 96;
/// Names of classes and of functions are kept up to this length in bytes, paths up to the other.
const MAX_NAME: u64 = 256;
const MAX_FILE: u64 = 1024;
/// What the type of a function says (`zend_compile.h`): the same in all versions.
const INTERNAL: u8 = 1;
const USER: u8 = 2;
const EVAL: u8 = 4;
/// Marks frames of generators.
const GENERATOR: u8 = 1;

/// Where one version keeps what is read: bytes from the start of each structure, and a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the structures' own names, see generate/php.c
pub struct PhpRow {
    /// What modules are built for (`ZEND_MODULE_API_NO`).
    pub api: u32,
    pub major: u16,
    pub minor: u16,
    pub current_frame: u16,
    pub frame_op: u16,
    pub frame_result: u16,
    pub frame_function: u16,
    pub frame_call: u16,
    pub frame_previous: u16,
    /// `execute_ex` was called for the frame.
    pub call_is_entry: u32,
    /// The frame is of a generator.
    pub call_is_generator: u32,
    pub function_type: u16,
    pub function_name: u16,
    pub function_class: u16,
    pub function_file: u16,
    pub function_line: u16,
    pub function_ops: u16,
    pub function_op_count: u16,
    pub class_name: u16,
    pub op_line: u16,
    pub op_bytes: u16,
    pub string_length: u16,
    pub string_text: u16,
    pub table_elements: u16,
    pub module_api: u16,
    pub module_is_thread_safe: u16,
}

/// What is read of this process's PHP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhpLayout {
    /// Its version's structures.
    pub row: PhpRow,
    /// Where `executor_globals` is.
    pub globals: PhpGlobals,
    /// The address of `zend_pass_function`, which is called where a class has no constructor;
    /// 0: not known.
    pub pass_function: u64,
}

/// Where `executor_globals` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhpGlobals {
    /// There is one, at this address, of the thread with this id: the process's first.
    OfProcess(u64, u32),
    /// Each thread has its own.
    OfThreads(PhpThreads),
}

/// Reads the frames of the thread, which stands still, and whose storage is at `state`; 0: not
/// known.
pub fn walk(
    layout: &PhpLayout,
    state: u64,
    thread: ThreadKey,
    memory: &mut BlockMemory<'_>,
    known: KnownKeys<'_>,
    chain: &mut Chain,
) {
    chain.begin();
    let globals = match layout.globals {
        PhpGlobals::OfProcess(globals, tid) => Some(globals).filter(|_| thread.tid == tid),
        PhpGlobals::OfThreads(threads) => threads.globals_of(thread, state, memory),
    };
    let end = match globals {
        Some(globals) => PhpWalk { layout, row: layout.row, memory, known, chain }.run(globals),
        None => End::NoState,
    };
    chain.finish(end);
}

struct PhpWalk<'w, 'p, 'k> {
    layout: &'w PhpLayout,
    row: PhpRow,
    memory: &'w mut BlockMemory<'p>,
    known: KnownKeys<'k>,
    chain: &'w mut Chain,
}

impl PhpWalk<'_, '_, '_> {
    fn word(&mut self, structure: u64, at: u16) -> Result<u64, End> {
        structure.checked_add(at.into()).and_then(|at| self.memory.word(at)).ok_or(End::Unreadable)
    }

    fn half(&mut self, structure: u64, at: u16) -> Result<u32, End> {
        structure.checked_add(at.into()).and_then(|at| self.memory.half(at)).ok_or(End::Unreadable)
    }

    fn run(&mut self, globals: u64) -> End {
        self.follow(globals).unwrap_or_else(|end| if self.memory.is_used_up() { End::Full } else { end })
    }

    fn follow(&mut self, globals: u64) -> Result<End, End> {
        let mut frame = self.word(globals, self.row.current_frame)?;
        for step in 0..MAX_STEPS {
            if step.is_multiple_of(BATCH) {
                self.read_ahead(frame);
            }
            if frame == 0 {
                // A generator that is just resumed or left is not linked to its resumer.
                let outermost = self.chain.frames().last();
                let is_linked = outermost.is_none_or(|frame| frame.mark != GENERATOR);
                return if is_linked { Ok(End::Root) } else { Err(End::Inconsistent) };
            }
            if !frame.is_multiple_of(8) {
                return Err(End::Inconsistent);
            }
            if self.begins_fiber(frame)? {
                return Ok(End::Root);
            }
            let previous = self.word(frame, self.row.frame_previous)?;
            if let Some(found) = self.frame(frame, previous)?
                && !self.chain.push(found)
            {
                return Ok(End::Full);
            }
            frame = previous;
        }
        Ok(End::Full)
    }

    /// Reads at once what the next frames need: their functions, and of those that are new in this
    /// walk what they are called. What cannot be read is missed later.
    fn read_ahead(&mut self, mut frame: u64) {
        let row = self.row;
        let (mut functions, mut ops) = ([0; BATCH], [0; BATCH]);
        for (function, op) in functions.iter_mut().zip(&mut ops) {
            if frame == 0 {
                break;
            }
            *function = self.word(frame, row.frame_function).unwrap_or(0);
            *op = self.word(frame, row.frame_op).unwrap_or(0);
            frame = self.word(frame, row.frame_previous).unwrap_or(0);
        }
        let some = |address: &u64| *address != 0;
        let bytes = row.function_line.max(row.function_file).max(row.function_ops) + 8;
        self.memory.prefetch(functions.into_iter().filter(some), bytes.into());
        let lines = ops.into_iter().filter(some).map(|op| op.wrapping_add(row.op_line.into()));
        self.memory.prefetch(lines, size_of::<u32>());
        let new = functions.map(|of| if self.chain.met(of).is_some() { 0 } else { of });
        let mut pointers =
            |of: [u64; BATCH], at: u16| of.map(|of| if of == 0 { 0 } else { self.word(of, at).unwrap_or(0) });
        let names = pointers(new, row.function_name);
        let files = pointers(new, row.function_file);
        let classes = pointers(new, row.function_class);
        self.memory.prefetch(names.into_iter().filter(some), STRING_BYTES);
        self.memory.prefetch(files.into_iter().filter(some), STRING_BYTES);
        self.memory.prefetch(classes.into_iter().filter(some), usize::from(row.class_name) + 8);
    }

    /// Whether a fiber begins here: a function of C that has no name links it to its resumer.
    /// The native stack is the fiber's own.
    fn begins_fiber(&mut self, frame: u64) -> Result<bool, End> {
        let row = self.row;
        let function = self.word(frame, row.frame_function)?;
        let may = function != 0 && function != self.layout.pass_function;
        Ok(may && self.kind(function)? == INTERNAL && self.word(function, row.function_name)? == 0)
    }

    fn kind(&mut self, function: u64) -> Result<u8, End> {
        function
            .checked_add(self.row.function_type.into())
            .and_then(|at| self.memory.byte(at))
            .ok_or(End::Unreadable)
    }

    /// A frame; `None`: it is one that only links others.
    fn frame(&mut self, frame: u64, previous: u64) -> Result<Option<Frame>, End> {
        let row = self.row;
        let function = self.word(frame, row.frame_function)?;
        let is_pass = function == self.layout.pass_function;
        if function == 0 || is_pass || self.is_copy(frame, previous)? {
            return Ok(None);
        }
        let kind = self.kind(function)?;
        let is_code = match kind {
            INTERNAL => false,
            USER | EVAL => true,
            _ => return Err(End::Inconsistent),
        };
        let file_code: &'static [u8] = match kind {
            EVAL => b"eval",
            _ if previous == 0 => b"{main}",
            _ => b"include",
        };
        let line = if is_code { self.line(frame, function)? } else { 0 };
        let call = if is_code { self.half(frame, row.frame_call)? } else { 0 };
        let is_entry = call & row.call_is_entry != 0;
        let mark = if call & row.call_is_generator != 0 { GENERATOR } else { 0 };
        let offset = i32::try_from(line).map_err(|_| End::Inconsistent)?;
        let known = match self.chain.met(function) {
            Some(known) => known,
            None => {
                let known = self.function(function, is_code, file_code)?;
                self.chain.remember(function, known);
                known
            }
        };
        Ok(Some(Frame { offset, is_entry, mark, ..known }))
    }

    /// Whether it is a copy of the previous frame, which is there while that one's callback is
    /// called. Such a copy has no operation; neither has a function that has only just started.
    fn is_copy(&mut self, frame: u64, previous: u64) -> Result<bool, End> {
        let row = self.row;
        if self.word(frame, row.frame_op)? != 0 || previous == 0 {
            return Ok(false);
        }
        let mut is_same = true;
        for at in [row.frame_function, row.frame_result] {
            is_same &= self.word(frame, at)? == self.word(previous, at)?;
        }
        Ok(is_same)
    }

    /// The line of the operation that the frame has noted. Until it notes one, there is another
    /// function's: then the line of the function.
    fn line(&mut self, frame: u64, function: u64) -> Result<u32, End> {
        let row = self.row;
        let op = self.word(frame, row.frame_op)?;
        let first = self.word(function, row.function_ops)?;
        let bytes =
            u64::from(self.half(function, row.function_op_count)?).saturating_mul(row.op_bytes.into());
        match op.checked_sub(first) {
            Some(at) if at < bytes => self.half(op, row.op_line),
            _ => self.half(function, row.function_line),
        }
    }

    /// Its key, and its content if that is not known; `file_code`: what it is called if it is a
    /// file's own code.
    fn function(&mut self, function: u64, is_code: bool, file_code: &'static [u8]) -> Result<Frame, End> {
        let row = self.row;
        let name = self.word(function, row.function_name)?;
        let class = self.word(function, row.function_class)?;
        let pieces = match (name, class) {
            (0, _) => [Piece::Text(file_code), Piece::Text(b""), Piece::Text(b"")],
            (_, 0) => [self.string(name, MAX_NAME)?, Piece::Text(b""), Piece::Text(b"")],
            (_, class) => {
                let class = self.word(class, row.class_name)?;
                [self.string(class, MAX_NAME)?, Piece::Text(b"::"), self.string(name, MAX_NAME)?]
            }
        };
        let mut used = HEAD;
        for piece in pieces {
            used += put(self.chain, self.memory, used, piece)?;
        }
        let name_bytes = used - HEAD;
        let file_bytes = match is_code {
            true => {
                let file = self.word(function, row.function_file)?;
                let file = self.string(file, MAX_FILE)?;
                put(self.chain, self.memory, used, file)?
            }
            false => 0,
        };
        keep_with_line_in_frame(self.chain, self.known, name_bytes, file_bytes)
    }

    fn string(&mut self, string: u64, at_most: u64) -> Result<Piece, End> {
        let length = self.word(string, self.row.string_length)?;
        if !string.is_multiple_of(8) || length >= 1 << 20 {
            return Err(End::Inconsistent);
        }
        let text = string.checked_add(self.row.string_text.into()).ok_or(End::Inconsistent)?;
        Ok(Piece::At(text, length.min(at_most) as usize))
    }
}

#[cfg(test)]
mod tests;
