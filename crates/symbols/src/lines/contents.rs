//! Where in a unit's DWARF its functions and its lines are: a few bytes a function, kept when all
//! that was parsed of the unit is dropped, so that no unit is looked through twice.

use super::extent::Extent;
use super::program::LineSequence;
use super::unit::OpenUnit;
use super::window::Window;
use crate::pages::PagedReader;
use gimli::{Dwarf, EndianSlice, EntriesRaw, LittleEndian, UnitOffset, UnitRef};
use std::ops::Range;
use swipr_unwind_tables::order::sorted_by;

/// Functions before an address that are looked at: how deep they nest, or overlap.
const MAX_ENTRIES: usize = 16;
/// So many attributes of an entry take as long as the range of a function.
const MANY_ATTRIBUTES: usize = 16;

/// See the module's text.
#[derive(Debug)]
pub(super) struct Contents {
    functions: Box<[DwarfFunction]>,
    stretches: Box<[LineSequence]>,
}

#[derive(Clone, Copy, Debug)]
struct DwarfFunction {
    begin: u64,
    size: u32,
    entry: u32,
}

impl Contents {
    /// Looks through a unit for code from `code_begin` on. What is malformed, or takes more than
    /// `room` bytes, ends either.
    pub(super) fn read(
        dwarf: &Dwarf<PagedReader>,
        unit: &OpenUnit,
        code_begin: u64,
        room: usize,
    ) -> Contents {
        let functions = functions(unit.of_functions(dwarf), code_begin, room / size_of::<DwarfFunction>());
        let stretches =
            unit.program().map(|program| program.stretches(code_begin, room / size_of::<LineSequence>()));
        Contents { functions: functions.into(), stretches: stretches.unwrap_or_default().into() }
    }

    /// The entry of the function at an address.
    pub(super) fn function(&self, address: u64) -> Option<UnitOffset> {
        let position = self.functions.partition_point(|function| function.begin <= address);
        let before = self.functions.get(..position)?.iter().rev().take(MAX_ENTRIES);
        let mut around = before.filter(|function| address - function.begin < u64::from(function.size));
        around.next().map(|function| UnitOffset(function.entry as usize))
    }

    /// The lines around an address.
    pub(super) fn stretch(&self, address: u64) -> Option<&LineSequence> {
        let position = self.stretches.partition_point(|stretch| stretch.begin <= address);
        let before = self.stretches.get(..position)?.iter().rev().take(MAX_ENTRIES);
        before.into_iter().find(|stretch| address < stretch.end)
    }

    /// The lines of the code in a range.
    pub(super) fn stretches(&self, code: &Range<u64>) -> impl Iterator<Item = &LineSequence> {
        self.stretches.iter().filter(|stretch| stretch.begin < code.end && code.start < stretch.end)
    }

    /// Heap bytes in use.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Contents>() + size_of_val(&*self.functions) + size_of_val(&*self.stretches)
    }
}

fn functions(unit: UnitRef<PagedReader>, code_begin: u64, most: usize) -> Vec<DwarfFunction> {
    let mut found = Vec::new();
    // What was found before an error stays.
    let _ = gather(unit, &mut found, most);
    found.retain(|function| function.begin >= code_begin);
    sorted_by(&found, |function| function.begin)
}

fn gather(unit: UnitRef<PagedReader>, found: &mut Vec<DwarfFunction>, most: usize) -> gimli::Result<()> {
    let root = unit.header.root_offset();
    let mut window = Window::new(unit.header.range_from(root..)?);
    let (mut at, mut looks) = (0, 0);
    loop {
        let bytes = EndianSlice::new(window.from(at)?, LittleEndian);
        let mut entries =
            EntriesRaw::new(bytes, unit.header.encoding(), &unit.abbreviations, UnitOffset(root.0 + at));
        // Entries may share lists of ranges.
        while looks < most {
            let entry = entries.next_offset();
            at = entry.0 - root.0;
            // An entry that ends behind the window is read again in the next one.
            let Ok((extent, attributes)) = next_function(unit, &mut entries) else { break };
            // An entry of a byte may have thousands.
            looks += attributes / MANY_ATTRIBUTES;
            let Some(extent) = extent else { continue };
            looks += extent.each(unit, |begin, end| {
                let (size, entry) = (u32::try_from(end - begin), u32::try_from(entry.0));
                if let (Ok(size), Ok(entry)) = (size, entry) {
                    found.push(DwarfFunction { begin, size, entry });
                }
            });
        }
        if looks >= most || !window.more(at) {
            return Ok(());
        }
    }
}

/// The addresses of the next entry, if it is a function with code, and how many attributes it has.
fn next_function(
    unit: UnitRef<PagedReader>,
    entries: &mut EntriesRaw<EndianSlice<LittleEndian>>,
) -> gimli::Result<(Option<Extent>, usize)> {
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok((None, 0)) };
    let attributes = abbreviation.attributes();
    let has_code = || attributes.iter().any(|attribute| Extent::begins_with(attribute.name()));
    if abbreviation.tag() != gimli::DW_TAG_subprogram || !has_code() {
        entries.skip_attributes(attributes)?;
        return Ok((None, attributes.len()));
    }
    let mut extent = Extent::default();
    for &attribute in attributes {
        extent.note(unit, &entries.read_attribute(attribute)?);
    }
    Ok((Some(extent), attributes.len()))
}
