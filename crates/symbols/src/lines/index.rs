//! Which units may hold an address. Kept as long as an object is: a few bytes a unit, so that units
//! themselves can be dropped and parsed again.

use super::extent::Extent;
use super::parse;
use crate::pages::PagedReader;
use gimli::{DebugInfoOffset, Dwarf, UnitRef, UnitType};
use rustc_hash::FxHashSet;
use std::cell::OnceCell;
use std::time::{Duration, Instant};
use swipr_unwind_tables::order::sorted_by;

/// Units that are tried for one address: some compilers' units overlap.
const MAX_CANDIDATES: usize = 8;
/// Units that are looked at; programs of a gigabyte of debug information have some ten thousand.
const MAX_UNITS: usize = 1 << 20;
/// Ranges between two times that those of one unit that follow one another are put together.
const RANGES_AT_ONCE: usize = 1 << 18;
/// Ranges that are read from the list of all of them.
const MAX_LISTED: usize = 1 << 20;
/// Units may share what describes their entries, so that a small file takes long.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Ranges before an address that are looked at.
const MAX_ENTRIES: usize = 64;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Index {
    /// The units in the list of addresses (`.debug_aranges`), which compilers need not write.
    listed: Ranges,
    /// The others, and where all units begin: looked at when they are first needed. In a
    /// compressed file that costs all of it.
    others: OnceCell<(Ranges, Vec<usize>)>,
    code_begin: u64,
    room: usize,
}

#[derive(Debug, Default)]
struct Ranges(Vec<IndexPart>);

#[derive(Clone, Copy, Debug)]
struct IndexPart {
    begin: u64,
    end: u64,
    /// The highest end up to here.
    highest: u64,
    unit: usize,
}

impl Index {
    /// Reads the list of units' addresses, or else of each unit the first entry. What begins before
    /// `code_begin` is left out. `None`: there is no unit, or they take more than `room` bytes, or
    /// too long.
    pub(super) fn read(dwarf: &Dwarf<PagedReader>, code_begin: u64, room: usize) -> Option<Index> {
        let listed = Ranges::new(listed(dwarf, code_begin, room / size_of::<IndexPart>()));
        let index = Index { listed, others: OnceCell::new(), code_begin, room };
        (!index.listed.0.is_empty() || !index.others(dwarf).1.is_empty()).then_some(index)
    }

    /// Looks at the units that are not in the list. What is malformed ends the list of units. One
    /// copy of it, for its callers: 9 KB of code.
    #[inline(never)]
    fn others(&self, dwarf: &Dwarf<PagedReader>) -> &(Ranges, Vec<usize>) {
        self.others.get_or_init(|| {
            let starts = starts(dwarf);
            let known: FxHashSet<u64> = self.listed.0.iter().map(|part| part.unit as u64).collect();
            let unlisted = starts.iter().filter(|start| !known.contains(&(**start as u64)));
            let ranges = ranges(dwarf, unlisted, self.code_begin, self.room);
            ranges.map(|ranges| (Ranges::new(ranges), starts)).unwrap_or_default()
        })
    }

    /// The units in the list that say that they have code at an address, the one that begins
    /// nearest to it first.
    pub(super) fn listed_at(&self, address: u64) -> Vec<usize> {
        self.listed.units_at(address)
    }

    /// The same of the others. Units in the list may be of no use: between two ranges of one of
    /// them may be another's code.
    pub(super) fn others_at(&self, dwarf: &Dwarf<PagedReader>, address: u64) -> Vec<usize> {
        self.others(dwarf).0.units_at(address)
    }

    /// The unit that holds an entry.
    pub(super) fn unit_of(&self, dwarf: &Dwarf<PagedReader>, entry: DebugInfoOffset) -> Option<usize> {
        unit_of(&self.others(dwarf).1, entry)
    }

    /// Where the object's code begins.
    pub(super) fn code_begin(&self) -> u64 {
        self.code_begin
    }

    /// Heap bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let bytes = |ranges: &Ranges| ranges.0.capacity() * size_of::<IndexPart>();
        let others = self
            .others
            .get()
            .map_or(0, |(ranges, starts)| bytes(ranges) + starts.capacity() * size_of::<usize>());
        bytes(&self.listed) + others
    }
}

impl Ranges {
    fn new(mut parts: Vec<IndexPart>) -> Ranges {
        merge_adjacent(&mut parts);
        let mut highest = 0;
        for part in &mut parts {
            highest = highest.max(part.end);
            part.highest = highest;
        }
        parts.shrink_to_fit();
        Ranges(parts)
    }

    fn units_at(&self, address: u64) -> Vec<usize> {
        let position = self.0.partition_point(|part| part.begin <= address);
        let before = self.0.get(..position).unwrap_or_default().iter().rev();
        let near = before.take(MAX_ENTRIES).take_while(|part| part.highest > address);
        let mut units: Vec<usize> = Vec::new();
        for part in near.filter(|part| part.end > address) {
            if !units.contains(&part.unit) && units.len() < MAX_CANDIDATES {
                units.push(part.unit);
            }
        }
        units
    }
}

/// The addresses of units, by their first entries; `None`: they take more than `room` bytes, or too
/// long.
fn ranges<'a>(
    dwarf: &Dwarf<PagedReader>,
    units: impl Iterator<Item = &'a usize>,
    code_begin: u64,
    room: usize,
) -> Option<Vec<IndexPart>> {
    let (started, mut ranges, mut next) = (Instant::now(), Vec::new(), RANGES_AT_ONCE);
    for &unit in units {
        // Units without code have no addresses; others may refer to them.
        if let Some(parts) = parts(dwarf, unit) {
            let parts = parts.into_iter().filter(|&(begin, _)| begin >= code_begin);
            ranges.extend(parts.map(|(begin, end)| IndexPart { begin, end, highest: 0, unit }));
        }
        if ranges.len() >= next {
            merge_adjacent(&mut ranges);
            next = ranges.len() + RANGES_AT_ONCE;
        }
        if started.elapsed() > MAX_TIME || ranges.len() * size_of::<IndexPart>() > room {
            return None;
        }
    }
    Some(ranges)
}

/// What `.debug_aranges` says. The first entries of its units are not read: for each of them gimli
/// reads abbreviations and the names of files.
fn listed(dwarf: &Dwarf<PagedReader>, code_begin: u64, most: usize) -> Vec<IndexPart> {
    let mut ranges = Vec::new();
    let (mut headers, mut units) = (dwarf.debug_aranges.headers(), 0);
    while let Ok(Some(header)) = headers.next()
        && units < MAX_UNITS
    {
        units += 1;
        let unit = header.debug_info_offset().0;
        let mut entries = header.entries();
        while let Ok(Some(entry)) = entries.next()
            && ranges.len() < most.min(MAX_LISTED)
        {
            let (begin, end) = (entry.range().begin, entry.range().end);
            if begin < end && begin >= code_begin {
                ranges.push(IndexPart { begin, end, highest: 0, unit });
            }
        }
    }
    ranges
}

/// Sorts, and makes one of the ranges of a unit between which no other unit has one: what lies
/// between them is at most padding.
fn merge_adjacent(ranges: &mut Vec<IndexPart>) {
    *ranges = sorted_by(ranges, |part| part.begin);
    ranges.dedup_by(|next, last| {
        let is_same = next.unit == last.unit;
        if is_same {
            last.end = last.end.max(next.end);
        }
        is_same
    });
}

/// Where the units of `.debug_info` begin.
pub(super) fn starts(dwarf: &Dwarf<PagedReader>) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next()
        && starts.len() < MAX_UNITS
    {
        starts.extend(header.debug_info_offset().map(|offset| offset.0));
    }
    starts.shrink_to_fit();
    starts
}

/// The last unit of sorted ones that begins before an entry.
pub(super) fn unit_of(starts: &[usize], entry: DebugInfoOffset) -> Option<usize> {
    let position = starts.partition_point(|&start| start <= entry.0);
    starts.get(position.checked_sub(1)?).copied()
}

/// The addresses of a unit; `None` where it has none, or cannot be read.
fn parts(dwarf: &Dwarf<PagedReader>, start: usize) -> Option<Vec<(u64, u64)>> {
    let header = dwarf.unit_header(DebugInfoOffset(start)).ok()?;
    if !matches!(header.type_(), UnitType::Compilation | UnitType::Skeleton(_)) {
        return None;
    }
    let unit = parse::unit(dwarf, header).ok()?;
    let unit = UnitRef::new(dwarf, &unit);
    let mut entries = unit.entries_raw(None).ok()?;
    let root = entries.read_abbreviation().ok()??;
    let mut extent = Extent::default();
    for &attribute in root.attributes() {
        extent.note(unit, &entries.read_attribute(attribute).ok()?);
    }
    let mut parts = Vec::new();
    extent.each(unit, |begin, end| parts.push((begin, end)));
    if parts.is_empty() {
        // Some assemblers' units only say what addresses their lines have.
        let (_, sequences) = unit.line_program.clone()?.sequences().ok()?;
        let bounds = sequences.iter().map(|sequence| (sequence.start, sequence.end));
        parts.extend(bounds.filter(|(begin, end)| begin < end));
    }
    Some(parts)
}
