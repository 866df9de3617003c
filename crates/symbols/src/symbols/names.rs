//! The names of a symbol table. Few are kept in memory; those of a large table stay in its file and
//! are read when they are asked for, so that a program with hundreds of megabytes of names still
//! has them.

use super::without_version;
use crate::elf::{ElfFile, Section, string_at};
use std::borrow::Cow;

/// Bytes of a name that are read at once, and at all.
const PART_BYTES: usize = 256;
const MAX_NAME_BYTES: usize = 64 * 1024;

/// One name of [`SymbolNames`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    /// 0: kept; else the number of a file's section, from 1.
    source: u32,
    start: u32,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct SymbolNames {
    /// Each ends in a NUL.
    kept: String,
    in_files: Vec<(ElfFile, Section)>,
}

/// The string table of one symbol section while its symbols are looked at.
pub(super) enum Strings {
    /// All of it.
    Read(Vec<u8>),
    /// In the file; the number for [`Name`].
    InFile(u32),
}

impl SymbolNames {
    /// Reads a string table of at most `limit` bytes, and leaves a larger one where it is.
    pub(super) fn strings(&mut self, file: &ElfFile, section: &Section, limit: u64) -> Option<Strings> {
        if section.size <= limit {
            return file.bytes(section, limit).ok().map(Strings::Read);
        }
        if section.is_compressed() {
            return None;
        }
        self.in_files.push((file.clone(), section.clone()));
        u32::try_from(self.in_files.len()).ok().map(Strings::InFile)
    }

    /// The name at an offset of a string table; `None`: there is none, or no room.
    pub(super) fn add(&mut self, strings: &Strings, offset: u32) -> Option<Name> {
        match strings {
            Strings::Read(bytes) => self.keep(without_version(&string_at(bytes, offset as usize)?)),
            Strings::InFile(_) if offset == 0 => None,
            Strings::InFile(source) => Some(Name { source: *source, start: offset }),
        }
    }

    /// Keeps a name that is in no string table.
    pub(super) fn keep(&mut self, name: &str) -> Option<Name> {
        let start = u32::try_from(self.kept.len()).ok()?;
        self.kept.push_str(name);
        self.kept.push('\0');
        (!name.is_empty()).then_some(Name { source: 0, start })
    }

    /// The name; empty where the file says nothing any more.
    pub(super) fn text(&self, name: Name) -> Cow<'_, str> {
        let Some(number) = (name.source as usize).checked_sub(1) else {
            return string_at(self.kept.as_bytes(), name.start as usize).unwrap_or_default();
        };
        let read = self.in_files.get(number).and_then(|(file, section)| read(file, section, name.start));
        Cow::Owned(read.unwrap_or_default())
    }

    /// Whether a file is held open.
    pub(super) fn are_in_files(&self) -> bool {
        !self.in_files.is_empty()
    }

    /// Gives back what was reserved and is not used.
    pub(super) fn shrink(&mut self) {
        self.kept.shrink_to_fit();
    }

    /// Heap bytes in use.
    pub(super) fn bytes(&self) -> usize {
        let sections = |file: &ElfFile| size_of_val(file.sections());
        self.kept.capacity() + self.in_files.iter().map(|(file, _)| sections(file)).sum::<usize>()
    }
}

fn read(file: &ElfFile, section: &Section, start: u32) -> Option<String> {
    let mut name = Vec::new();
    loop {
        let at = u64::from(start).checked_add(name.len() as u64)?;
        let part = section.size.checked_sub(at)?.min(PART_BYTES as u64) as usize;
        let old = name.len();
        name.resize(old + part, 0);
        file.read_exact(section.offset.checked_add(at)?, name.get_mut(old..)?).ok()?;
        if let Some(text) = string_at(&name, 0) {
            return Some(without_version(&text).to_owned());
        }
        if part == 0 || name.len() >= MAX_NAME_BYTES {
            return None;
        }
    }
}
