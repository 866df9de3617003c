//! Where files are looked for.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use swipr_formats::model::Module;
use swipr_symbols::elf::ElfFile;
use swipr_symbols::separate::with_suffix;

/// A larger file is not opened.
const MAX_FILE_BYTES: u64 = 16 << 30;

/// Directories in which the files of modules may be: under `.build-id/xx/…` or by the file's name,
/// both with or without `.debug`, or under the path that the module had where it was recorded; and
/// that very path on this machine.
#[derive(Clone, Debug, Default)]
pub struct SearchPath {
    directories: Vec<PathBuf>,
    /// Not the paths of this machine.
    only: bool,
}

impl SearchPath {
    /// These directories first, then the paths that modules had.
    pub fn new(directories: impl IntoIterator<Item = PathBuf>) -> SearchPath {
        SearchPath { directories: directories.into_iter().collect(), only: false }
    }

    /// These directories and no other place: the files of this machine are of no use.
    pub fn only(directories: impl IntoIterator<Item = PathBuf>) -> SearchPath {
        SearchPath { only: true, ..SearchPath::new(directories) }
    }

    /// Directories that may have debug files.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// The file of a module. One with another build id is not its file; for a module without a
    /// build id the first one that is there.
    pub fn find(&self, module: &Module) -> Option<(PathBuf, ElfFile)> {
        let path = Path::new(&module.path);
        let places = self.directories.iter().flat_map(|directory| {
            let by_id = build_id_path(directory, &module.build_id);
            let below = path.strip_prefix("/").ok().map(|path| directory.join(path));
            let beside = path.file_name().map(|name| directory.join(name));
            by_id.into_iter().chain(below).chain(beside)
        });
        let own = Some(path.to_owned()).filter(|path| !self.only && path.is_absolute());
        // Debug files, without the code itself, which shows stubs and functions that have no
        // symbol: better than nothing.
        let debug = self.directories.iter().flat_map(|directory| {
            let by_id = build_id_path(directory, &module.build_id).map(|path| path.with_extension("debug"));
            let by_name = path.file_name().filter(|_| !module.build_id.is_empty());
            by_id.into_iter().chain(by_name.map(|name| directory.join(with_suffix(name))))
        });
        places.chain(own).chain(debug).find_map(|place| {
            let file = ElfFile::open(&place, MAX_FILE_BYTES).ok()?;
            let is_it = module.build_id.is_empty() || file.build_id() == Some(&module.build_id[..]);
            is_it.then_some((place, file))
        })
    }
}

fn build_id_path(directory: &Path, build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let mut name = String::new();
    for byte in rest {
        let _ = write!(name, "{byte:02x}");
    }
    Some(directory.join(".build-id").join(format!("{first:02x}")).join(name))
}
