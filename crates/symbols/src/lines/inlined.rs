//! The functions that were inlined around an address, and functions' names.

use super::extent::Extent;
use crate::pages::PagedReader;
use gimli::{Attribute, AttributeSpecification, AttributeValue, EntriesRaw, Reader, UnitOffset, UnitRef};
use std::ops::Range;

/// How deep functions are inlined into one another, at most.
const MAX_DEPTH: usize = 256;
/// Entries of one function, and parts of their addresses, that are looked at: many times what the
/// largest functions have. Entries may share lists of parts, so that a small file could take for
/// ever.
const MAX_ENTRIES: usize = 1 << 20;
/// Entries and parts of a function that are kept. More are read again for each address.
const MAX_TREE: usize = 1 << 16;

/// A function's name, or the entry that has it.
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

/// What is inlined into one function, read once for many addresses.
#[derive(Debug)]
pub(super) struct Tree(Box<[Node]>);

#[derive(Debug)]
struct Node {
    ranges: Box<[Range<u64>]>,
    /// The first node that is not below this one.
    behind: usize,
    call: Call,
}

impl Tree {
    /// `None`: the entries are malformed or too many. They are read for each address then, as far
    /// as it goes.
    pub(super) fn read(unit: UnitRef<PagedReader>, function: UnitOffset) -> Option<Tree> {
        let mut entries = unit.entries_raw(Some(function)).ok()?;
        if let Some(abbreviation) = entries.read_abbreviation().ok()? {
            entries.skip_attributes(abbreviation.attributes()).ok()?;
        }
        let (mut nodes, mut left) = (Vec::<Node>::new(), MAX_TREE);
        // Nodes that are not behind yet, with their depths.
        let mut open: Vec<(usize, isize)> = Vec::new();
        while !entries.is_empty() && entries.next_depth() > 0 {
            left = left.checked_sub(1)?;
            let depth = entries.next_depth();
            close(&mut nodes, &mut open, depth);
            let Some(abbreviation) = entries.read_abbreviation().ok()? else { continue };
            match abbreviation.tag() {
                gimli::DW_TAG_inlined_subroutine => {
                    let (extent, call) = read_call(unit, &mut entries, abbreviation.attributes()).ok()?;
                    let mut ranges = Vec::new();
                    let looks = extent.each(unit, |begin, end| ranges.push(begin..end));
                    left = left.checked_sub(looks)?;
                    open.push((nodes.len(), depth));
                    nodes.push(Node { ranges: ranges.into(), behind: 0, call });
                }
                gimli::DW_TAG_subprogram => {
                    entries.skip_attributes(abbreviation.attributes()).ok()?;
                    skip(&mut entries, depth, &mut left).ok()?;
                }
                _ => entries.skip_attributes(abbreviation.attributes()).ok()?,
            }
        }
        close(&mut nodes, &mut open, 0);
        Some(Tree(nodes.into()))
    }

    /// The functions that hold an address, the outermost first.
    pub(super) fn chain(&self, address: u64) -> Vec<&Call> {
        let (mut calls, mut at, mut end) = (Vec::new(), 0, self.0.len());
        while at < end && calls.len() < MAX_DEPTH {
            let Some(node) = self.0.get(at) else { break };
            if node.ranges.iter().any(|range| range.contains(&address)) {
                calls.push(&node.call);
                (at, end) = (at + 1, node.behind);
            } else {
                at = node.behind.max(at + 1);
            }
        }
        calls
    }

    /// Heap bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let ranges: usize = self.0.iter().map(|node| size_of_val(&*node.ranges)).sum();
        size_of_val(&*self.0) + ranges
    }
}

/// What was open at this depth or below ends here.
fn close(nodes: &mut [Node], open: &mut Vec<(usize, isize)>, depth: isize) {
    let behind = nodes.len();
    while let Some((node, _)) = open.pop_if(|(_, own)| *own >= depth) {
        if let Some(node) = nodes.get_mut(node) {
            node.behind = behind;
        }
    }
}

fn read_call(
    unit: UnitRef<PagedReader>,
    entries: &mut EntriesRaw<PagedReader>,
    attributes: &[AttributeSpecification],
) -> gimli::Result<(Extent, Call)> {
    let (mut extent, mut call) = (Extent::default(), Call::default());
    for &attribute in attributes {
        let attribute = entries.read_attribute(attribute)?;
        if !extent.note(unit, &attribute) {
            call.note(unit, &attribute);
        }
    }
    Ok((extent, call))
}

/// The functions inlined into the one whose entry is `function` that hold an address, the outermost
/// first. What is malformed ends the list.
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
    let (mut depth, mut left) = (0, MAX_ENTRIES);
    while left > 0 && !entries.is_empty() && entries.next_depth() > depth && calls.len() < MAX_DEPTH {
        left -= 1;
        let own_depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        match abbreviation.tag() {
            gimli::DW_TAG_inlined_subroutine => {
                let (extent, call) = read_call(unit, &mut entries, abbreviation.attributes())?;
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
