//! Parses a unit, unless that would take much more memory than its file has bytes. gimli makes some
//! hundred bytes of an abbreviation of five bytes, and of a file's name of one.

use crate::pages::PagedReader;
use gimli::{
    AttributeValue, DebugAbbrev, DebugLineOffset, Dwarf, Error, Reader, Result, Section, Unit, UnitHeader,
};
use std::sync::Arc;

/// Bytes of a unit's abbreviations, and of the header of its table of lines. Compilers write some
/// kilobytes.
const MAX_BYTES: usize = 1 << 20;

/// The unit.
#[inline(never)]
pub(super) fn unit(dwarf: &Dwarf<PagedReader>, header: UnitHeader<PagedReader>) -> Result<Unit<PagedReader>> {
    let mut abbreviations = dwarf.debug_abbrev.reader().clone();
    let offset = header.debug_abbrev_offset();
    let end = offset.0.saturating_add(MAX_BYTES);
    if end < abbreviations.len() {
        abbreviations.truncate(end)?;
    }
    let abbreviations = Arc::new(DebugAbbrev::from(abbreviations).abbreviations(offset)?);
    let mut entries = header.entries_raw(&abbreviations, None)?;
    let root = entries.read_abbreviation()?.ok_or(Error::MissingUnitDie)?;
    for &attribute in root.attributes() {
        let attribute = entries.read_attribute(attribute)?;
        if attribute.name() == gimli::DW_AT_stmt_list
            && let AttributeValue::DebugLineRef(lines) = attribute.value()
            && header_bytes(dwarf, lines)? > MAX_BYTES
        {
            return Err(Error::UnsupportedOffset);
        }
    }
    Unit::new_with_abbreviations(dwarf, header, abbreviations)
}

/// How long the header of a table of lines says that it is.
fn header_bytes(dwarf: &Dwarf<PagedReader>, lines: DebugLineOffset) -> Result<usize> {
    let mut reader = dwarf.debug_line.reader().clone();
    reader.skip(lines.0)?;
    let (_, format) = reader.read_initial_length()?;
    if reader.read_u16()? >= 5 {
        // Bytes of an address, and of a segment's number.
        reader.skip(2)?;
    }
    reader.read_length(format)
}
