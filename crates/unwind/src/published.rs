//! The tables that handlers look into: one immutable snapshot behind one pointer.
//!
//! Idea: the sampler builds a new [`Snapshot`] aside, swaps the pointer, and frees the old one when
//! no handler can hold it. Assumption: a handler loads the pointer only after it has marked its
//! slot as being written (`slot::begin`), and both sides use SeqCst. So either the handler's load
//! sees the new pointer, or the sampler sees the mark when it then looks at the slots. If no slot
//! is being written after a swap (`slot::any_written`), no handler holds the old snapshot.

pub mod interpreter;
mod pointer;

use crate::arch;
use crate::atomic::AtomicPtr;
use crate::cache::Cache;
use crate::code_cache::CodeCache;
pub use crate::range::Range;
use crate::register_rules::Saved;
use crate::rule::{Extended, Rule};
use crate::sections::{Room, Sections};
use crate::table::Table;
use core::ffi::c_void;
use core::ptr;
use pointer::Pointer;

/// One loaded object: the code its table covers.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// The executable memory.
    pub text: Range,
    /// The rules of that memory.
    pub table: Table<'a>,
    /// Where the rules are read as long as the table is empty.
    pub sections: Option<Sections<'a>>,
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
    /// The upper end of a stack on which rules are read of [`Sections`]; null: the caller's own.
    pub(crate) stack: *mut u8,
}

impl<'a> Rules<'a> {
    /// Rules that are read on the caller's own stack, if they are not in a table.
    pub fn new(snapshot: &'a Snapshot<'a>, cache: &'a Cache, code_cache: Option<&'a CodeCache>) -> Rules<'a> {
        Rules { snapshot, cache, code_cache, stack: ptr::null_mut() }
    }

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
        if let Some(sections) = &object.sections {
            return self.read(sections, pc);
        }
        let rule = object.table.rule(pc);
        self.cache.put(pc, rule);
        rule
    }

    /// Not inlined, and called last: the way to another stack takes little of this one.
    #[inline(never)]
    fn read(&self, sections: &Sections<'_>, pc: u64) -> Rule {
        let mut job = ReadRule { sections, pc, rule: Rule::NONE };
        let argument = (&raw mut job).cast();
        if self.stack.is_null() {
            // SAFETY: the job has this very type.
            unsafe { read_rule(argument) };
        } else {
            // SAFETY: as above; the maker of these rules has lent them this stack.
            unsafe { arch::call_on_stack(self.stack, read_rule, argument) };
        }
        self.cache.put(pc, job.rule);
        job.rule
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
    pub(crate) fn extended<'r>(
        &'r self,
        pc: u64,
        rule: Rule,
        room: &'r mut Room,
    ) -> Option<(&'r Extended, &'r [u8])> {
        let object = self.snapshot.object(pc)?;
        match &object.sections {
            Some(sections) => sections.extended(pc, room),
            None => Some((object.table.extended_rule(rule)?, object.table.expressions)),
        }
    }
}

/// Arguments and result of [`read_rule`].
struct ReadRule<'r> {
    sections: &'r Sections<'r>,
    pc: u64,
    rule: Rule,
}

/// Not inlined: its room is on the stack that it is called on.
///
/// # Safety
/// `job` is the address of a [`ReadRule`].
#[inline(never)]
unsafe extern "C" fn read_rule(job: *mut c_void) {
    // SAFETY: says the caller.
    let job = unsafe { &mut *job.cast::<ReadRule<'_>>() };
    job.rule = job.sections.rule(job.pc, &mut Room::new());
}

static CURRENT: Pointer<Snapshot<'static>> = Pointer(AtomicPtr::new(ptr::null_mut()));
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
    Some(Rules::new(snapshot, &CACHE, code_cache))
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
