//! What is read of a loaded object in the process's memory: build id, unwind sections, the code of
//! `main`.

use super::origin::Origin;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use swipr_os::maps::Mapping;
use swipr_os::objects::{self, Object, Segment};
use swipr_symbols::elf::build_id_of_notes;
use swipr_symbols::rows::{DebugFrameInput, UnwindInput, build_table, main_of_start};
use swipr_symbols::table::OwnedTable;
use swipr_unwind::dwarf::*;
use swipr_unwind::memory;
use swipr_unwind::sections::{Room, Sections, TableDemand};

/// Larger unwind sections and images are not read.
pub const MAX_BYTES: u64 = 1 << 30;
/// Bytes of an entry of the search table.
const SEARCH_ENTRY: usize = 8;
/// Bytes of `_start` and of `main` that are read.
const MAIN_BYTES: u64 = 128;

/// `.eh_frame_hdr` and `.eh_frame`, copied out of memory; where they are in it, of the object that
/// this code is in, which stays.
#[derive(Debug)]
pub struct UnwindSections {
    header: u64,
    start: u64,
    bytes: Cow<'static, [u8]>,
    header_bytes: Cow<'static, [u8]>,
}

impl UnwindSections {
    /// The unwind table of the code in `text`; `main` and `debug_frame` as in [`UnwindInput`].
    pub fn table(
        &self,
        text: &Range<u64>,
        main: Option<(u64, &[u8])>,
        debug_frame: Option<DebugFrameInput<'_>>,
    ) -> Option<OwnedTable> {
        build_table(&UnwindInput {
            text: text.clone(),
            eh_frame_hdr: Some((self.header, &self.header_bytes)),
            eh_frame: (self.start, &self.bytes),
            debug_frame,
            main,
            aarch64: cfg!(target_arch = "aarch64"),
        })
        .ok()
    }

    /// As handlers read it.
    pub fn view<'s>(&'s self, demand: &'s TableDemand, any_wanted: &'s AtomicBool) -> Sections<'s> {
        let (header, frames) = ((self.header, &*self.header_bytes), (self.start, &*self.bytes));
        Sections { header, frames, demand, any_wanted }
    }

    /// How many functions the search table has.
    pub fn functions(&self) -> usize {
        self.header_bytes.len() / SEARCH_ENTRY
    }

    /// The memory of the copies.
    pub fn bytes(&self) -> usize {
        let copied = |bytes: &Cow<'_, [u8]>| if let Cow::Owned(copy) = bytes { copy.capacity() } else { 0 };
        copied(&self.bytes) + copied(&self.header_bytes)
    }

    /// Whether rules can be read of them one by one: there is a search table of the usual form, and
    /// it has `main`, whose instructions need not be read then.
    pub fn are_searchable(&self, main: Option<u64>) -> bool {
        let &[1, _, 0x03, 0x3b, _, _, _, _, a, b, c, d, ref entries @ ..] = &*self.header_bytes else {
            return false;
        };
        let count = u32::from_le_bytes([a, b, c, d]) as usize;
        let is_described = |main| {
            let (demand, any_wanted) = (TableDemand::new(u32::MAX), AtomicBool::new(false));
            self.view(&demand, &any_wanted).rule(main, &mut Room::new());
            !demand.is_wanted()
        };
        count > 0 && entries.len() / SEARCH_ENTRY >= count && main.is_none_or(is_described)
    }
}

/// Reads the process's memory without ever faulting: an object may be unloaded at any time.
pub struct Reader {
    /// As for [`swipr_unwind::memory::guarded_copy_or_file`].
    pub memory_file: i32,
}

impl Reader {
    /// A copy of that memory, as far as it can be read.
    pub fn copy(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let length = range.end.checked_sub(range.start).filter(|&length| length <= MAX_BYTES)?;
        let mut bytes = vec![0; length as usize];
        let read = memory::guarded_copy_or_file(range.start, &mut bytes, self.memory_file);
        bytes.truncate(read);
        (read > 0).then_some(bytes)
    }

    fn build_id(&self, object: &Object) -> Option<Vec<u8>> {
        let mut notes = object.segments.iter().filter(|segment| segment.kind == libc::PT_NOTE);
        notes.find_map(|segment| build_id_of_notes(&self.copy(segment.range())?))
    }

    /// The object's file, and its build id (empty: none).
    pub fn identity(&self, object: &Object, maps: &[Mapping]) -> (Origin, Vec<u8>) {
        let (origin, build_id) = (Origin::of_object(object, maps), self.build_id(object).unwrap_or_default());
        (if build_id.is_empty() { origin.dated() } else { origin }, build_id)
    }

    /// The whole object, which begins at `start`.
    pub fn image(&self, object: &Object, start: u64) -> Option<Arc<[u8]>> {
        let loaded = object.segments.iter().filter(|segment| segment.kind == libc::PT_LOAD);
        let end = loaded.map(|segment| segment.range().end).max()?;
        const PAGE: u64 = 4096; // section headers lie behind the loaded segment, in its last page
        self.copy(start..end.next_multiple_of(PAGE)).map(Arc::from)
    }

    /// Address and first instructions of `main`, if this is the code of the executable.
    pub fn main_function(&self, text: &Range<u64>) -> Option<(u64, Vec<u8>)> {
        let entry = objects::entry_address();
        let code = |address: u64| {
            let end = address.saturating_add(MAIN_BYTES).min(text.end);
            text.contains(&address).then(|| self.copy(address..end)).flatten()
        };
        let main = main_of_start(entry, &code(entry)?)?;
        Some((main, code(main)?))
    }

    /// Where and what they are; `None`: the object has none, or cannot be read.
    pub fn unwind_sections(&self, object: &Object) -> Option<UnwindSections> {
        let here = eh_frame_pointer as *const () as u64;
        let is_here = object.segments.iter().any(|it| it.is_code() && it.range().contains(&here));
        let content = |range: Range<u64>| match is_here {
            // SAFETY: loaded, as this function is, and never written to.
            true => Some(Cow::Borrowed(unsafe { memory_at(range) })),
            false => self.copy(range).map(Cow::Owned),
        };
        let header = frame_header(object)?;
        let header_bytes = content(header.range())?;
        let start = eh_frame_pointer(&header_bytes, header.address)?;
        let holds = |segment: &&Segment| segment.kind == libc::PT_LOAD && segment.range().contains(&start);
        let end = object.segments.iter().find(holds)?.range().end;
        let bytes = content(start..end)?;
        Some(UnwindSections { header: header.address, start, bytes, header_bytes })
    }
}

/// Memory where it is.
///
/// # Safety
/// It can be read, and nothing writes to it, for as long as the process lives.
unsafe fn memory_at(range: Range<u64>) -> &'static [u8] {
    let bytes = range.end.saturating_sub(range.start) as usize;
    // SAFETY: says the caller.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, bytes) }
}

/// Where `.eh_frame_hdr` is.
pub fn frame_header(object: &Object) -> Option<&Segment> {
    const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
    object.segments.iter().find(|segment| segment.kind == PT_GNU_EH_FRAME)
}

/// Where `.eh_frame` is: the first encoded pointer of `.eh_frame_hdr` (LSB, "Exception Frames").
fn eh_frame_pointer(header: &[u8], address: u64) -> Option<u64> {
    let [1, encoding, _, _, a, b, c, d, ..] = *header else { return None };
    let four = [a, b, c, d];
    let value = match encoding & 0x0f {
        DW_EH_PE_UDATA4 => u64::from(u32::from_le_bytes(four)),
        DW_EH_PE_SDATA4 => i64::from(i32::from_le_bytes(four)) as u64,
        _ => return None,
    };
    match encoding & 0x70 {
        DW_EH_PE_ABSPTR => Some(value),
        DW_EH_PE_PCREL => Some(value.wrapping_add(address + 4)),
        DW_EH_PE_DATAREL => Some(value.wrapping_add(address)),
        _ => None,
    }
}
