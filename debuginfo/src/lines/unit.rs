//! One unit: where its functions are, and its table of lines. Names and inlined functions are read when they
//! are asked for.

use super::extent::Extent;
use super::split::Split;
use crate::pages::PagedReader;
use gimli::{AttributeValue, Dwarf, LineProgramHeader, Reader, Unit, UnitOffset, UnitRef};
use std::ops::Range;
use std::sync::Arc;

/// Functions before an address that are looked at: how deep they nest, or overlap.
const MAX_LOOKS: usize = 16;

/// See the module's text.
#[derive(Debug)]
pub(super) struct ParsedUnit {
    /// With the table of lines.
    main: Unit<PagedReader>,
    /// With the functions, where they are in a file of their own.
    split: Option<(Arc<Dwarf<PagedReader>>, Unit<PagedReader>)>,
    functions: Vec<Function>,
    sequences: Vec<Sequence>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    begin: u64,
    end: u64,
    entry: UnitOffset,
}

/// Rows without a gap.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    begin: u64,
    end: u64,
    first: u32,
    behind: u32,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    file: u32,
    line: u32,
}

/// A file and a line in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
}

impl ParsedUnit {
    /// Reads all entries, and runs the line program. What is malformed, or takes more than `room` bytes, ends either.
    pub(super) fn read(
        dwarf: &Dwarf<PagedReader>,
        main: Unit<PagedReader>,
        split: &Split,
        room: usize,
    ) -> ParsedUnit {
        let split = split.load(dwarf, &main).and_then(|dwarf| {
            let header = dwarf.units().next().ok()??;
            let mut unit = dwarf.unit(header).ok()?;
            unit.copy_relocated_attributes(&main);
            Some((dwarf, unit))
        });
        let mut parsed = ParsedUnit { main, split, functions: vec![], sequences: vec![], rows: vec![] };
        // All pages of its entries come into memory.
        if parsed.of_functions(dwarf).header.unit_length() <= room {
            parsed.functions = functions(parsed.of_functions(dwarf), room / size_of::<Function>());
        }
        parsed.read_lines(room / size_of::<Row>());
        parsed
    }

    /// Where functions' entries are.
    pub(super) fn of_functions<'a>(&'a self, dwarf: &'a Dwarf<PagedReader>) -> UnitRef<'a, PagedReader> {
        match &self.split {
            Some((dwarf, unit)) => UnitRef::new(dwarf, unit),
            None => UnitRef::new(dwarf, &self.main),
        }
    }

    /// Whether functions are in a file of their own.
    pub(super) fn is_split(&self) -> bool {
        self.split.is_some()
    }

    /// The entry of the function at an address.
    pub(super) fn function(&self, address: u64) -> Option<UnitOffset> {
        let position = self.functions.partition_point(|function| function.begin <= address);
        let before = self.functions.get(..position)?.iter().rev().take(MAX_LOOKS);
        before.into_iter().find(|function| address < function.end).map(|function| function.entry)
    }

    /// The place of the instruction at an address.
    pub(super) fn place(&self, dwarf: &Dwarf<PagedReader>, address: u64) -> Option<Place> {
        let position = self.sequences.partition_point(|sequence| sequence.begin <= address);
        let before = self.sequences.get(..position)?.iter().rev().take(MAX_LOOKS);
        let sequence = before.into_iter().find(|sequence| address < sequence.end)?;
        let rows = self.rows.get(sequence.first as usize..sequence.behind as usize)?;
        let row = rows.get(rows.partition_point(|row| row.address <= address).checked_sub(1)?)?;
        Some(Place { file: self.file(dwarf, u64::from(row.file)), line: (row.line != 0).then_some(row.line) })
    }

    /// The places of the instructions in a range, by address.
    pub(super) fn places(
        &self,
        dwarf: &Dwarf<PagedReader>,
        code: &Range<u64>,
    ) -> impl Iterator<Item = (u64, Place)> {
        let rows = self.rows.iter().filter(|row| code.contains(&row.address));
        rows.map(|row| {
            let line = (row.line != 0).then_some(row.line);
            (row.address, Place { file: self.file(dwarf, u64::from(row.file)), line })
        })
    }

    /// The path of a file by its number in the table of lines.
    pub(super) fn file(&self, dwarf: &Dwarf<PagedReader>, number: u64) -> Option<String> {
        let header = self.header()?;
        let file = header.file(number)?;
        let text = |value: AttributeValue<PagedReader>| {
            Some(dwarf.attr_string(&self.main, value).ok()?.to_string_lossy().ok()?.into_owned())
        };
        let mut path = self
            .main
            .comp_dir
            .as_ref()
            .and_then(|it| it.to_string_lossy().ok())
            .unwrap_or_default()
            .into_owned();
        // The first directory is the unit's.
        if file.directory_index() != 0
            && let Some(directory) = file.directory(header)
        {
            append(&mut path, &text(directory)?);
        }
        append(&mut path, &text(file.path_name())?);
        Some(path)
    }

    /// Heap bytes in use, as far as they are known: the abbreviations are an estimate.
    pub(super) fn bytes(&self) -> usize {
        const UNIT_BYTES: usize = 32 << 10;
        UNIT_BYTES
            + self.functions.capacity() * size_of::<Function>()
            + self.sequences.capacity() * size_of::<Sequence>()
            + self.rows.capacity() * size_of::<Row>()
    }

    fn header(&self) -> Option<&LineProgramHeader<PagedReader>> {
        self.main.line_program.as_ref().map(|program| program.header())
    }

    fn read_lines(&mut self, max_rows: usize) {
        let Some(program) = self.main.line_program.clone() else { return };
        let mut rows = program.rows();
        let mut first = 0;
        while let Ok(Some((_, row))) = rows.next_row()
            && self.rows.len() < max_rows
        {
            let address = row.address();
            if row.end_sequence() {
                let begin = self.rows.get(first).map_or(address, |row| row.address);
                match begin < address {
                    true => self.sequences.push(Sequence {
                        begin,
                        end: address,
                        first: first as u32,
                        behind: self.rows.len() as u32,
                    }),
                    false => self.rows.truncate(first),
                }
                first = self.rows.len();
                continue;
            }
            let line = row.line().map_or(0, |line| line.get() as u32);
            let new = Row { address, file: u32::try_from(row.file_index()).unwrap_or(u32::MAX), line };
            // Of several rows of one address the last holds.
            let is_open = self.rows.len() > first;
            match self.rows.last_mut().filter(|last| is_open && last.address == address) {
                Some(last) => *last = new,
                None => self.rows.push(new),
            }
        }
        self.rows.truncate(first);
        self.sequences.sort_unstable_by_key(|sequence| sequence.begin);
        self.rows.shrink_to_fit();
        self.sequences.shrink_to_fit();
    }
}

fn functions(unit: UnitRef<PagedReader>, most: usize) -> Vec<Function> {
    let mut found = Vec::new();
    // What was found before an error stays.
    let _ = gather(unit, &mut found, most);
    found.sort_unstable_by_key(|function| function.begin);
    found.shrink_to_fit();
    found
}

fn gather(unit: UnitRef<PagedReader>, found: &mut Vec<Function>, most: usize) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    let mut looks = 0;
    // Entries may share lists of ranges.
    while !entries.is_empty() && looks < most {
        let entry = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if abbreviation.tag() != gimli::DW_TAG_subprogram {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let mut extent = Extent::default();
        for &attribute in abbreviation.attributes() {
            extent.note(unit, &entries.read_attribute(attribute)?);
        }
        looks += extent.each(unit, |begin, end| found.push(Function { begin, end, entry }));
    }
    Ok(())
}

fn append(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
