//! What a Python program calls its threads. CPython tells the kernel from 3.14 on. Before, only
//! the `Thread` object has the name. Its method `_bootstrap` is a thread's outermost function.
//!
//! Threads may run while this is read. That frame, the object and its type stay as long as the
//! thread does. What the other frames say meanwhile may lead nowhere: no name then. The text may be
//! given up, and its memory used for another one. So it is read once more, in one system call with
//! the attribute behind it, which must still refer to it.

use super::layout::{Layout, ThreadKey};
use super::{Entry, MAX_FILE, MAX_STEPS, SHIM, Walk};
use crate::blocks::BlockMemory;
use crate::code::text;
use crate::known::KnownKeys;
use crate::room::{Chain, End};

const OUTERMOST: &[u8] = b"_bootstrap";
const ITS_FILE: &[u8] = b"threading.py";
const ATTRIBUTE: &[u8] = b"_name";
/// Attributes of an object that are looked through.
const MAX_ATTRIBUTES: u64 = 128;
/// Bytes of a name that are kept, and of a text with so many.
const MAX_NAME: usize = 128;
const TEXT_BYTES: usize = 72 + MAX_NAME;

/// Bytes from the start of structures, the same in all these versions: PyTypeObject.
const TYPE_BASIC_SIZE: u64 = 32;
const TYPE_FLAGS: u64 = 168;
const TYPE_DICT_OFFSET: u64 = 288;
/// PyDictObject.
const DICT_KEYS: u64 = 32;
const DICT_VALUES: u64 = 40;

/// Where a version keeps the rest, by `offsetof` with its headers.
struct NameRow {
    minor: u8,
    /// The first local variable in a frame.
    frame_locals: u64,
    /// `ht_cached_keys` in PyHeapTypeObject: the attributes that a type's objects have.
    type_keys: u64,
    keys: KeysForm,
    attributes: AttributesForm,
}

/// How a table of keys, PyDictKeysObject, says how large it is.
#[derive(Clone, Copy)]
enum KeysForm {
    /// By its number of places; an index of as few bytes as that needs is before the entries.
    Places,
    /// By the logarithm of the index's bytes. Entries have no hash where all keys are texts.
    Logarithm,
}

/// Where an object has its attributes' values, if not in a dictionary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AttributesForm {
    /// Always in a dictionary.
    Dictionary,
    /// A pointer before the object: to values, and another one to a dictionary.
    TwoPointers,
    /// One pointer, which is odd if it is to values.
    Tagged,
    /// Behind the object's head, where the type says so.
    Inline,
}

const fn row(minor: u8, frame_locals: u64, type_keys: u64) -> NameRow {
    NameRow {
        minor,
        frame_locals,
        type_keys,
        keys: if minor < 11 { KeysForm::Places } else { KeysForm::Logarithm },
        attributes: match minor {
            ..11 => AttributesForm::Dictionary,
            11 => AttributesForm::TwoPointers,
            12 => AttributesForm::Tagged,
            _ => AttributesForm::Inline,
        },
    }
}

const NAME_ROWS: [NameRow; 8] = [
    row(6, 376, 856),
    row(7, 360, 856),
    row(8, 360, 872),
    row(9, 360, 864),
    row(10, 352, 872),
    row(11, 72, 872),
    row(12, 72, 880),
    row(13, 72, 880),
];

/// What the program calls the thread, whose state is at `state`; `None`: nothing, or CPython tells
/// the kernel, or the state is another thread's by now, or the name was changed meanwhile.
pub fn thread_name(
    layout: &Layout,
    state: u64,
    thread: ThreadKey,
    memory: &mut BlockMemory<'_>,
    chain: &mut Chain,
) -> Option<String> {
    // Objects of builds without the interpreter's lock have larger heads.
    let is_known = |row: &&NameRow| row.minor == layout.row.minor && layout.row.object_type == 8;
    let row = NAME_ROWS.iter().find(is_known)?;
    layout.is_of(state, thread, memory).filter(|is_its| *is_its)?;
    let mut walk = Walk { layout, memory, known: KnownKeys::new(&[]), chain, file: (0, 0) };
    let frame = walk.outermost(state).ok()??;
    let code = walk.word(frame, layout.row.frame_code).ok()?;
    walk.expect_type(code, layout.code_type).ok()?;
    let function = walk.word(code, layout.row.code_name).ok()?;
    let file = walk.word(code, layout.row.code_file).ok()?;
    if !walk.string(function, MAX_NAME)?.1.ends_with(OUTERMOST)
        || !walk.string(file, MAX_FILE)?.1.ends_with(ITS_FILE)
    {
        return None;
    }
    let object = walk.word(frame, row.frame_locals).ok()?;
    let place = walk.attribute(row, object).ok()??;
    let name = walk.word(place, 0).ok()?;
    walk.memory.forget();
    walk.memory.read_many([(name, TEXT_BYTES), (place, size_of::<u64>())].into_iter());
    let (kind, bytes) = walk.string(name, MAX_NAME)?;
    let is_same = walk.word(place, 0) == Ok(name) && layout.is_of(state, thread, walk.memory) == Some(true);
    is_same.then(|| text(&bytes, kind))
}

impl Walk<'_, '_, '_> {
    /// A thread's outermost frame of a function.
    fn outermost(&mut self, state: u64) -> Result<Option<u64>, End> {
        let row = self.layout.row;
        let mut frame = self.word(state, row.thread_frame)?;
        if let Some(current) = row.c_frame {
            frame = self.word(frame, current)?;
        }
        let mut outermost = None;
        for _ in 0..MAX_STEPS {
            if frame == 0 {
                return Ok(outermost);
            }
            let is_shim = matches!(row.frame_entry, Entry::Shim(owner) if self.byte(frame, owner)? >= SHIM);
            outermost = if is_shim { outermost } else { Some(frame) };
            frame = self.word(frame, row.frame_previous)?;
        }
        Ok(None)
    }

    /// A text: the width of its characters, and what it has of them.
    fn string(&mut self, object: u64, at_most: usize) -> Option<(u32, Vec<u8>)> {
        let text = self.text(object, at_most).ok()?;
        let mut bytes = vec![0; text.bytes];
        self.memory.copy(text.at, &mut bytes)?;
        Some((text.kind, bytes))
    }

    /// Where the value of the object's attribute [`ATTRIBUTE`] is.
    fn attribute(&mut self, row: &NameRow, object: u64) -> Result<Option<u64>, End> {
        const HAS_INLINE_VALUES: u64 = 1 << 2;
        const IS_MANAGED: u64 = 1 << 4;
        let of_type = self.word(object, self.layout.row.object_type)?;
        let flags = self.word(of_type, TYPE_FLAGS)?;
        let before = |words: u64| object.wrapping_sub(8 * words);
        let (mut values, mut dictionary) = (0, 0);
        match row.attributes {
            AttributesForm::TwoPointers if flags & IS_MANAGED != 0 => {
                (values, dictionary) = (self.word(before(4), 0)?, self.word(before(3), 0)?);
            }
            AttributesForm::Tagged if flags & IS_MANAGED != 0 => match self.word(before(3), 0)? {
                odd if odd & 1 == 1 => values = odd.wrapping_add(1),
                even => dictionary = even,
            },
            AttributesForm::Inline if flags & IS_MANAGED != 0 => {
                let head = object.wrapping_add(self.word(of_type, TYPE_BASIC_SIZE)?);
                dictionary = self.word(before(3), 0)?;
                // Of the head's four bytes the last one says whether values are there.
                if flags & HAS_INLINE_VALUES != 0 && self.byte(head, 3)? != 0 {
                    values = head.wrapping_add(8);
                }
            }
            _ => {
                let at = self.word(of_type, TYPE_DICT_OFFSET)?;
                dictionary = self.word(object, at)?;
            }
        }
        if values != 0 {
            let keys = self.word(of_type, row.type_keys)?;
            return self.value(row, keys, Some(values));
        }
        let keys = self.word(dictionary, DICT_KEYS)?;
        let split = match self.word(dictionary, DICT_VALUES)? {
            0 => None,
            values if row.attributes == AttributesForm::Inline => Some(values.wrapping_add(8)),
            values => Some(values),
        };
        self.value(row, keys, split)
    }

    /// Where the attribute's value is: in a table of keys, or in the values that it is for.
    fn value(&mut self, row: &NameRow, keys: u64, values: Option<u64>) -> Result<Option<u64>, End> {
        let (entries, count, bytes, key_at) = match row.keys {
            KeysForm::Places => {
                let places = self.word(keys, 8)?;
                let width = match places {
                    0..=0xff => 1,
                    0x100..=0xffff => 2,
                    _ => 4,
                };
                (keys.wrapping_add(40).wrapping_add(places.wrapping_mul(width)), self.word(keys, 32)?, 24, 8)
            }
            KeysForm::Logarithm => {
                let index = 1u64.checked_shl(self.byte(keys, 9)?.into()).ok_or(End::Inconsistent)?;
                let has_hashes = self.byte(keys, 10)? == 0;
                let (bytes, key_at) = if has_hashes { (24, 8) } else { (16, 0) };
                (keys.wrapping_add(32 + index), self.word(keys, 24)?, bytes, key_at)
            }
        };
        for number in 0..count.min(MAX_ATTRIBUTES) {
            let entry = entries.wrapping_add(bytes * number);
            let key = self.word(entry, key_at)?;
            if key != 0 && self.string(key, MAX_NAME).is_some_and(|(_, key)| key == ATTRIBUTE) {
                let place = match values {
                    Some(values) => values.wrapping_add(8 * number),
                    None => entry.wrapping_add(key_at + 8),
                };
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::rows::ROWS;
    use crate::python::tests::with_walk;

    /// Structures whose words are anything, most of them addresses among themselves.
    #[test]
    fn damaged_structures_have_no_name_or_any_and_nothing_panics() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            random >> 33
        };
        for _ in 0..2000 {
            let mut words = [0u64; 512];
            let start = words.as_ptr() as u64;
            for word in &mut words {
                *word = match next() % 8 {
                    0 => next() << (next() % 34),
                    1 => next() % 128,
                    _ => start + 8 * (next() % 512),
                };
            }
            for row in ROWS {
                with_walk(*row, start, |walk| {
                    let thread = ThreadKey { tid: 0, pointer: start, pc: 0 };
                    _ = thread_name(walk.layout, start + 8 * (next() % 128), thread, walk.memory, walk.chain);
                    _ = walk.outermost(start + 8 * (next() % 128));
                    let row = NAME_ROWS.iter().find(|name| name.minor == row.minor).unwrap();
                    _ = walk.attribute(row, start + 8 * (next() % 128));
                });
            }
        }
    }
}
