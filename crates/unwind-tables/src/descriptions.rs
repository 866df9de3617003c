//! Which functions an `.eh_frame` describes, sorted, and each one's description
//! parsed on demand. The search table of `.eh_frame_hdr` is preferred: it says how
//! many there are, where the section itself may lack a terminator (vdso) or have
//! one in its middle (some linkers). The section is walked where there is no table.

use crate::order::sorted_by;
use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EhFrameOffset, LittleEndian, UnwindSection, Vendor};
use rustc_hash::FxHashMap;
use std::ops::Range;
use swipr_unwind::dwarf::*;

/// How this crate reads call frame information.
pub(crate) type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;
/// A parsed frame description.
pub(crate) type Description<'a> = gimli::FrameDescriptionEntry<Slice<'a>>;
/// What descriptions have in common.
pub(crate) type ReadCie<'a> = gimli::CommonInformationEntry<Slice<'a>>;

const ADDRESS_BYTES: u8 = 8;

/// Where a function begins and where its description is in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Described {
    /// First address.
    pub(crate) start: u64,
    /// Offset of the description in its section.
    pub(crate) offset: usize,
}

impl Described {
    /// By start, and of equal starts by offset.
    pub(crate) fn sorted(all: &[Described]) -> Vec<Described> {
        let by_offset = sorted_by(all, |described| described.offset as u64);
        sorted_by(&by_offset, |described| described.start)
    }
}

/// An `.eh_frame` section at an address.
pub(crate) struct Descriptions<'a> {
    section: EhFrame<Slice<'a>>,
    address: u64,
    bases: BaseAddresses,
    cies: FxHashMap<usize, ReadCie<'a>>,
}

impl<'a> Descriptions<'a> {
    /// The section's bytes as they are at `address`.
    pub(crate) fn new((address, bytes): (u64, &'a [u8]), aarch64: bool) -> Descriptions<'a> {
        let mut section = EhFrame::new(bytes, LittleEndian);
        section.set_address_size(ADDRESS_BYTES);
        if aarch64 {
            section.set_vendor(Vendor::AArch64);
        }
        let bases = BaseAddresses::default().set_eh_frame(address);
        Descriptions { section, address, bases, cies: FxHashMap::default() }
    }

    /// The same, with code at `text` that addresses may be relative to: JIT objects of one function
    /// (LuaJIT's, PHP's) have no other base.
    pub(crate) fn of_code_at(self, text: u64) -> Descriptions<'a> {
        Descriptions { bases: self.bases.clone().set_text(text), ..self }
    }

    /// The section, for parsing instructions.
    pub(crate) fn section(&self) -> &EhFrame<Slice<'a>> {
        &self.section
    }

    /// What encoded pointers in the section are relative to.
    pub(crate) fn bases(&self) -> &BaseAddresses {
        &self.bases
    }

    /// The description at an offset of the section.
    pub(crate) fn at(&mut self, offset: usize) -> gimli::Result<Description<'a>> {
        let cies = &mut self.cies;
        self.section.fde_from_offset(&self.bases, EhFrameOffset(offset), |section, bases, at| {
            if let Some(common) = cies.get(&at.0) {
                return Ok(common.clone());
            }
            let common = section.cie_from_offset(bases, at)?;
            cies.insert(at.0, common.clone());
            Ok(common)
        })
    }

    /// The common entry at an offset of the section.
    pub(crate) fn common(&self, offset: usize) -> Option<ReadCie<'a>> {
        self.section.cie_from_offset(&self.bases, EhFrameOffset(offset)).ok()
    }

    /// All functions that begin in `text`, by start; of equal starts the last.
    /// Not yet parsed: whether a description is sound shows in [`Self::at`].
    pub(crate) fn sorted(&mut self, header: Option<(u64, &[u8])>, text: &Range<u64>) -> Vec<Described> {
        let mut found = header.and_then(|header| self.by_header(header)).unwrap_or_else(|| self.by_walking());
        found.retain(|described| text.contains(&described.start));
        if !found.is_sorted() {
            found = Described::sorted(&found);
        }
        // `dedup_by` keeps the first of each run: make that the last of its start.
        found.reverse();
        found.dedup_by_key(|described| described.start);
        found.reverse();
        found
    }

    /// The description of a function found before, if it is what it was said to be.
    pub(crate) fn parse(&mut self, described: Described) -> Option<Description<'a>> {
        let description = self.at(described.offset).ok()?;
        let sound = description.initial_address() == described.start && description.len() != 0;
        sound.then_some(description)
    }

    /// The code ranges of the functions whose descriptions are at offset `first` or behind it, by
    /// start.
    pub(crate) fn ranges(&mut self, first: usize) -> Vec<Range<u64>> {
        let found = self.sorted(None, &(0..u64::MAX));
        let range = |described| {
            let description = self.parse(described)?;
            Some(described.start..described.start.saturating_add(description.len()))
        };
        found.into_iter().filter(|described| described.offset >= first).filter_map(range).collect()
    }

    /// By the search table; `None` where it cannot be read to its end.
    fn by_header(&self, (address, bytes): (u64, &[u8])) -> Option<Vec<Described>> {
        if let Some(entries) = usual_entries(bytes) {
            let entry = |[start, description]: [i32; 2]| {
                let at = |distance| address.wrapping_add_signed(i64::from(distance));
                let offset = at(description).checked_sub(self.address)?;
                Some(Described { start: at(start), offset: usize::try_from(offset).ok()? })
            };
            let found: Option<Vec<Described>> = entries.map(entry).collect();
            return found.filter(|found| !found.is_empty());
        }
        let bases = BaseAddresses::default().set_eh_frame_hdr(address);
        let header = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, ADDRESS_BYTES).ok()?;
        let table = header.table()?;
        let mut entries = table.iter(&bases);
        let mut found = Vec::new();
        while let Some((start, description)) = entries.next().ok()? {
            let offset = description.direct().ok()?.checked_sub(self.address)?;
            found.push(Described { start: start.direct().ok()?, offset: usize::try_from(offset).ok()? });
        }
        (!found.is_empty()).then_some(found)
    }

    /// From the section's beginning to its terminator or the first error.
    fn by_walking(&mut self) -> Vec<Described> {
        let section = self.section;
        let bases = self.bases.clone();
        let mut entries = section.entries(&bases);
        let mut found = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(partial) = entry {
                let offset = partial.offset();
                if let Ok(description) = self.at(offset)
                    && description.len() != 0
                {
                    found.push(Described { start: description.initial_address(), offset });
                }
            }
        }
        found
    }
}

/// The entries of a search table in the form that linkers write: two distances from the section,
/// four bytes each.
fn usual_entries(header: &[u8]) -> Option<impl Iterator<Item = [i32; 2]>> {
    const OF_TABLE: u8 = DW_EH_PE_DATAREL | DW_EH_PE_SDATA4;
    let (&[1, pointer, DW_EH_PE_UDATA4, OF_TABLE, _, _, _, _, a, b, c, d], entries) =
        header.split_first_chunk()?
    else {
        return None;
    };
    if !matches!(pointer & 0x0f, DW_EH_PE_UDATA4 | DW_EH_PE_SDATA4) {
        return None;
    }
    let count = u32::from_le_bytes([a, b, c, d]) as usize;
    let (entries, _) = entries.get(..count.checked_mul(8)?)?.as_chunks::<8>();
    Some(entries.iter().map(|&[a, b, c, d, e, f, g, h]| {
        [i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h])]
    }))
}
