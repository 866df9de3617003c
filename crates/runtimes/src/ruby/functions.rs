//! The function of a frame: how it is recognised, and its content at first sight.

use super::RubyWalk;
use super::classes::ClassName;
use super::objects::{CODE, METHOD, SPECIAL_VARIABLES};
use super::{C_FUNCTION, KIND};
use crate::content::{HEAD, LineTable, Piece, TEXT, put, put_head};
use crate::hash::hash;
use crate::room::{End, Frame};
use core::ops::Range;

/// Frames whose functions are read at once.
pub(super) const GROUP: usize = 16;
/// Names of classes and of functions are kept up to this length in bytes, paths up to the other.
pub(super) const MAX_NAME: u64 = 256;
const MAX_FILE: u64 = 1024;
/// Environments around a block.
const MAX_LEVELS: usize = 64;
/// In an environment, before its first word (`vm_core.h`): the method, and the one around it.
const ENVIRONMENT_METHOD: u64 = 16;
const ENVIRONMENT_OUTER: u64 = 8;
/// The environment of a method, or of code that is in none.
const IS_LOCAL: u64 = 2;
/// Types of code (`ISEQ_TYPE_METHOD`, `ISEQ_TYPE_EVAL`): the same in all versions.
const OF_METHOD: u32 = 1;
const EVALUATED: u32 = 6;
/// Frames of methods, and definitions that have code (`VM_METHOD_TYPE_ISEQ`).
const METHOD_FRAME: u64 = 0x1111_0001;
const KIND_OF_DEFINITION: u32 = 0xf;
const OF_CODE: u32 = 0;
/// Marks the thread's innermost frame.
const INNERMOST: u8 = 1;
/// No instruction is so far in code.
const NO_LINE: i32 = i32::MAX;
/// Evaluated texts within each other.
const MAX_EVALUATED: usize = 8;
/// Larger line tables are not kept: entries, and instructions that the index is for.
const MAX_LINES: u64 = 4096;
const MAX_INDEXED: u64 = 64 * 1024;
/// The index: this many instructions in its first words, and the bytes of that part;
/// this many in each block behind it, and the bytes of a block.
const INDEX_HEAD: u64 = 54;
const INDEX_HEAD_BYTES: u64 = 48;
const INDEX_BLOCK: u64 = 512;
const INDEX_BLOCK_BYTES: u64 = 80;

/// What runs in a frame.
#[derive(Clone, Copy)]
struct Running {
    /// Its code; 0: it is written in C.
    iseq: u64,
    /// The method that it is, or is part of; 0: it is in none.
    method: u64,
}

impl RubyWalk<'_, '_, '_> {
    /// Reads what the functions of a group of frames need, at once.
    pub(super) fn prefetch(&mut self, group: Range<usize>) {
        let row = self.row;
        let mut all = [Running { iseq: 0, method: 0 }; GROUP];
        for (at, into) in group.zip(&mut all) {
            let frame = self.chain.get(at).map_or(0, |frame| frame.key);
            let running = if frame == 0 { None } else { self.running(frame, false).ok() };
            let new = running.filter(|running| self.chain.met(running.key()).is_none());
            *into = new.unwrap_or(*into);
        }
        let codes = all.iter().map(|running| running.iseq).filter(|&at| at != 0);
        self.memory.prefetch(codes, row.iseq_body as usize + 8);
        let methods = all.iter().map(|running| running.method).filter(|&at| at != 0);
        self.memory.prefetch(methods, row.method_owner as usize + 8);
        let (mut bodies, mut definitions) = ([0; GROUP], [0; GROUP]);
        let places = bodies.iter_mut().zip(&mut definitions);
        for (running, (body, definition)) in all.iter().zip(places) {
            let mut word = |of: u64, at: u16| if of == 0 { 0 } else { self.word(of, at).unwrap_or(0) };
            *body = word(running.iseq, row.iseq_body);
            *definition = word(running.method, row.method_definition);
        }
        self.memory.prefetch(bodies.into_iter().filter(|&at| at != 0), row.body_index as usize + 8);
        let bytes = row.definition_serial as usize + 8;
        self.memory.prefetch(definitions.into_iter().filter(|&at| at != 0), bytes);
    }

    /// Puts the function of the frame with this number in the place of its address. The innermost
    /// frame has none if it is half made, or left already.
    pub(super) fn name(&mut self, at: usize) -> Result<(), End> {
        let Some(frame) = self.chain.get(at).filter(|frame| frame.key != 0) else { return Ok(()) };
        let function = match self.function_of(frame) {
            Err(End::Inconsistent) if frame.mark == INNERMOST => Frame::default(),
            function => function?,
        };
        let Frame { key, content, offset, .. } = function;
        self.chain.set(at, Frame { key, content, offset, ..frame });
        Ok(())
    }

    fn function_of(&mut self, frame: Frame) -> Result<Frame, End> {
        let running = self.running(frame.key, true)?;
        let is_innermost = frame.mark == INNERMOST;
        if is_innermost && (self.is_half_made(frame.key, running)? || self.is_left(frame.key, running)?) {
            return Err(End::Inconsistent);
        }
        let function = match self.chain.met(running.key()) {
            Some(function) => function,
            None => {
                let function = match running.iseq {
                    0 => self.c_function(running.method)?,
                    _ => self.function(running)?,
                };
                self.chain.remember(running.key(), function);
                function
            }
        };
        // Compiled code notes no instruction until it calls something, and Ruby none at its start.
        let may_have_none = match is_innermost {
            true => !within(self.layout.object, self.pc),
            false => self.word(frame.key, self.row.frame_pc)? == 0,
        };
        let offset = match self.offset(frame.key, running.iseq) {
            Err(End::Inconsistent) if may_have_none => NO_LINE,
            offset => offset?,
        };
        Ok(Frame { offset, ..function })
    }

    /// Whether a frame was left: its last instruction is done, and another function than the one
    /// that runs instructions is at work. Before 3.0 a frame is entered before it is filled.
    fn is_left(&mut self, frame: u64, running: Running) -> Result<bool, End> {
        let layout = self.layout;
        let may_be = self.row.machine_ractors == 0 && running.iseq != 0;
        if !may_be || within(layout.inner, self.pc) || !within(layout.object, self.pc) {
            return Ok(false);
        }
        let (body, pc) = (self.body(running.iseq)?, self.word(frame, self.row.frame_pc)?);
        let code = self.word(body, self.row.body_code)?;
        let end = code.wrapping_add(8 * u64::from(self.half(body, self.row.body_size)?));
        let last = |end: u64| end.checked_sub(8).filter(|last| (code..end).contains(last));
        match (last(pc), last(end)) {
            (Some(done), Some(last)) => Ok(self.word(done, 0)? == self.word(last, 0)?),
            _ => Ok(false),
        }
    }

    /// What runs in a frame; its method may be something else, unless it is checked.
    fn running(&mut self, frame: u64, is_checked: bool) -> Result<Running, End> {
        let environment = self.environment(frame)?;
        let flags = self.word(environment, 0)?;
        let iseq = match flags & KIND {
            C_FUNCTION => 0,
            _ => self.word(frame, self.row.frame_iseq)?,
        };
        let method = self.method(environment, is_checked)?;
        if iseq == 0 && method == 0 { Err(End::Inconsistent) } else { Ok(Running { iseq, method }) }
    }

    /// Whether a method's frame has the code of another one still. Compiled code of 3.1 enters a
    /// frame before it has filled it.
    fn is_half_made(&mut self, frame: u64, running: Running) -> Result<bool, End> {
        let row = self.row;
        let environment = self.environment(frame)?;
        if running.iseq == 0 || running.method == 0 || self.word(environment, 0)? & KIND != METHOD_FRAME {
            return Ok(false);
        }
        let definition = self.word(running.method, row.method_definition)?;
        let is_of_code = self.half(definition, 0)? & KIND_OF_DEFINITION == OF_CODE;
        Ok(is_of_code && self.word(definition, row.definition_iseq)? != running.iseq)
    }

    /// The method of an environment, or of one around it; 0: there is none.
    fn method(&mut self, mut environment: u64, is_checked: bool) -> Result<u64, End> {
        for _ in 0..MAX_LEVELS {
            let before = |at: u64| environment.checked_sub(at).ok_or(End::Inconsistent);
            let (at_method, at_outer) = (before(ENVIRONMENT_METHOD)?, before(ENVIRONMENT_OUTER)?);
            let mut entry = self.word(at_method, 0)?;
            let is_local = self.word(environment, 0)? & IS_LOCAL != 0;
            if entry != 0 && !is_checked {
                return Ok(entry);
            }
            if entry != 0 {
                let mut object = self.object(entry)?;
                if is_local && object.internal_kind() == Some(SPECIAL_VARIABLES) {
                    entry = self.word(object.at, 8)?;
                    object = if entry == 0 { object } else { self.object(entry)? };
                }
                match object.internal_kind() {
                    None => return Err(End::Inconsistent),
                    Some(METHOD) => return Ok(object.at),
                    Some(_) => {}
                }
            }
            if is_local {
                return Ok(0);
            }
            environment = self.word(at_outer, 0)? & !3;
            if environment == 0 || !environment.is_multiple_of(8) {
                return Err(End::Inconsistent);
            }
        }
        Ok(0)
    }

    /// The number of the instruction whose line counts; of C there is none.
    fn offset(&mut self, frame: u64, iseq: u64) -> Result<i32, End> {
        if iseq == 0 {
            return Ok(0);
        }
        let (body, row) = (self.body(iseq)?, self.row);
        let pc = self.word(frame, row.frame_pc)?;
        let code = self.word(body, row.body_code)?;
        let size = u64::from(self.half(body, row.body_size)?);
        // The next instruction is noted, but at the beginning.
        match pc.checked_sub(code) {
            Some(bytes) if bytes.is_multiple_of(8) && bytes / 8 <= size => {
                i32::try_from((bytes / 8).saturating_sub(1)).map_err(|_| End::Inconsistent)
            }
            _ => Err(End::Inconsistent),
        }
    }

    fn body(&mut self, iseq: u64) -> Result<u64, End> {
        let object = self.object(iseq)?;
        if object.internal_kind() != Some(CODE) {
            return Err(End::Inconsistent);
        }
        self.word(object.at, self.row.iseq_body)
    }

    /// What tells a method from all others: Ruby numbers their definitions.
    fn identity(&mut self, method: u64) -> Result<u64, End> {
        let row = self.row;
        if method == 0 {
            return Ok(0);
        }
        let definition = self.word(method, row.method_definition)?;
        let (owner, called) = (self.word(method, row.method_owner)?, self.word(method, row.method_called)?);
        let serial = self.word(definition, row.definition_serial)?;
        Ok(hash([owner, called, definition, serial]))
    }

    /// A function that is written in C.
    fn c_function(&mut self, method: u64) -> Result<Frame, End> {
        let key = self.identity(method)?;
        if self.known.has(key) {
            return Ok(Frame { key, ..Frame::default() });
        }
        let class = self.class_of_method(method)?;
        let definition = self.word(method, self.row.method_definition)?;
        let id = self.word(definition, self.row.definition_name)?;
        let name = self.name_of_id(id)?;
        let name = self.string(name, MAX_NAME)?;
        let used = self.put_all(HEAD, [class.pieces[0], class.pieces[1], name])?;
        // What is not whole is copied again the next time.
        let (kind, missing) = match class.is_anonymous {
            true => (LineTable::Indexed, 1),
            false => (LineTable::InFrame, 0),
        };
        let content = self.keep(used, (used - HEAD, 0), (missing, 0), kind)?;
        Ok(Frame { key, content, ..Frame::default() })
    }

    /// A function that is written in Ruby. It is known by where all of its parts are, where it
    /// stands in its file, and its method.
    fn function(&mut self, running: Running) -> Result<Frame, End> {
        let row = self.row;
        let body = self.body(running.iseq)?;
        let mut words = [0; 16];
        let places = (row.body_type..row.body_code + 8).step_by(8);
        let places = places.chain((row.body_path..row.body_index + 8).step_by(8));
        for (word, at) in words.iter_mut().zip(places) {
            *word = self.word(body, at)?;
        }
        let key = hash([running.iseq, body, self.identity(running.method)?, hash(words)]);
        let content = if self.known.has(key) { 0 } else { self.copy(running, body)? };
        Ok(Frame { key, content, ..Frame::default() })
    }

    /// Copies the content of a function; returns where it is.
    fn copy(&mut self, running: Running, body: u64) -> Result<u16, End> {
        let row = self.row;
        let named = self.named(body)?;
        let label = self.word(named, row.body_label)?;
        let (text, length) = self.text(label, MAX_NAME)?;
        let base = self.word(named, row.body_base_label)?;
        let (_, base_length) = self.text(base, MAX_NAME)?;
        let class = self.class_of(running.method, body)?;
        // `block in ` and the like stand before the class.
        let before = length.saturating_sub(base_length);
        let [before_class, behind_class] =
            [Piece::At(text, before as usize), Piece::At(text + before, (length - before) as usize)];
        let pieces = [before_class, class.pieces[0], class.pieces[1], behind_class];
        let name_end = self.put_all(HEAD, pieces)?;
        let path = self.word(body, row.body_path)?;
        let path = self.path(path, MAX_FILE)?;
        let names_end = self.put_all(name_end, [path])?;
        let (total, kept) = self.put_lines(body, names_end)?;
        let missing = u32::from(class.is_anonymous);
        let used = names_end + kept as usize;
        let lengths = (name_end - HEAD, names_end - name_end);
        self.keep(used, lengths, (total + missing, kept), LineTable::Indexed)
    }

    /// The code whose name it has: an evaluated text has that of the code around it.
    fn named(&mut self, mut body: u64) -> Result<u64, End> {
        for _ in 0..MAX_EVALUATED {
            let parent = match self.half(body, self.row.body_type)? {
                EVALUATED => self.word(body, self.row.body_parent_iseq)?,
                _ => 0,
            };
            if parent == 0 {
                break;
            }
            body = self.body(parent)?;
        }
        Ok(body)
    }

    /// The class before its name, if it is a method or part of one.
    fn class_of(&mut self, method: u64, body: u64) -> Result<ClassName, End> {
        let local = self.word(body, self.row.body_local_iseq)?;
        if method == 0 || local == 0 {
            return Ok(ClassName::NONE);
        }
        let local = self.body(local)?;
        match self.half(local, self.row.body_type)? {
            OF_METHOD => self.class_of_method(method),
            _ => Ok(ClassName::NONE),
        }
    }

    /// Copies its line table from `used` on: the bytes of the index, the index, and the lines.
    /// Returns the bytes that it has, and those that were copied: all or none.
    fn put_lines(&mut self, body: u64, used: usize) -> Result<(u32, u32), End> {
        let row = self.row;
        let size = u64::from(self.half(body, row.body_size)?);
        let count = u64::from(self.half(body, row.body_line_count)?);
        let (lines, index) = (self.word(body, row.body_lines)?, self.word(body, row.body_index)?);
        let index_bytes = match size.checked_sub(INDEX_HEAD) {
            _ if count < 2 => 0,
            None => size.div_ceil(9) * 8,
            Some(behind) => INDEX_HEAD_BYTES + behind.div_ceil(INDEX_BLOCK) * INDEX_BLOCK_BYTES,
        };
        let total = (4 + index_bytes + 4 * count) as u32;
        let is_told = lines != 0 && (index != 0 || count < 2);
        if count > MAX_LINES || size > MAX_INDEXED || !is_told {
            return Ok((total, 0));
        }
        let free = self.chain.free();
        let Some(into) = free.get_mut(used..).and_then(|free| free.get_mut(..total as usize)) else {
            return Ok((total, 0));
        };
        let (into_head, into) = into.split_at_mut_checked(4).ok_or(End::Full)?;
        into_head.copy_from_slice(&(index_bytes as u32).to_ne_bytes());
        let (into_index, into_lines) = into.split_at_mut_checked(index_bytes as usize).ok_or(End::Full)?;
        self.memory.copy(index, into_index).ok_or(End::Unreadable)?;
        for (number, into) in (0..).zip(into_lines.chunks_exact_mut(4)) {
            let at = lines
                .checked_add(number * u64::from(row.line_bytes) + u64::from(row.line_number))
                .ok_or(End::Inconsistent)?;
            self.memory.copy(at, into).ok_or(End::Unreadable)?;
        }
        Ok((total, total))
    }

    /// Copies pieces to the free part of the arena; returns where they end.
    fn put_all<const N: usize>(&mut self, mut at: usize, pieces: [Piece; N]) -> Result<usize, End> {
        for piece in pieces {
            at += put(self.chain, self.memory, at, piece)?;
        }
        Ok(at)
    }

    /// Keeps a function whose name, path and lines were put behind the head.
    fn keep(
        &mut self,
        used: usize,
        (name, file): (usize, usize),
        (total, kept): (u32, u32),
        kind: LineTable,
    ) -> Result<u16, End> {
        let head = self.chain.free().get_mut(..HEAD).ok_or(End::Full)?;
        put_head(head, [0, TEXT, name as u32, TEXT, file as u32, total, kept, kind as u32]);
        self.chain.keep(used).ok_or(End::Full)
    }
}

fn within((start, end): (u64, u64), address: u64) -> bool {
    (start..end).contains(&address)
}

impl Running {
    /// For this walk alone.
    fn key(self) -> u64 {
        hash([self.iseq, self.method])
    }
}
