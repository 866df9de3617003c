//! Split DWARF: what the compiler left in `.dwo` files beside the objects, or `dwp` has put
//! together from these. A file that has changed since is refused: its id is not the one that the
//! program names.

use super::parse;
use crate::elf::{ElfFile, Section};
use crate::error::Error;
use crate::pages::{Counter, PagedReader, Residence};
use crate::separate::real_path;
use gimli::{Dwarf, DwarfPackage, DwoId, Reader, SectionId, Unit, UnitType};
use std::cell::{Cell, OnceCell, RefCell};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The section of a `.dwo` file with its units.
const UNITS: &str = ".debug_info.dwo";

/// A unit that another has left its functions to, and the DWARF that it is in.
pub(super) type SplitUnit = (Unit<PagedReader>, Arc<Dwarf<PagedReader>>);

/// What a unit says of the file that it has left its DWARF to.
struct Wanted<'a> {
    id: DwoId,
    /// Where the compiler has put it.
    path: PathBuf,
    parent: &'a Dwarf<PagedReader>,
}

/// Where an object's split DWARF is, and what was opened of it.
pub(super) struct Split {
    /// Files beside which a `.dwp` may lie: the object and its debug file.
    files: Vec<PathBuf>,
    package: OnceCell<Option<DwarfPackage<PagedReader>>>,
    /// The `.dwo` file that was read last. After optimization at link time it has all units.
    last: RefCell<Option<Arc<Dwarf<PagedReader>>>>,
    max_bytes: u64,
    max_memory: u64,
    held: Counter,
    refused: Cell<u64>,
}

impl Split {
    /// Nothing is opened yet.
    pub(super) fn new(files: Vec<PathBuf>, max_bytes: u64, max_memory: u64, held: Counter) -> Split {
        let (package, last, refused) = <_>::default();
        Split { files, package, last, max_bytes, max_memory, held, refused }
    }

    /// Files that were found and are not the right ones, since the last call.
    pub(super) fn take_refused(&self) -> u64 {
        self.refused.take()
    }

    /// Gives back what files of split DWARF have in memory.
    pub(super) fn shrink(&mut self) {
        self.package.take();
        self.last.take();
    }

    /// What a unit has left to another file; `None` if it has left nothing, or there is no such
    /// file, or no room for it.
    pub(super) fn load(&self, parent: &Dwarf<PagedReader>, unit: &Unit<PagedReader>) -> Option<SplitUnit> {
        let name =
            unit.dwo_name().ok().flatten().and_then(|name| dwarf_text(parent.attr_string(unit, name).ok()?));
        let directory = unit.comp_dir.clone().and_then(dwarf_text).unwrap_or_default();
        let wanted = Wanted { id: unit.dwo_id?, path: directory.join(name?), parent };
        let package = self.package.get_or_init(|| {
            // A library is loaded by a link, and its package named as the file is.
            let real = self.files.iter().filter_map(|file| real_path(file));
            self.files.iter().cloned().chain(real).find_map(|file| self.open_package(&file))
        });
        let packed = package.as_ref().and_then(|package| package.find_cu(wanted.id, parent).ok()?);
        let packed = packed.and_then(|dwarf| Some((unit_of(&dwarf, wanted.id)?, Arc::new(dwarf))));
        let last = || {
            let dwarf = self.last.borrow().clone()?;
            Some((unit_of(&dwarf, wanted.id)?, dwarf))
        };
        packed.or_else(last).or_else(|| self.open_object(&wanted))
    }

    fn open_package(&self, file: &Path) -> Option<DwarfPackage<PagedReader>> {
        let mut name = file.as_os_str().to_owned();
        name.push(".dwp");
        let file = ElfFile::open(Path::new(&name), self.max_bytes).ok()?;
        let load = |id: SectionId| self.section(&file, id, Residence::Touched);
        DwarfPackage::load(load, PagedReader::empty()).ok()
    }

    /// The `.dwo` file: where the compiler has put it, or beside the object.
    fn open_object(&self, wanted: &Wanted) -> Option<SplitUnit> {
        let name = wanted.path.file_name()?;
        let beside = self.files.iter().filter_map(|file| Some(file.parent()?.join(name)));
        let places = [wanted.path.clone()].into_iter().chain(beside);
        let mut places: Vec<_> = places.filter(|place| place.is_absolute()).collect();
        places.dedup();
        let found = places.into_iter().find_map(|place| {
            let file = ElfFile::open(&place, self.max_bytes).ok()?;
            let found = self.of_object(&file, wanted);
            if found.is_none() {
                self.refused.set(self.refused.get() + 1);
            }
            found
        });
        *self.last.borrow_mut() = found.as_ref().map(|(_, dwarf)| Arc::clone(dwarf));
        found
    }

    fn of_object(&self, file: &ElfFile, wanted: &Wanted) -> Option<SplitUnit> {
        // There may be thousands of such files: none stays open.
        let load = |id: SectionId| self.section(file, id, Residence::Whole);
        let mut dwarf = Dwarf::load(load).ok()?;
        dwarf.make_dwo(wanted.parent);
        // gcc puts each unit of types into a section of its own, which has the same name.
        for section in file.sections().iter().filter(|section| section.name == UNITS) {
            dwarf.debug_info = self.read(file, section, SectionId::DebugInfo, Residence::Whole).ok()?.into();
            if let Some(unit) = unit_of(&dwarf, wanted.id) {
                return Some((unit, Arc::new(dwarf)));
            }
        }
        None
    }

    fn section(
        &self,
        file: &ElfFile,
        id: SectionId,
        residence: Residence,
    ) -> Result<PagedReader, gimli::Error> {
        // Of a package all sections must be there: its index has a part of each.
        let is_read = residence == Residence::Touched || is_read(id);
        let section = id.dwo_name().and_then(|name| file.section(name)).filter(|_| is_read);
        section.map_or_else(|| Ok(PagedReader::empty()), |section| self.read(file, section, id, residence))
    }

    fn read(
        &self,
        file: &ElfFile,
        section: &Section,
        id: SectionId,
        residence: Residence,
    ) -> Result<PagedReader, gimli::Error> {
        let limit = if residence == Residence::Whole { self.max_memory } else { self.max_bytes };
        let reader = PagedReader::new(file, section, id as u64, limit, residence, &self.held);
        reader.map(|reader| reader.untouched()).map_err(|_: Error| gimli::Error::Io)
    }
}

/// Of a `.dwo` file, besides the units.
fn is_read(id: SectionId) -> bool {
    use SectionId::{DebugAbbrev, DebugRngLists, DebugStr, DebugStrOffsets};
    matches!(id, DebugAbbrev | DebugRngLists | DebugStr | DebugStrOffsets)
}

/// The unit with an id, which may stand behind others.
fn unit_of(dwarf: &Dwarf<PagedReader>, id: DwoId) -> Option<Unit<PagedReader>> {
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().ok()? {
        let may_be_it = match header.type_() {
            UnitType::SplitType { .. } => false,
            UnitType::SplitCompilation(other) => other == id,
            // DWARF 4 has the id in the unit's first entry.
            _ => true,
        };
        if may_be_it && let Some(unit) = parse::unit(dwarf, header).ok().filter(|it| it.dwo_id == Some(id)) {
            return Some(unit);
        }
    }
    None
}

fn dwarf_text(text: PagedReader) -> Option<PathBuf> {
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(&text.to_slice().ok()?)))
}
