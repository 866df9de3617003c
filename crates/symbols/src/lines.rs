//! Functions, inlined frames, files and lines of one object, from its DWARF. A unit is searched
//! when one of its addresses is first looked up. Names stay mangled here; what to do where there is
//! no DWARF is decided in [`crate::symbolizer`].
//!
//! What is kept, the longest-lived first: which unit has which addresses ([`index`]); where in a
//! unit its functions and lines are ([`contents`]); units as gimli has them, and the pages of the
//! file that were touched. An address costs the entries of one function and a few hundred bytes of
//! the line program, whatever was dropped before. For a function that is looked up again, what is
//! inlined into it is kept, too.

mod contents;
mod extent;
mod index;
mod inlined;
mod parse;
mod program;
mod split;
mod unit;
mod window;

use crate::elf::{ElfFile, Section};
use crate::pages::{Counter, PagedReader, Residence};
use contents::Contents;
use gimli::{AttributeValue, DebugInfoOffset, Dwarf, DwarfSections, SectionId, Unit, UnitOffset, UnitRef};
use index::Index;
use inlined::{Named, Tree};
use rustc_hash::FxHashMap;
use split::Split;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use unit::{OpenUnit, Place, abbreviation_bytes};

/// Entries that are followed until one has a name.
const MAX_REFERENCES: usize = 16;
/// The number of the first section of an alternate file: above those of the main file.
const FURTHER_SECTIONS: u64 = 64;

/// One function at an address, real or inlined.
#[derive(Debug)]
pub(crate) struct LineFrame {
    /// The linkage name, or else the plain one.
    pub(crate) name: Option<String>,
    /// The source file's path.
    pub(crate) file: Option<String>,
    /// The line in it.
    pub(crate) line: Option<u32>,
}

/// The files that an object's DWARF is in.
pub(crate) struct Files<'a> {
    /// With the sections.
    pub(crate) main: &'a ElfFile,
    /// What `dwz` has put into a file that others share.
    pub(crate) alternate: Option<&'a ElfFile>,
    /// The object's path.
    pub(crate) path: &'a Path,
}

/// The DWARF of one object.
pub(crate) struct Lines {
    /// Of the main and the alternate file, to start over with.
    sections: (DwarfSections<PagedReader>, Option<DwarfSections<PagedReader>>),
    dwarf: Dwarf<PagedReader>,
    index: Index,
    /// Where the units of the alternate file begin.
    alternate: Vec<usize>,
    /// Of units, by where they begin.
    contents: FxHashMap<usize, Arc<Contents>>,
    contents_bytes: usize,
    /// By where they begin.
    units: FxHashMap<usize, Arc<OpenUnit>>,
    /// What is inlined into functions that were looked up more than once, by unit and entry.
    /// `None`: looked up once.
    inlined: FxHashMap<(usize, UnitOffset), Option<Arc<Tree>>>,
    /// Units that others refer to, without what is in them.
    referred: FxHashMap<(Which, usize), Arc<Unit<PagedReader>>>,
    split: Split,
    /// Bytes for the contents of one unit.
    room: usize,
    /// Of units and referred ones.
    open_bytes: usize,
    held: Counter,
}

/// In which file a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Which {
    Main,
    Alternate,
    /// Of its own: it refers to no other unit.
    Split,
}

impl Lines {
    /// Whether the file has DWARF that this module reads.
    pub(crate) fn are_in(file: &ElfFile) -> bool {
        let size = |name| file.debug_section(name).map_or(0, |section| file.full_size(section));
        size(".debug_info") != 0 && size(".debug_abbrev") != 0
    }

    /// Looks at the units of a file. `None`: there is no sound DWARF, or more than
    /// `max_bytes` of it, or more than `max_memory` of it would have to be
    /// decompressed.
    pub(crate) fn open(files: &Files, max_bytes: u64, max_memory: u64) -> Option<Lines> {
        if !Lines::are_in(files.main) || !is_within(files, max_bytes, max_memory) {
            return None;
        }
        let held = Counter::default();
        let load = |file: &ElfFile, first: u64| {
            let section = |id: SectionId| match file.debug_section(id.name()).filter(|it| is_read(it)) {
                Some(section) => {
                    PagedReader::new(file, section, first + id as u64, max_bytes, Residence::Touched, &held)
                }
                None => Ok(PagedReader::empty()),
            };
            DwarfSections::load(section)
        };
        let sections: DwarfSections<PagedReader> = load(files.main, 0).ok()?;
        let shared = files.alternate.and_then(|file| load(file, FURTHER_SECTIONS).ok());
        let dwarf = sections.borrow_with_sup(shared.as_ref(), PagedReader::untouched);
        let index = Index::read(&dwarf, code_begin(files.main), max_memory as usize / 4)?;
        let alternate = dwarf.sup().map(index::starts).unwrap_or_default();
        let mut packages = vec![files.path.to_owned()];
        packages.extend(files.main.path().filter(|path| *path != files.path).map(PathBuf::from));
        let split = Split::new(packages, max_bytes, max_memory, held.clone());
        let (contents, contents_bytes, units, inlined, referred, open_bytes) = <_>::default();
        let mut lines = Lines {
            sections: (sections, shared),
            dwarf,
            index,
            alternate,
            contents,
            contents_bytes,
            units,
            inlined,
            referred,
            split,
            room: max_memory as usize / 4,
            open_bytes,
            held,
        };
        // Every page with a unit's first entry was touched.
        lines.shrink();
        Some(lines)
    }

    /// The frames at an address, innermost first; empty where nothing is known.
    pub(crate) fn frames(&mut self, address: u64) -> Vec<LineFrame> {
        let Some((start, contents, unit)) = self.unit_at(address) else { return Vec::new() };
        let row = contents.stretch(address).zip(unit.program());
        let row = row.map(|(stretch, program)| program.row(stretch, address));
        let place = row.map(|row| unit.place(&self.dwarf, row)).unwrap_or_default();
        match contents.function(address) {
            Some(function) => self.frames_of(start, &unit, function, address, place),
            None => vec![LineFrame { name: None, file: place.file, line: place.line }],
        }
    }

    /// The unit that has a function or lines at an address, and where it begins.
    fn unit_at(&mut self, address: u64) -> Option<(usize, Arc<Contents>, Arc<OpenUnit>)> {
        let listed = self.index.listed_at(address);
        self.first_of(listed, address).or_else(|| {
            let others = self.index.others_at(&self.dwarf, address);
            self.first_of(others, address)
        })
    }

    fn first_of(&mut self, units: Vec<usize>, address: u64) -> Option<(usize, Arc<Contents>, Arc<OpenUnit>)> {
        units.into_iter().find_map(|start| {
            let contents = self.contents(start)?;
            let is_there = contents.function(address).is_some() || contents.stretch(address).is_some();
            is_there.then_some((start, contents, self.unit(start)?))
        })
    }

    /// The places of the code in a range, each with where it begins; at most so many.
    pub(crate) fn places(&mut self, code: &Range<u64>, most: usize) -> Vec<(u64, String, u32)> {
        let Some((_, contents, unit)) = self.unit_at(code.start) else { return Vec::new() };
        let mut places = Vec::new();
        let Some(program) = unit.program() else { return places };
        for stretch in contents.stretches(code) {
            program.each(stretch, |row| {
                if code.contains(&row.address)
                    && let Place { file: Some(file), line: Some(line) } = unit.place(&self.dwarf, row)
                {
                    places.push((row.address, file, line));
                }
                places.len() < most
            });
        }
        places
    }

    fn frames_of(
        &mut self,
        start: usize,
        unit: &OpenUnit,
        function: UnitOffset,
        address: u64,
        place: Place,
    ) -> Vec<LineFrame> {
        let which = if unit.is_split() { Which::Split } else { Which::Main };
        let tree = self.tree(start, unit, function);
        let read = match &tree {
            Some(_) => Vec::new(),
            None => inlined::chain(unit.of_functions(&self.dwarf), function, address),
        };
        let calls = tree.as_ref().map_or_else(|| read.iter().collect(), |tree| tree.chain(address));
        let outer = Named::of_entry(unit.of_functions(&self.dwarf), function).unwrap_or_default();
        let mut frames = Vec::with_capacity(calls.len() + 1);
        let mut place = place;
        for call in calls.into_iter().rev() {
            let name = self.name(unit, which, &call.named);
            frames.push(LineFrame { name, file: place.file, line: place.line });
            let file = call.file.and_then(|file| unit.file(&self.dwarf, file));
            place = Place { file, line: call.line };
        }
        let name = self.name(unit, which, &outer);
        frames.push(LineFrame { name, file: place.file, line: place.line });
        frames
    }

    /// What is inlined into a function that was looked up before: an address or two are found
    /// without it.
    fn tree(&mut self, start: usize, unit: &OpenUnit, function: UnitOffset) -> Option<Arc<Tree>> {
        let key = (start, function);
        match self.inlined.get(&key) {
            None => {
                self.open_bytes += size_of::<((usize, UnitOffset), Option<Arc<Tree>>)>();
                self.inlined.insert(key, None);
                None
            }
            Some(Some(known)) => Some(Arc::clone(known)),
            Some(None) => {
                let tree = Arc::new(Tree::read(unit.of_functions(&self.dwarf), function)?);
                self.open_bytes += tree.bytes();
                self.inlined.insert(key, Some(Arc::clone(&tree)));
                Some(tree)
            }
        }
    }

    /// A function's name, which may be in the entry that its own is an instance of, and so on.
    fn name(&mut self, unit: &OpenUnit, which: Which, named: &Named) -> Option<String> {
        let (mut which, mut other) = (which, None::<Arc<Unit<PagedReader>>>);
        let mut further;
        let mut named = named;
        for _ in 0..MAX_REFERENCES {
            if let Some(name) = named.text() {
                return Some(name);
            }
            let entry = match named.origin.clone()? {
                AttributeValue::UnitRef(entry) => entry,
                AttributeValue::DebugInfoRef(entry) if which != Which::Split => {
                    let (found, entry) = self.referred(which, entry)?;
                    other = Some(found);
                    entry
                }
                AttributeValue::DebugInfoRefSup(entry) => {
                    which = Which::Alternate;
                    let (found, entry) = self.referred(which, entry)?;
                    other = Some(found);
                    entry
                }
                _ => return None,
            };
            let dwarf = if which == Which::Alternate { self.dwarf.sup()? } else { &self.dwarf };
            let of =
                other.as_ref().map_or_else(|| unit.of_functions(dwarf), |other| UnitRef::new(dwarf, other));
            further = Named::of_entry(of, entry).ok()?;
            named = &further;
        }
        None
    }

    /// The unit that holds an entry, and the entry's offset in it.
    fn referred(
        &mut self,
        which: Which,
        entry: DebugInfoOffset,
    ) -> Option<(Arc<Unit<PagedReader>>, UnitOffset)> {
        let (dwarf, start) = match which {
            Which::Alternate => (self.dwarf.sup()?, index::unit_of(&self.alternate, entry)?),
            _ => (&self.dwarf, self.index.unit_of(&self.dwarf, entry)?),
        };
        let unit = match self.referred.get(&(which, start)) {
            Some(known) => known.clone(),
            None => {
                let new = Arc::new(parse::unit(dwarf, dwarf.unit_header(DebugInfoOffset(start)).ok()?).ok()?);
                self.open_bytes += abbreviation_bytes(&new);
                self.referred.insert((which, start), new.clone());
                new
            }
        };
        let entry = entry.to_unit_offset(&unit.header)?;
        Some((unit, entry))
    }

    fn unit(&mut self, start: usize) -> Option<Arc<OpenUnit>> {
        if let Some(known) = self.units.get(&start) {
            return Some(known.clone());
        }
        let header = self.dwarf.unit_header(DebugInfoOffset(start)).ok()?;
        let main = parse::unit(&self.dwarf, header).ok()?;
        let unit = Arc::new(OpenUnit::new(&self.dwarf, main, &self.split));
        self.open_bytes += unit.bytes();
        self.units.insert(start, unit.clone());
        Some(unit)
    }

    fn contents(&mut self, start: usize) -> Option<Arc<Contents>> {
        if let Some(known) = self.contents.get(&start) {
            return Some(known.clone());
        }
        let unit = self.unit(start)?;
        let contents = Arc::new(Contents::read(&self.dwarf, &unit, self.index.code_begin(), self.room));
        self.contents_bytes += contents.bytes();
        self.contents.insert(start, contents.clone());
        Some(contents)
    }

    /// Forgets units and pages, which are cheap to read again.
    pub(crate) fn shrink(&mut self) {
        self.units = FxHashMap::default();
        self.inlined = FxHashMap::default();
        self.referred = FxHashMap::default();
        self.split.shrink();
        self.open_bytes = 0;
        let (main, shared) = &self.sections;
        self.dwarf = main.borrow_with_sup(shared.as_ref(), PagedReader::untouched);
    }

    /// Forgets what is where in units: they are looked through again.
    pub(crate) fn forget_contents(&mut self) {
        self.contents = FxHashMap::default();
        self.contents_bytes = 0;
    }

    /// Files of split DWARF that were found and are not the right ones, since the last call.
    pub(crate) fn take_refused(&self) -> u64 {
        self.split.take_refused()
    }

    /// Bytes that [`Self::shrink`] can give back.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.open_bytes + self.held.load(Ordering::Relaxed)
    }

    /// Bytes that [`Self::forget_contents`] can give back.
    pub(crate) fn contents_bytes(&self) -> usize {
        self.contents_bytes
    }

    /// Bytes in memory, as far as they are counted.
    pub(crate) fn bytes(&self) -> usize {
        self.spare_bytes()
            + self.contents_bytes
            + self.index.bytes()
            + self.alternate.capacity() * size_of::<usize>()
    }
}

/// The lowest address of code. What begins before it is of functions that the linker left out: most
/// linkers write 0 for their addresses, and their sizes stay.
fn code_begin(file: &ElfFile) -> u64 {
    let code = file.sections().iter().filter(|section| section.is_executable() && section.size != 0);
    code.map(|section| section.address).min().unwrap_or(0)
}

/// Whether no more than that much has to be looked at, and decompressed.
fn is_within(files: &Files, max_bytes: u64, max_memory: u64) -> bool {
    let (mut total, mut compressed) = (0_u64, 0_u64);
    for file in [Some(files.main), files.alternate].into_iter().flatten() {
        let is_debug = |name: &str| name.starts_with(".debug_") || name.starts_with(".zdebug_");
        for section in file.sections().iter().filter(|section| is_debug(&section.name)) {
            let size = file.full_size(section);
            total = total.saturating_add(size);
            if section.is_compressed() && is_read(section) {
                compressed = compressed.saturating_add(size);
            }
        }
    }
    total <= max_bytes && compressed <= max_memory
}

/// Variables' locations, macros and name indices are of no use here.
fn is_read(section: &Section) -> bool {
    !matches!(
        section.name.trim_start_matches(".z").trim_start_matches('.'),
        "debug_loc" | "debug_loclists" | "debug_macinfo" | "debug_macro" | "debug_names" | "debug_types"
    )
}
