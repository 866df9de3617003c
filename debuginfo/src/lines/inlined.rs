//! The functions that were inlined around an address, and functions' names.

use super::extent::Extent;
use crate::pages::PagedReader;
use gimli::{Attribute, AttributeValue, EntriesRaw, Reader, UnitOffset, UnitRef};

/// How deep functions are inlined into one another, at most.
const MAX_DEPTH: usize = 256;
/// Entries of one function, and parts of their addresses, that are looked at: many times what the largest functions have.
/// Entries may share lists of parts, so that a small file could take for ever.
const MAX_LOOKS: usize = 1 << 20;

/// A function's name, or who has it.
#[derive(Debug, Default)]
pub(super) struct Named {
    linkage: Option<PagedReader>,
    plain: Option<PagedReader>,
    /// The entry that this one is an instance of.
    pub(super) origin: Option<AttributeValue<PagedReader>>,
}

impl Named {
    /// What the attributes of an entry say.
    pub(super) fn of_entry(unit: UnitRef<PagedReader>, entry: UnitOffset) -> gimli::Result<Named> {
        let mut named = Named::default();
        let mut entries = unit.entries_raw(Some(entry))?;
        if let Some(abbreviation) = entries.read_abbreviation()? {
            for &attribute in abbreviation.attributes() {
                named.note(unit, &entries.read_attribute(attribute)?);
            }
        }
        Ok(named)
    }

    /// The linker's name, or else the plain one.
    pub(super) fn text(&self) -> Option<String> {
        let name = self.linkage.as_ref().or(self.plain.as_ref())?;
        Some(name.to_string_lossy().ok()?.into_owned()).filter(|name| !name.is_empty())
    }

    fn note(&mut self, unit: UnitRef<PagedReader>, attribute: &Attribute<PagedReader>) {
        match attribute.name() {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.linkage = unit.attr_string(attribute.value()).ok();
            }
            gimli::DW_AT_name => self.plain = unit.attr_string(attribute.value()).ok(),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                self.origin = Some(attribute.value())
            }
            _ => {}
        }
    }
}

/// A function that was inlined, and from where it was called.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) named: Named,
    pub(super) file: Option<u64>,
    pub(super) line: Option<u32>,
}

/// The functions inlined into the one whose entry is `function` that hold an address, the outermost first.
/// What is malformed ends the list.
pub(super) fn chain(unit: UnitRef<PagedReader>, function: UnitOffset, address: u64) -> Vec<Call> {
    let mut calls = Vec::new();
    let _ = gather(unit, function, address, &mut calls);
    calls
}

fn gather(
    unit: UnitRef<PagedReader>,
    function: UnitOffset,
    address: u64,
    calls: &mut Vec<Call>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(Some(function))?;
    if let Some(abbreviation) = entries.read_abbreviation()? {
        entries.skip_attributes(abbreviation.attributes())?;
    }
    // Of the innermost that holds the address: what comes behind it does not.
    let (mut depth, mut left) = (0, MAX_LOOKS);
    while left > 0 && !entries.is_empty() && entries.next_depth() > depth && calls.len() < MAX_DEPTH {
        left -= 1;
        let own_depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        match abbreviation.tag() {
            gimli::DW_TAG_inlined_subroutine => {
                let mut extent = Extent::default();
                let mut call = Call::default();
                for &attribute in abbreviation.attributes() {
                    let attribute = entries.read_attribute(attribute)?;
                    if !extent.note(unit, &attribute) {
                        call.note(unit, &attribute);
                    }
                }
                if extent.contains(unit, address, &mut left) {
                    calls.push(call);
                    depth = own_depth;
                } else {
                    skip(&mut entries, own_depth, &mut left)?;
                }
            }
            gimli::DW_TAG_subprogram => {
                entries.skip_attributes(abbreviation.attributes())?;
                skip(&mut entries, own_depth, &mut left)?;
            }
            _ => entries.skip_attributes(abbreviation.attributes())?,
        }
    }
    Ok(())
}

/// Passes over what is below an entry of that depth.
fn skip(entries: &mut EntriesRaw<PagedReader>, depth: isize, left: &mut usize) -> gimli::Result<()> {
    while *left > 0 && !entries.is_empty() && entries.next_depth() > depth {
        *left -= 1;
        if let Some(abbreviation) = entries.read_abbreviation()? {
            entries.skip_attributes(abbreviation.attributes())?;
        }
    }
    Ok(())
}

impl Call {
    fn note(&mut self, unit: UnitRef<PagedReader>, attribute: &Attribute<PagedReader>) {
        match attribute.name() {
            gimli::DW_AT_call_file => {
                // 0 is no file before version 5 and the first one from then on.
                let is_file = |file| file > 0 || unit.header.version() >= 5;
                self.file = match attribute.value() {
                    AttributeValue::FileIndex(file) => Some(file).filter(|&file| is_file(file)),
                    _ => None,
                };
            }
            gimli::DW_AT_call_line => {
                let line = attribute.udata_value().and_then(|line| u32::try_from(line).ok());
                self.line = line.filter(|&line| line != 0);
            }
            _ => self.named.note(unit, attribute),
        }
    }
}
