//! One unit as gimli has it: its abbreviations and the names of its files. Cheap to read again.

use super::program::{Program, Row};
use super::split::{Split, SplitUnit};
use crate::pages::PagedReader;
use gimli::{Abbreviation, AttributeValue, Dwarf, LineProgramHeader, Reader, Unit, UnitRef};

/// Attributes of an abbreviation that gimli keeps in it; more are in a list.
const ATTRIBUTES_WITHIN: usize = 5;

/// See the module's text.
#[derive(Debug)]
pub(super) struct OpenUnit {
    /// With the table of lines.
    main: Unit<PagedReader>,
    /// With the functions, where they are in a file of their own.
    split: Option<SplitUnit>,
    program: Option<Program>,
}

/// A file and a line in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
}

impl OpenUnit {
    /// With the part of it that is in a file of its own.
    pub(super) fn new(dwarf: &Dwarf<PagedReader>, main: Unit<PagedReader>, split: &Split) -> OpenUnit {
        let mut split = split.load(dwarf, &main);
        if let Some((unit, _)) = &mut split {
            unit.copy_relocated_attributes(&main);
        }
        let program = main.line_program.as_ref().map(|program| Program::of(program.header()));
        OpenUnit { main, split, program }
    }

    /// Where functions' entries are.
    pub(super) fn of_functions<'a>(&'a self, dwarf: &'a Dwarf<PagedReader>) -> UnitRef<'a, PagedReader> {
        match &self.split {
            Some((unit, dwarf)) => UnitRef::new(dwarf, unit),
            None => UnitRef::new(dwarf, &self.main),
        }
    }

    /// Whether functions are in a file of their own.
    pub(super) fn is_split(&self) -> bool {
        self.split.is_some()
    }

    /// What makes the table of lines.
    pub(super) fn program(&self) -> Option<&Program> {
        self.program.as_ref()
    }

    /// The place that a row names.
    pub(super) fn place(&self, dwarf: &Dwarf<PagedReader>, row: Row) -> Place {
        Place { file: self.file(dwarf, u64::from(row.file)), line: (row.line != 0).then_some(row.line) }
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

    /// Heap bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let names = self
            .header()
            .map_or(0, |header| size_of_val(header.file_names()) + size_of_val(header.include_directories()));
        let split = self.split.as_ref().map_or(0, |(unit, _)| abbreviation_bytes(unit));
        size_of::<OpenUnit>() + abbreviation_bytes(&self.main) + split + names
    }

    fn header(&self) -> Option<&LineProgramHeader<PagedReader>> {
        self.main.line_program.as_ref().map(|program| program.header())
    }
}

/// Heap bytes of a unit's abbreviations, whose numbers follow one another.
pub(super) fn abbreviation_bytes(unit: &Unit<PagedReader>) -> usize {
    let all = (1..).map_while(|code| unit.abbreviations.get(code));
    let bytes = |abbreviation: &Abbreviation| match abbreviation.attributes() {
        within if within.len() <= ATTRIBUTES_WITHIN => size_of::<Abbreviation>(),
        listed => size_of::<Abbreviation>() + size_of_val(listed),
    };
    all.map(bytes).sum()
}

fn append(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
