//! The tables that handlers look into: one immutable snapshot behind one pointer.
//!
//! Idea: the sampler builds a new [`Snapshot`] aside, swaps the pointer, and frees the old one when
//! no handler can hold it. Assumption: a handler loads the pointer only after it has marked its
//! slot as being written (`slot::begin`), and both sides use SeqCst. So either the handler's load
//! sees the new pointer, or the sampler sees the mark when it then looks at the slots. If no slot
//! is being written after a swap (`slot::any_written`), no handler holds the old snapshot.

pub mod interpreter;
mod pointer;

use crate::atomic::AtomicPtr;
use crate::cache::Cache;
use crate::code_cache::CodeCache;
pub use crate::range::Range;
use crate::register_rules::Saved;
use crate::rule::{Extended, Rule};
use crate::table::Table;
use pointer::Pointer;

/// One loaded object: the code its table covers.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// The executable memory.
    pub text: Range,
    /// The rules of that memory.
    pub table: Table<'a>,
    /// Address of the object's `.eh_frame_hdr`, through which its frame descriptions are found; 0:
    /// there is none, and the table itself says where registers are saved
    /// ([`crate::register_table`]).
    /// The object may be unloaded: only for guarded reads.
    pub frame_header: u64,
}

/// Everything a walk looks up.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// Sorted by address, not overlapping.
    pub objects: &'a [Object<'a>],
    /// All executable memory, with or without a table; sorted, not overlapping.
    pub executable: &'a [Range],
}

impl<'a> Snapshot<'a> {
    /// The object whose code holds `pc`.
    #[inline]
    pub fn object(&self, pc: u64) -> Option<&Object<'a>> {
        let at = self.objects.partition_point(|object| object.text.low <= pc).checked_sub(1)?;
        self.objects.get(at).filter(|object| pc < object.text.high)
    }

    /// Whether `address` lies in executable memory, as of when the snapshot was made.
    pub fn is_executable(&self, address: u64) -> bool {
        let after = self.executable.partition_point(|range| range.low <= address);
        match after.checked_sub(1).and_then(|at| self.executable.get(at)) {
            Some(range) => address < range.high,
            None => false,
        }
    }
}

/// A snapshot together with the cache in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The tables.
    pub snapshot: &'a Snapshot<'a>,
    /// What was looked up in them before.
    pub cache: &'a Cache,
    /// The code of Java, if there is any.
    pub code_cache: Option<&'a CodeCache>,
}

impl Rules<'_> {
    /// The rule at `pc`.
    #[inline(always)]
    pub fn rule(&self, pc: u64) -> Rule {
        match self.cache.get(pc) {
            Some(rule) => rule,
            None => self.look_up(pc),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self, pc: u64) -> Rule {
        let Some(object) = self.snapshot.object(pc) else { return Rule::NONE };
        let rule = object.table.rule(pc);
        self.cache.put(pc, rule);
        rule
    }

    /// Where `register` is saved at `pc`, where the object's table says so.
    pub(crate) fn saved(&self, pc: u64, register: u8) -> Option<Saved> {
        self.snapshot.object(pc)?.table.saved(pc, register)
    }

    /// The `.eh_frame_hdr` of the object that holds `pc`.
    pub(crate) fn frame_header(&self, pc: u64) -> Option<u64> {
        Some(self.snapshot.object(pc)?.frame_header).filter(|&address| address != 0)
    }

    /// The extended rule and its expression bytes, for a `rule` found at `pc`.
    pub(crate) fn extended(&self, pc: u64, rule: Rule) -> Option<(&Extended, &[u8])> {
        let table = &self.snapshot.object(pc)?.table;
        Some((table.extended_rule(rule)?, table.expressions))
    }
}

static CURRENT: Pointer<Snapshot<'static>> = Pointer(AtomicPtr::new(core::ptr::null_mut()));
static CACHE: Cache = Cache::new();

/// Puts `snapshot` (or, with null, none) in place and returns the one before.
/// Call [`clear_cache`] afterwards, and again once the old one is retired: a
/// handler that still held it may have cached one of its rules.
///
/// # Safety
/// `snapshot` and all it refers to stay valid and unchanged until it was replaced
/// and [`crate::slot::any_written`] was seen to be false afterwards.
pub unsafe fn publish(snapshot: *mut Snapshot<'static>) -> *mut Snapshot<'static> {
    CURRENT.publish(snapshot)
}

/// Clears the pointer, unless it is another snapshot's by now.
pub fn unpublish(snapshot: *mut Snapshot<'static>) {
    CURRENT.unpublish(snapshot);
}

/// Forgets cached rules.
pub fn clear_cache() {
    CACHE.clear();
}

/// The published rules; `None` before the first [`publish`].
///
/// # Safety
/// For handlers only after they marked their slot as being written, and only
/// until they hand it back; for the thread that publishes at any time.
#[inline(always)]
pub unsafe fn current<'a>() -> Option<Rules<'a>> {
    let pointer = CURRENT.current();
    // SAFETY: `publish`'s caller keeps the snapshot valid while it can be held; this function's
    // caller says that it may hold one.
    let snapshot = unsafe { pointer.as_ref() }?;
    // SAFETY: the same holds for both.
    let code_cache = unsafe { interpreter::current() }.and_then(|found| found.code_cache.as_ref());
    Some(Rules { snapshot, cache: &CACHE, code_cache })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_ranges_have_exact_ends() {
        let executable = [Range { low: 0x1000, high: 0x2000 }, Range { low: 0x3000, high: 0x3001 }];
        let snapshot = Snapshot { objects: &[], executable: &executable };
        for (address, expected) in
            [(0xfff, false), (0x1000, true), (0x1fff, true), (0x2000, false), (0x3000, true), (0x3001, false)]
        {
            assert_eq!(snapshot.is_executable(address), expected, "{address:#x}");
        }
        assert!(!Snapshot { objects: &[], executable: &[] }.is_executable(0));
    }
}
