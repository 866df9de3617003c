//! Objects of V8's heap: what they are, by their maps.

use super::{GROUP, V8Layout};
use crate::blocks::BlockMemory;
use crate::room::End;

/// Maps whose types are kept in one walk.
const MAPS: usize = 16;
/// Bytes of an object that are read at once: most of them whole.
const OBJECT_BYTES: usize = 128;
/// The two lowest bits of a pointer to an object, and of a pointer that the collector does not
/// treat as one.
const TAG_MASK: u64 = 3;
const TAG: u64 = 1;

/// What was read of maps.
#[derive(Debug, Default)]
pub(super) struct Types([(u64, u16); MAPS]);

/// The heap as one walk reads it.
pub(super) struct Heap<'w, 'p> {
    pub layout: &'w V8Layout,
    pub memory: &'w mut BlockMemory<'p>,
    pub types: Types,
}

/// An object.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapObject {
    /// Where it is.
    pub at: u64,
    /// The type of what it is an instance of.
    pub kind: u16,
}

impl Heap<'_, '_> {
    /// Whether the word may be a pointer to an object; else it is a small number.
    pub fn is_object(word: u64) -> bool {
        word & TAG_MASK == TAG
    }

    /// Where the object is to which the word points.
    pub fn address(word: u64) -> Option<u64> {
        word.checked_sub(TAG).filter(|&at| at & TAG_MASK == 0 && at >= 4096)
    }

    /// The number in a word; `None`: it is none.
    pub fn number(word: u64) -> Option<u32> {
        (word & 0xffff_ffff == 0).then_some((word >> 32) as u32)
    }

    /// Reads objects at these places at once, where they are not 0.
    pub fn prefetch<const N: usize>(&mut self, places: [[u64; GROUP]; N]) {
        let places = places.iter().flatten().copied().filter(|&place| place != 0);
        self.memory.prefetch(places, OBJECT_BYTES);
    }

    /// Where the objects are to which that field of each of these leads, as far as that was read.
    pub fn known_fields(&self, objects: [u64; GROUP], field: u64) -> [u64; GROUP] {
        objects.map(|object| {
            let word = if object == 0 { None } else { self.memory.known_word(object.wrapping_add(field)) };
            word.and_then(Self::address).unwrap_or(0)
        })
    }

    fn because(&self, end: End) -> End {
        if self.memory.is_used_up() { End::Full } else { end }
    }

    pub fn word(&mut self, at: u64) -> Result<u64, End> {
        self.memory.word(at).ok_or_else(|| self.because(End::Unreadable))
    }

    pub fn half(&mut self, at: u64) -> Result<u32, End> {
        self.memory.half(at).ok_or_else(|| self.because(End::Unreadable))
    }

    /// The word in that field of an object.
    pub fn field(&mut self, object: HeapObject, field: u64) -> Result<u64, End> {
        self.word(object.at.wrapping_add(field))
    }

    /// The object to which a word points. Of one that the collector has moved, its new place.
    pub fn object(&mut self, word: u64) -> Result<HeapObject, End> {
        let (at, map) = self.moved(word)?;
        let place = (map >> 3 ^ map >> 9) as usize % MAPS;
        if let Some(&(known, kind)) = self.types.0.get(place)
            && known == map
        {
            return Ok(HeapObject { at, kind });
        }
        let (map_at, map_of_map) = self.moved(map)?;
        let (meta_at, _) = self.moved(map_of_map)?;
        if self.kind(meta_at)? != self.layout.type_map {
            return Err(End::Inconsistent);
        }
        let kind = self.kind(map_at)?;
        if let Some(known) = self.types.0.get_mut(place) {
            *known = (map, kind);
        }
        Ok(HeapObject { at, kind })
    }

    fn kind(&mut self, map: u64) -> Result<u16, End> {
        Ok(self.half(map.wrapping_add(self.layout.map_type))? as u16)
    }

    /// Where the object is, and its map.
    fn moved(&mut self, word: u64) -> Result<(u64, u64), End> {
        let at = Self::address(word).ok_or(End::Inconsistent)?;
        let map = self.word(at.wrapping_add(self.layout.map))?;
        if map & TAG_MASK != 0 {
            return Ok((at, map));
        }
        let map_there = self.word(map.wrapping_add(self.layout.map))?;
        Ok((map, map_there))
    }

    /// The object, if it is of that kind.
    pub fn of_kind(&mut self, word: u64, kind: u16) -> Result<HeapObject, End> {
        self.object(word)
            .and_then(|object| if object.kind == kind { Ok(object) } else { Err(End::Inconsistent) })
    }
}
