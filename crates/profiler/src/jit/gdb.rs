//! The GDB JIT interface: objects that a compiler shows to debuggers. `__jit_debug_descriptor` is
//! the head of their list (gdb's manual, "JIT Compilation Interface"). LLVM and PHP have one.
//!
//! The program changes the list while it is read here: everything is copied through the kernel,
//! within bounds.

use crate::mappings::JitTables;
use crate::mappings::{Mappings, Symbols};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use swipr_symbols::jit::CodeMap;
use swipr_symbols::jit::objects::{self, JitObject};
use swipr_symbols::symbolizer::address_of;
use swipr_unwind::memory::{guarded_copy, guarded_words};

/// What the list's head is called.
const DESCRIPTOR: &str = "__jit_debug_descriptor";
const VERSION: u32 = 1;
/// Longer lists are damaged ones.
const MAX_OBJECTS: usize = 1 << 16;
/// Larger objects are not read. And how many bytes are copied at one reading of the list.
const MAX_OBJECT_BYTES: u64 = 16 << 20;
const MAX_READ_BYTES: u64 = 64 << 20;
/// How often the whole list is read, at most.
const FOLLOW_AGAIN_NS: u64 = 250_000_000;
/// Objects that are compared with what was read at one reading of the list, and how many bytes of
/// their ends: names and section headers are there.
const MAX_COMPARED: usize = 256;
const COMPARED_BYTES: u64 = 4096;

/// An entry of the list: where it is, where its object is, and the object's size.
type ListEntry = (u64, u64, u64);

/// What was read of an entry.
#[derive(Debug)]
struct ReadObject {
    /// The range of its code.
    code: Range<u64>,
    /// Of some of its bytes, see [`fingerprint`].
    fingerprint: u64,
}

/// The objects in the process's lists.
#[derive(Debug)]
pub struct GdbJit {
    /// Files that were searched for a list's head, with their places.
    searched: FxHashSet<(Arc<str>, u64)>,
    heads: Vec<u64>,
    /// Entries that were read.
    known: FxHashMap<ListEntry, ReadObject>,
    /// Counts readings, to compare some of the entries at each.
    turn: usize,
    code: CodeMap,
    followed_ns: u64,
}

impl GdbJit {
    /// Nothing is known yet.
    pub fn new(max_bytes: usize) -> GdbJit {
        let (searched, heads, known, turn, followed_ns) = <_>::default();
        GdbJit { searched, heads, known, turn, code: CodeMap::new(max_bytes), followed_ns }
    }

    /// The functions of all objects.
    pub fn code(&self) -> &CodeMap {
        &self.code
    }

    /// Reads the lists. New code may have been there since `last_ns`. Returns whether anything
    /// changed.
    pub fn refresh(&mut self, mappings: &Mappings, last_ns: u64, now_ns: u64, frames: &JitTables) -> bool {
        if now_ns.saturating_sub(self.followed_ns) < FOLLOW_AGAIN_NS {
            return false;
        }
        let since = std::mem::replace(&mut self.followed_ns, now_ns).min(last_ns);
        for symbols in mappings.symbols() {
            self.search(symbols);
        }
        let mut listed: FxHashSet<ListEntry> = FxHashSet::default();
        self.heads.iter().for_each(|head| follow(*head, &mut listed));
        let gone = self.gone(&listed);
        for entry in &gone {
            if let Some(object) = self.known.remove(entry) {
                self.code.forget(object.code, now_ns);
            }
        }
        let mut room = MAX_READ_BYTES;
        let mut is_new = !gone.is_empty();
        for entry in listed {
            if self.known.contains_key(&entry) || entry.2 > room.min(MAX_OBJECT_BYTES) {
                continue;
            }
            room -= entry.2;
            is_new = true;
            let object = copied(entry.1, entry.2).and_then(|image| objects::read(image.into()).ok());
            let object = object.unwrap_or_default();
            let fingerprint = fingerprint(&entry).unwrap_or(0);
            self.known.insert(entry, ReadObject { code: object.text.clone(), fingerprint });
            self.add(object, since, frames);
        }
        is_new
    }

    /// Entries that are not listed any more, or have another object: memory that was given back is
    /// used again. So many entries are compared at each reading.
    fn gone(&mut self, listed: &FxHashSet<ListEntry>) -> Vec<ListEntry> {
        self.turn = self.turn.wrapping_add(1);
        let stride = self.known.len() / MAX_COMPARED + 1;
        let is_gone = |(number, (entry, object)): &(usize, (&ListEntry, &ReadObject))| {
            let is_compared = number % stride == self.turn % stride;
            !listed.contains(*entry)
                || is_compared && fingerprint(entry).is_some_and(|now| now != object.fingerprint)
        };
        self.known.iter().enumerate().filter(is_gone).map(|(_, (entry, _))| *entry).collect()
    }

    fn add(&mut self, object: JitObject, since: u64, frames: &JitTables) {
        for (code, function) in object.functions {
            self.code.insert(code.start, code.end - code.start, since, function);
        }
        if object.eh_frame.is_some() || object.debug_frame.is_some() {
            let (address, eh_frame) = object.eh_frame.unwrap_or_default();
            frames.add(object.text, (address, &eh_frame), object.debug_frame.as_deref());
        }
    }

    fn search(&mut self, symbols: &Symbols) {
        if self.searched.insert((symbols.key.path.clone(), symbols.bias))
            && let Some(address) = address_of(&symbols.key, DESCRIPTOR)
        {
            self.heads.push(address.wrapping_add(symbols.bias));
        }
    }
}

/// Of an object's last bytes.
fn fingerprint(&(_, address, size): &ListEntry) -> Option<u64> {
    let length = size.min(COMPARED_BYTES);
    let mut hasher = FxHasher::default();
    copied(address.checked_add(size - length)?, length)?.hash(&mut hasher);
    Some(hasher.finish())
}

/// Adds the entries of a list.
fn follow(head: u64, listed: &mut FxHashSet<ListEntry>) {
    let Some([version, _relevant, mut at]) = guarded_words(head) else { return };
    if version as u32 != VERSION {
        return;
    }
    for _ in 0..MAX_OBJECTS {
        let Some([next, _previous, address, size]) = guarded_words(at).filter(|_| at != 0) else { return };
        // The same entry again: the list changed meanwhile, or is a circle.
        if size == 0 || !listed.insert((at, address, size)) {
            return;
        }
        at = next;
    }
}

fn copied(address: u64, size: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    let read = guarded_copy(address, &mut bytes);
    (read == bytes.len()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a compiler's next object had the addresses and the size of the last one, and its
    /// name.
    #[test]
    fn an_object_that_was_replaced_in_its_place_is_read_again() {
        swipr_unwind::memory::set_process(swipr_os::process::pid() as i32);
        let mut image = vec![7u8; 10_000];
        let entry = (0x1000, image.as_ptr() as u64, image.len() as u64);
        let mut jit = GdbJit::new(1 << 20);
        let print = fingerprint(&entry).unwrap();
        jit.known.insert(entry, ReadObject { code: 0..1, fingerprint: print });
        let listed = FxHashSet::from_iter([entry]);
        assert!(jit.gone(&listed).is_empty());
        image[9_000] = 8;
        assert_eq!(jit.gone(&listed), [entry]);
        assert_eq!(jit.gone(&FxHashSet::default()), [entry], "it is listed no more");
    }
}
