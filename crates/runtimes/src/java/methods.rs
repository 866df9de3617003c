//! What a method is called, and where its lines are.

use super::{JavaWalk, SourceFile};
use crate::content::{HEAD, LineTable, Piece, TEXT, put, put_head};
use crate::hash::{hash, hash_of};
use crate::room::{End, Frame};

/// Bytes of names and of a line table that are kept.
const MAX_CLASS: usize = 512;
const MAX_NAME: usize = 256;
const MAX_FILE: usize = 256;
const MAX_LINES: u64 = 2048;
/// The bit in the flags of a method: it has a line table.
const HAS_LINES: u64 = 1;
/// Nothing is below.
const LOWEST: u64 = 4096;

/// Bytes of a method's description, of its and its class' name, and of its line table, by which it
/// is known.
const KEY: usize = 40;
const KEY_NAME: usize = 256;
const KEY_LINES: usize = 32;

impl JavaWalk<'_, '_, '_> {
    /// The method's key, and its content if that is not known; `None`: there is none at that
    /// address.
    pub(super) fn method(&mut self, method: u64) -> Result<Option<Frame>, End> {
        match self.described(method) {
            Ok(method) => Ok(Some(method)),
            Err(End::Full) => Err(End::Full),
            Err(_) => Ok(None),
        }
    }

    fn described(&mut self, method: u64) -> Result<Frame, End> {
        let layout = *self.layout;
        let described = self.pointer(method, layout.method_const)?;
        let pool = self.pointer(described, layout.const_constants)?;
        let class = self.pointer(pool, layout.pool_holder)?;
        let class_name = self.pointer(class, layout.klass_name)?;
        let name = self.short(described.wrapping_add(layout.const_name))?;
        let name = self.constant(pool, name)?;
        let key = self.key(method, described, [class_name, name])?;
        if self.known.has(key) {
            return Ok(Frame { key, ..Frame::default() });
        }
        let mut name_bytes = self.put_symbol(HEAD, class_name, MAX_CLASS)?;
        name_bytes = self.as_in_source(name_bytes)?;
        name_bytes += put(self.chain, self.memory, HEAD + name_bytes, Piece::Text(b"."))?;
        name_bytes += self.put_symbol(HEAD + name_bytes, name, MAX_NAME)?;
        let file = match layout.source_file {
            SourceFile::OfPool(at) => self.short(pool.wrapping_add(at))?,
            SourceFile::OfClass(at) => self.short(class.wrapping_add(at))?,
        };
        let mut used = HEAD + name_bytes;
        let file_bytes = match file {
            0 => 0,
            file => {
                let file = self.constant(pool, file)?;
                self.put_symbol(used, file, MAX_FILE)?
            }
        };
        used += file_bytes;
        let lines = self.put_lines(used, described)?;
        let table = if layout.is_without_zero { LineTable::Bytecodes } else { LineTable::OlderBytecodes };
        let head = self.chain.free().get_mut(..HEAD).ok_or(End::Full)?;
        put_head(head, [0, TEXT, name_bytes as u32, TEXT, file_bytes as u32, lines, lines, table as u32]);
        let content = self.chain.keep(used + lines as usize).ok_or(End::Full)?;
        Ok(Frame { key, content, ..Frame::default() })
    }

    /// By where it is, its description, and what it and its class are called: another class of that
    /// name may be loaded to where one was.
    fn key(&mut self, method: u64, described: u64, names: [u64; 2]) -> Result<u64, End> {
        let (mut bytes, mut lines) = ([0; KEY], [0; KEY_LINES]);
        // Its first word is filled in later.
        self.memory.copy(described.wrapping_add(8), &mut bytes).ok_or(End::Unreadable)?;
        let (start, length) = self.lines_of(described)?;
        let lines = lines.get_mut(..KEY_LINES.min(length)).ok_or(End::Full)?;
        self.memory.copy(start, lines).ok_or(End::Unreadable)?;
        let [class, name] = names.map(|symbol| self.hash_of_symbol(symbol));
        Ok(hash([method, described, hash_of(&bytes), hash_of(lines), class?, name?]))
    }

    fn hash_of_symbol(&mut self, symbol: u64) -> Result<u64, End> {
        let length = self.short(symbol.wrapping_add(self.layout.symbol_length))?;
        let mut text = [0; KEY_NAME];
        let text = text.get_mut(..usize::from(length).min(KEY_NAME)).ok_or(End::Full)?;
        self.memory.copy(symbol.wrapping_add(self.layout.symbol_text), text).ok_or(End::Unreadable)?;
        Ok(hash_of(text))
    }

    /// The pointer in a field of the structure at `start`.
    pub(super) fn pointer(&mut self, start: u64, field: u64) -> Result<u64, End> {
        let pointer = self.word(start.wrapping_add(field))?;
        let may_be = pointer >= LOWEST && pointer % 8 == 0 && pointer >> 47 == 0;
        if may_be { Ok(pointer) } else { Err(End::Inconsistent) }
    }

    fn short(&mut self, address: u64) -> Result<u16, End> {
        let mut bytes = [0; 2];
        self.memory.copy(address, &mut bytes).ok_or(End::Unreadable)?;
        Ok(u16::from_ne_bytes(bytes))
    }

    /// The symbol that the constant with this number is.
    fn constant(&mut self, pool: u64, number: u16) -> Result<u64, End> {
        let length = self.memory.half(pool.wrapping_add(self.layout.pool_length)).ok_or(End::Unreadable)?;
        if number == 0 || u32::from(number) >= length {
            return Err(End::Inconsistent);
        }
        self.pointer(pool, self.layout.pool_bytes + 8 * u64::from(number))
    }

    /// Copies a symbol's text to the free part of the arena; returns the bytes.
    fn put_symbol(&mut self, at: usize, symbol: u64, most: usize) -> Result<usize, End> {
        let length = self.short(symbol.wrapping_add(self.layout.symbol_length))?;
        let text = symbol.wrapping_add(self.layout.symbol_text);
        put(self.chain, self.memory, at, Piece::At(text, usize::from(length).min(most)))
    }

    /// Makes the class' name behind the head that of its source: with dots, and without the address
    /// that classes have which are made while the program runs. Returns its bytes.
    fn as_in_source(&mut self, bytes: usize) -> Result<usize, End> {
        let name = self.chain.free().get_mut(HEAD..HEAD + bytes).ok_or(End::Full)?;
        let end = name.windows(3).position(|part| part == b"+0x").unwrap_or(bytes);
        name.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'.');
        Ok(end)
    }

    /// Copies the line table, and what follows; returns the bytes.
    fn put_lines(&mut self, at: usize, of_method: u64) -> Result<u32, End> {
        let (start, bytes) = self.lines_of(of_method)?;
        Ok(put(self.chain, self.memory, at, Piece::At(start, bytes))? as u32)
    }

    /// Where the line table is, behind the bytecodes, and the bytes to the end of the description.
    fn lines_of(&mut self, described: u64) -> Result<(u64, usize), End> {
        let layout = *self.layout;
        let count = self.short(described.wrapping_add(layout.const_code_size))?;
        let start = described.wrapping_add(layout.const_bytes).wrapping_add(count.into());
        let flags = self.memory.byte(described.wrapping_add(layout.const_flags)).ok_or(End::Unreadable)?;
        let words = self.memory.half(described.wrapping_add(layout.const_size)).ok_or(End::Unreadable)?;
        let end = described.wrapping_add(8 * u64::from(words));
        let bytes = end.checked_sub(start).ok_or(End::Inconsistent)?.min(MAX_LINES);
        Ok((start, if u64::from(flags) & HAS_LINES == 0 { 0 } else { bytes as usize }))
    }
}
