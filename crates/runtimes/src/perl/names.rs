//! What a sub is called, as `caller` says it, and where it is.

use super::PerlWalk;
use super::segments::Mark;
use crate::content::{HEAD, Piece, keep_with_line_in_frame, put};
use crate::hash::{hash, hash_of};
use crate::room::{End, Frame};

/// Names of packages and of subs are kept up to this length in bytes, paths up to the other.
const MAX_NAME: usize = 256;
const MAX_FILE: usize = 1024;
/// Before the path in the name of a file's glob: `_<`.
const FILE_PREFIX: usize = 2;
/// What has no name.
const ANON: &[u8] = b"__ANON__";
const NAMELESS: Piece = Piece::Text(ANON);
/// Bytes of a glob's parts (`struct gp`) among which its sub is.
const GLOB_PARTS: usize = 64;

/// What a frame is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Callee {
    /// No sub: the program itself.
    Root,
    /// An eval.
    Eval,
    /// The sub at this address.
    Sub(u64),
}

impl PerlWalk<'_, '_, '_> {
    /// The frame at the current line.
    pub(super) fn frame(&mut self, callee: Callee, mark: Mark) -> Result<Frame, End> {
        let row = self.layout.row;
        if self.line == 0 || !self.line.is_multiple_of(8) {
            return Err(End::Inconsistent);
        }
        let number = self.half(self.line, row.line_number)?;
        let file = self.word(self.line, row.line_file)?;
        let code = match callee {
            Callee::Root => 0,
            Callee::Eval => 1,
            Callee::Sub(code) => code,
        };
        let fingerprint = self.fingerprint_of(callee, code)?;
        let key = if self.is_first { self.known.key_of(fingerprint) } else { None };
        let known = key.map(|key| Frame { key, ..Frame::default() });
        let function = match known.or_else(|| self.chain.met(fingerprint)) {
            Some(function) => function,
            None => {
                let (function, is_lasting) = self.function(callee, file)?;
                // What is compiled is at another line soon.
                if is_lasting && self.line != self.compiling {
                    self.chain.remember(fingerprint, function);
                }
                function
            }
        };
        let offset = i32::try_from(number).unwrap_or(0);
        Ok(Frame { offset, mark: mark as u8, ..function })
    }

    /// What a frame of this code at the current line is recognised by, before its name is read: the
    /// line's COP has the number of its compilation (`cop_seq`), which no other of the interpreter
    /// has. New threads count from where the one that made them was. A sub may be given another
    /// name later: it has another glob then.
    fn fingerprint_of(&mut self, callee: Callee, code: u64) -> Result<u64, End> {
        let mut bytes = [0; 64];
        let (from, length) = self.layout.row.line_bytes();
        let bytes = bytes.get_mut(..length).ok_or(End::Inconsistent)?;
        self.memory.copy(self.line.wrapping_add(from), bytes).ok_or(End::Unreadable)?;
        let named = match callee {
            Callee::Sub(code) => {
                let body = self.word(code, 0)?;
                self.word(body, self.layout.row.code_name)?
            }
            Callee::Root | Callee::Eval => 0,
        };
        Ok(hash([code, named, self.line, hash_of(bytes)]))
    }

    /// Its key, and its content if that is not known; whether all code from there has this name.
    fn function(&mut self, callee: Callee, file: u64) -> Result<(Frame, bool), End> {
        let (name, is_own) = match callee {
            Callee::Root => ([Piece::Text(b"main"), Piece::Text(b""), Piece::Text(b"")], true),
            Callee::Eval => ([Piece::Text(b"(eval)"), Piece::Text(b""), Piece::Text(b"")], true),
            Callee::Sub(code) => self.name(code)?,
        };
        let path = self.path(file)?;
        let (mut used, mut last) = (HEAD, HEAD);
        for piece in name {
            last = used;
            used += put(self.chain, self.memory, used, piece)?;
        }
        let is_nameless = self.chain.free().get(last..used) == Some(ANON);
        let name_bytes = used - HEAD;
        used += put(self.chain, self.memory, used, path)?;
        let file_bytes = used - HEAD - name_bytes;
        let frame = keep_with_line_in_frame(self.chain, self.known, name_bytes, file_bytes)?;
        Ok((frame, is_own || is_nameless))
    }

    /// The package, what is between, and the name of a sub; whether it has the name of its source.
    /// Closures of one place can be given different ones (`Sub::Util`).
    fn name(&mut self, code: u64) -> Result<([Piece; 3], bool), End> {
        const BETWEEN: Piece = Piece::Text(b"::");
        let row = self.layout.row;
        if !self.is_of_type(code, row.code_type)? && !self.is_of_type(code, row.format_type())? {
            return Err(End::Inconsistent);
        }
        let body = self.word(code, 0)?;
        let named = self.word(body, row.code_name)?;
        let flags = self.half(body, row.code_flags)?;
        if named == 0 {
            return Ok(([NAMELESS, Piece::Text(b""), Piece::Text(b"")], true));
        }
        if flags & row.is_named != 0 {
            let name = self.text(named, 0, MAX_NAME)?;
            if flags & row.is_lexical != 0 {
                return Ok(([name, Piece::Text(b""), Piece::Text(b"")], true));
            }
            let stash = self.word(body, row.code_stash)?;
            return Ok(([self.package(stash)?, BETWEEN, name], true));
        }
        let mut glob = named;
        if !self.is_of_type(glob, row.glob_type)? {
            return Err(End::Inconsistent);
        }
        let holder = if row.has_texts { self.word(glob, 0)? } else { glob };
        let parts = self.word(holder, row.value_data)?;
        let effective = if parts == 0 { 0 } else { self.word(parts, row.glob_effective)? };
        let mut bytes = [0; GLOB_PARTS];
        let is_read = parts != 0 && self.memory.copy(parts, &mut bytes).is_some();
        let (words, _) = bytes.as_chunks::<8>();
        let is_own = is_read && words.iter().any(|word| u64::from_ne_bytes(*word) == code);
        if effective != 0 && self.is_of_type(effective, row.glob_type)? {
            glob = effective;
        }
        let body = self.word(glob, 0)?;
        let name = self.word(body, row.glob_name)?;
        let stash = self.word(body, row.glob_stash)?;
        Ok(([self.package(stash)?, BETWEEN, self.text(name, 0, MAX_NAME)?], is_own))
    }

    /// The name of a package.
    fn package(&mut self, stash: u64) -> Result<Piece, End> {
        let row = self.layout.row;
        if stash == 0 || !self.is_of_type(stash, row.hash_type)? {
            return Ok(NAMELESS);
        }
        let body = self.word(stash, 0)?;
        if row.has_texts {
            let name = self.word(body, row.extra_name)?;
            return if name == 0 { Ok(NAMELESS) } else { self.text(name, 0, MAX_NAME) };
        }
        if self.half(stash, row.value_flags)? & row.hash_has_name == 0 {
            return Ok(NAMELESS);
        }
        let extra = match row.hash_extra {
            Some(at) => body.wrapping_add(at.into()),
            None => {
                let last = self.word(body, row.hash_last)?;
                self.word(stash, row.value_data)?.wrapping_add(last.wrapping_add(1).wrapping_mul(8))
            }
        };
        let name = self.word(extra, row.extra_name)?;
        // Of several, the first.
        let names = if row.extra_names == 0 { 0 } else { self.half(extra, row.extra_names)? };
        let name = match (name, names) {
            (0, _) => 0,
            (name, 0) => name,
            (names, _) => self.word(names, 0)?,
        };
        if name == 0 { Ok(NAMELESS) } else { self.text(name, 0, MAX_NAME) }
    }

    /// A name, which is the text of a hash's key, without its first `left_out` bytes.
    fn text(&mut self, name: u64, left_out: usize, at_most: usize) -> Result<Piece, End> {
        let row = self.layout.row;
        if row.has_texts {
            return Ok(Piece::Terminated(name.wrapping_add(left_out as u64), at_most));
        }
        let length = self.half(name, row.key_bytes)?;
        let length = usize::try_from(length as i32).map_err(|_| End::Inconsistent)?;
        let at = name.wrapping_add(row.key_text.into()).wrapping_add(left_out as u64);
        Ok(Piece::At(at, length.saturating_sub(left_out).min(at_most)))
    }

    /// The file of a line.
    fn path(&mut self, file: u64) -> Result<Piece, End> {
        if file == 0 {
            return Ok(Piece::Text(b""));
        }
        if self.layout.threads.is_some() {
            return Ok(Piece::Terminated(file, MAX_FILE));
        }
        if !self.is_of_type(file, self.layout.row.glob_type)? {
            return Err(End::Inconsistent);
        }
        let body = self.word(file, 0)?;
        let name = self.word(body, self.layout.row.glob_name)?;
        self.text(name, FILE_PREFIX, MAX_FILE)
    }
}
