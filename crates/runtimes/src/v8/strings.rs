//! Strings, in the forms in which V8 keeps them.

use super::V8Walk;
use super::heap::{Heap, HeapObject};
use crate::room::End;

/// Parts of a string that wait while others are copied, and all parts.
const WAITING: usize = 16;
const MAX_PARTS: usize = 64;

/// A part that is still to be copied: so many characters from that one on.
#[derive(Clone, Copy, Default)]
struct Part {
    string: u64,
    from: u32,
    length: u32,
}

impl V8Walk<'_, '_, '_> {
    /// Copies up to so many characters of the string at which `word` points to the free part of the
    /// arena, from `at` on. Returns the width of a character and the bytes. What is no string is
    /// empty; parts in memory of the program's own are left out.
    pub(super) fn put_string(&mut self, at: usize, word: u64, at_most: u32) -> Result<(u32, u32), End> {
        let layout = *self.heap.layout;
        if !Heap::is_object(word) {
            return Ok((1, 0));
        }
        let whole = self.heap.object(word)?;
        if whole.kind >= layout.first_other_type {
            return Ok((1, 0));
        }
        let width = if whole.kind & layout.one_byte != 0 { 1 } else { 2 };
        let mut waiting = [Part { string: word, from: 0, length: at_most }; WAITING];
        let (mut count, mut bytes) = (1, 0);
        for _ in 0..MAX_PARTS {
            let part = usize::checked_sub(count, 1).and_then(|last| waiting.get(last).copied());
            let Some(part) = part else { break };
            count -= 1;
            let string = self.heap.object(part.string)?;
            if string.kind >= layout.first_other_type {
                return Err(End::Inconsistent);
            }
            let length = self.heap.half(string.at.wrapping_add(layout.string_length))?;
            let part = Part { length: part.length.min(length.saturating_sub(part.from)), ..part };
            if string.kind & layout.representation == layout.sequential {
                let is_narrow = string.kind & layout.one_byte != 0;
                bytes += self.put_flat(at + bytes as usize, string.at, part, (is_narrow, width))?;
                continue;
            }
            for part in self.parts_of(string, part)?.into_iter().filter(|part| part.length != 0) {
                if let Some(place) = waiting.get_mut(count) {
                    *place = part;
                    count += 1;
                }
            }
        }
        Ok((width, bytes))
    }

    /// Of what a part of a string consists that does not lie in a row: the last comes first.
    fn parts_of(&mut self, string: HeapObject, part: Part) -> Result<[Part; 2], End> {
        let layout = *self.heap.layout;
        let Part { from, length, .. } = part;
        let (none, kind) = (Part::default(), string.kind & layout.representation);
        if kind == layout.cons {
            let first = self.heap.field(string, layout.cons_first)?;
            let second = self.heap.field(string, layout.cons_second)?;
            let at_first = self.heap.object(first)?.at;
            let of_first = self.heap.half(at_first.wrapping_add(layout.string_length))?;
            let in_first = length.min(of_first.saturating_sub(from));
            let from_second = from.saturating_sub(of_first);
            let rest = Part { string: second, from: from_second, length: length - in_first };
            return Ok([rest, Part { string: first, from, length: in_first }]);
        }
        if kind == layout.sliced {
            let parent = self.heap.field(string, layout.slice_parent)?;
            let offset = self.heap.field(string, layout.slice_offset)?;
            let offset = Heap::number(offset).ok_or(End::Inconsistent)?;
            return Ok([none, Part { string: parent, from: from.saturating_add(offset), length }]);
        }
        if kind == layout.thin {
            let actual = self.heap.field(string, layout.thin_actual)?;
            return Ok([none, Part { string: actual, from, length }]);
        }
        Ok([none; 2])
    }

    /// Copies characters that lie in a row; returns the bytes.
    fn put_flat(&mut self, at: usize, string: u64, part: Part, form: (bool, u32)) -> Result<u32, End> {
        let layout = *self.heap.layout;
        let (from, length) = (u64::from(part.from), part.length);
        match form {
            (true, 1) => {
                let text = string.wrapping_add(layout.string_text).wrapping_add(from);
                self.put_bytes(at, text, length)?;
                Ok(length)
            }
            (true, _) => {
                let text = string.wrapping_add(layout.string_text).wrapping_add(from);
                self.put_bytes(at, text, length)?;
                let into = self.chain.free().get_mut(at..at + 2 * length as usize).ok_or(End::Full)?;
                for n in (0..length as usize).rev() {
                    let byte = into.get(n).copied().unwrap_or(0);
                    if let Some(two) = into.get_mut(2 * n..2 * n + 2) {
                        two.copy_from_slice(&u16::from(byte).to_ne_bytes());
                    }
                }
                Ok(2 * length)
            }
            (false, 1) => Err(End::Inconsistent),
            (false, _) => {
                let text = string.wrapping_add(layout.wide_string_text).wrapping_add(2 * from);
                self.put_bytes(at, text, 2 * length)?;
                Ok(2 * length)
            }
        }
    }

    pub(super) fn put_bytes(&mut self, at: usize, from: u64, length: u32) -> Result<(), End> {
        let into = self.chain.free().get_mut(at..at.saturating_add(length as usize)).ok_or(End::Full)?;
        match self.heap.memory.copy(from, into) {
            Some(()) => Ok(()),
            None if self.heap.memory.is_used_up() => Err(End::Full),
            None => Err(End::Unreadable),
        }
    }
}
