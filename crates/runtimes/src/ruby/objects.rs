//! Ruby's objects, as far as names lie in them: each one's type is checked.

use super::RubyWalk;
use crate::content::Piece;
use crate::room::End;

/// The types (`ruby/ruby.h`), and the kinds of internal objects (`internal/imemo.h`): the same in
/// all versions.
const TYPE: u64 = 0x1f;
pub(super) const CLASS: u64 = 2;
pub(super) const MODULE: u64 = 3;
const STRING: u64 = 5;
const ARRAY: u64 = 7;
const INTERNAL: u64 = 0x1a;
const MOVED: u64 = 0x1e;
const INTERNAL_KIND_SHIFT: u32 = 12;
pub(super) const SPECIAL_VARIABLES: u64 = 2;
pub(super) const METHOD: u64 = 6;
pub(super) const CODE: u64 = 7;
/// An environment that was copied from the stack into an object.
pub(super) const ESCAPED: u64 = 4;
/// Of the list of names: how many are in one part, and the places of each.
const NAMES_OF_PART: u64 = 512;
const PLACES_OF_NAME: u64 = 2;
const NIL: [u64; 2] = [8, 4];

/// An object: where it is now, and its flags.
#[derive(Clone, Copy)]
pub(super) struct Object {
    pub(super) at: u64,
    pub(super) flags: u64,
}

impl Object {
    pub(super) fn kind(self) -> u64 {
        self.flags & TYPE
    }

    /// Which internal object it is.
    pub(super) fn internal_kind(self) -> Option<u64> {
        (self.kind() == INTERNAL).then_some(self.flags >> INTERNAL_KIND_SHIFT & 0xf)
    }
}

impl RubyWalk<'_, '_, '_> {
    pub(super) fn word(&mut self, structure: u64, at: u16) -> Result<u64, End> {
        structure.checked_add(at.into()).and_then(|at| self.memory.word(at)).ok_or(End::Unreadable)
    }

    pub(super) fn half(&mut self, structure: u64, at: u16) -> Result<u32, End> {
        structure.checked_add(at.into()).and_then(|at| self.memory.half(at)).ok_or(End::Unreadable)
    }

    /// The object, or where the collector has just moved it to.
    pub(super) fn object(&mut self, at: u64) -> Result<Object, End> {
        if at == 0 || !at.is_multiple_of(8) {
            return Err(End::Inconsistent);
        }
        let object = Object { at, flags: self.flags(at)? };
        if object.kind() != MOVED {
            return Ok(object);
        }
        match self.word(at, self.row.moved_to)? {
            at if at.is_multiple_of(8) => Ok(Object { at, flags: self.flags(at)? }),
            _ => Err(End::Inconsistent),
        }
    }

    /// An object's first word. While objects are moved, pages of them cannot be read.
    fn flags(&mut self, at: u64) -> Result<u64, End> {
        self.word(at, 0).map_err(|_| End::Moving)
    }

    /// The text of a string; at most so much of it.
    pub(super) fn text(&mut self, string: u64, at_most: u64) -> Result<(u64, u64), End> {
        let row = self.row;
        let string = self.object(string)?;
        if string.kind() != STRING {
            return Err(End::Inconsistent);
        }
        let is_outside = string.flags & u64::from(row.flag_string_outside) != 0;
        let length = match is_outside || row.string_inside_mask == 0 {
            true => self.word(string.at, row.string_length)?,
            false => string.flags >> row.string_inside_shift & u64::from(row.string_inside_mask),
        };
        let text = match is_outside {
            true => self.word(string.at, row.string_pointer)?,
            false => string.at + u64::from(row.string_inside),
        };
        if length >= 1 << 20 { Err(End::Inconsistent) } else { Ok((text, length.min(at_most))) }
    }

    pub(super) fn string(&mut self, string: u64, at_most: u64) -> Result<Piece, End> {
        let (text, length) = self.text(string, at_most)?;
        Ok(Piece::At(text, length as usize))
    }

    /// An element of an array.
    fn element(&mut self, array: Object, number: u64) -> Result<u64, End> {
        if array.kind() != ARRAY {
            return Err(End::Inconsistent);
        }
        let elements = match array.flags & u64::from(self.row.flag_array_inside) {
            0 => self.word(array.at, self.row.array_pointer)?,
            _ => array.at + u64::from(self.row.array_inside),
        };
        self.word(elements.wrapping_add(number * 8), 0)
    }

    /// A path: a string, or an array that begins with it.
    pub(super) fn path(&mut self, path: u64, at_most: u64) -> Result<Piece, End> {
        let object = self.object(path)?;
        let path = if object.kind() == ARRAY { self.element(object, 0)? } else { path };
        self.string(path, at_most)
    }

    /// The string of a name by its number.
    pub(super) fn name_of_id(&mut self, id: u64) -> Result<u64, End> {
        let number = if id > self.row.last_operator.into() { id >> 4 } else { id };
        if number >= 1 << 32 {
            return Err(End::Inconsistent);
        }
        let parts = self.word(self.layout.names, 0)?;
        let parts = self.object(parts)?;
        let part = self.element(parts, number / NAMES_OF_PART)?;
        let part = self.object(part)?;
        self.element(part, number % NAMES_OF_PART * PLACES_OF_NAME)
    }

    /// Whether a value is none.
    pub(super) fn is_none(value: u64) -> bool {
        value == 0 || NIL.contains(&value)
    }
}
