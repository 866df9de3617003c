//! Split DWARF: what the compiler left in `.dwo` files beside the objects, or `dwp` has put together from
//! these. A file that has changed since is refused: its id is not the one that the program names.

use crate::elf::ElfFile;
use crate::error::Error;
use crate::pages::{Counter, PagedReader, Residence};
use addr2line::SplitDwarfLoad;
use gimli::{Dwarf, DwarfPackage, Reader, SectionId};
use std::cell::{Cell, OnceCell};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where an object's split DWARF is, and what was opened of it.
pub(super) struct Split {
    /// Files beside which a `.dwp` may lie: the object and its debug file.
    files: Vec<PathBuf>,
    package: OnceCell<Option<DwarfPackage<PagedReader>>>,
    max_bytes: u64,
    max_memory: u64,
    held: Counter,
    refused: Cell<u64>,
}

impl Split {
    /// Nothing is opened yet.
    pub(super) fn new(files: Vec<PathBuf>, max_bytes: u64, max_memory: u64, held: Counter) -> Split {
        let (package, refused) = <_>::default();
        Split { files, package, max_bytes, max_memory, held, refused }
    }

    /// Files that were found and are not what was asked for, since the last time.
    pub(super) fn take_refused(&self) -> u64 {
        self.refused.take()
    }

    /// The DWARF of one unit; `None` if there is none, or no room for it.
    pub(super) fn load(&self, wanted: &SplitDwarfLoad<PagedReader>) -> Option<Arc<Dwarf<PagedReader>>> {
        let package = self.package.get_or_init(|| self.files.iter().find_map(|file| self.open_package(file)));
        let packed =
            package.as_ref().and_then(|package| package.find_cu(wanted.dwo_id, &wanted.parent).ok()?);
        packed.or_else(|| self.open_object(wanted)).map(Arc::new)
    }

    fn open_package(&self, file: &Path) -> Option<DwarfPackage<PagedReader>> {
        let mut name = file.as_os_str().to_owned();
        name.push(".dwp");
        let file = ElfFile::open(Path::new(&name), self.max_bytes).ok()?;
        let load = |id: SectionId| self.section(&file, id, Residence::Touched);
        DwarfPackage::load(load, PagedReader::empty()).ok()
    }

    /// The `.dwo` file: where the compiler has put it, or beside the object.
    fn open_object(&self, wanted: &SplitDwarfLoad<PagedReader>) -> Option<Dwarf<PagedReader>> {
        let name = wanted.path.as_ref()?.to_slice().ok()?;
        let name = Path::new(std::ffi::OsStr::from_bytes(&name));
        let directory = wanted.comp_dir.as_ref().and_then(|it| it.to_slice().ok());
        let directory = directory.map(|it| PathBuf::from(std::ffi::OsStr::from_bytes(&it)));
        let compiled = directory.unwrap_or_default().join(name);
        let beside = self.files.iter().filter_map(|file| Some(file.parent()?.join(name.file_name()?)));
        let mut places: Vec<_> = [compiled].into_iter().chain(beside).filter(|it| it.is_absolute()).collect();
        places.dedup();
        places.into_iter().find_map(|place| {
            let file = ElfFile::open(&place, self.max_bytes).ok()?;
            let found = self.of_object(&file, wanted);
            if found.is_none() {
                self.refused.set(self.refused.get() + 1);
            }
            found
        })
    }

    fn of_object(&self, file: &ElfFile, wanted: &SplitDwarfLoad<PagedReader>) -> Option<Dwarf<PagedReader>> {
        // There may be thousands of such files: none stays open.
        let load = |id: SectionId| self.section(file, id, Residence::Whole);
        let mut dwarf = Dwarf::load(load).ok()?;
        dwarf.make_dwo(&wanted.parent);
        let header = dwarf.units().next().ok()??;
        let is_it = dwarf.unit(header).ok()?.dwo_id == Some(wanted.dwo_id);
        is_it.then_some(dwarf)
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
        let Some(section) = section else { return Ok(PagedReader::empty()) };
        let limit = if residence == Residence::Whole { self.max_memory } else { self.max_bytes };
        let reader = PagedReader::new(file, section, id as u64, limit, residence, &self.held);
        reader.map_err(|_: Error| gimli::Error::Io)
    }
}

fn is_read(id: SectionId) -> bool {
    use SectionId::{DebugAbbrev, DebugInfo, DebugRngLists, DebugStr, DebugStrOffsets};
    matches!(id, DebugAbbrev | DebugInfo | DebugRngLists | DebugStr | DebugStrOffsets)
}
