//! Functions, inlined frames, files and lines of one object, from its DWARF: a unit
//! is parsed when an address of it is first asked for. Names stay mangled here;
//! what to do where there is no DWARF is decided in [`crate::symbolizer`].
//!
//! Not read: split DWARF (`.dwo`, `.dwp`), supplementary files of dwz, sections
//! compressed with anything but zlib.

use crate::elf::ElfFile;
use crate::pages::{Counter, PagedReader, with_bounded_stack};
use gimli::SectionId;
use std::sync::atomic::Ordering;

/// What a parsed unit occupies is not known; it goes with the pages that it was
/// parsed from, which are counted this many times.
const PARSED_FACTOR: usize = 2;

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

/// The DWARF of one object.
pub(crate) struct Lines {
    context: addr2line::Context<PagedReader>,
    held: Counter,
}

impl Lines {
    /// Whether the file has DWARF that this module reads.
    pub(crate) fn are_in(file: &ElfFile) -> bool {
        let size = |name| file.section(name).map_or(0, |section| file.full_size(section));
        size(".debug_info") != 0 && size(".debug_abbrev") != 0
    }

    /// Looks at the units of a file. `None`: there is no sound DWARF, or more than
    /// `max_bytes` of it, or more than `max_memory` of it would have to be
    /// decompressed.
    pub(crate) fn open(file: &ElfFile, max_bytes: u64, max_memory: u64) -> Option<Lines> {
        if !Lines::are_in(file) {
            return None;
        }
        let (mut total, mut compressed) = (0_u64, 0_u64);
        for section in file.sections().iter().filter(|section| section.name.starts_with(".debug_")) {
            let size = file.full_size(section);
            total = total.saturating_add(size);
            if section.is_compressed() && is_read(&section.name) {
                compressed = compressed.saturating_add(size);
            }
        }
        if total > max_bytes || compressed > max_memory {
            return None;
        }
        let held = Counter::default();
        let mut number = 0;
        let load = |id: SectionId| {
            number += 1;
            match file.section(id.name()).filter(|section| is_read(&section.name)) {
                Some(section) => PagedReader::new(file, section, number, max_bytes, &held),
                None => Ok(PagedReader::empty()),
            }
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Lines { context, held })
    }

    /// The frames at an address, innermost first; empty where nothing is known.
    pub(crate) fn frames(&self, address: u64) -> Vec<LineFrame> {
        with_bounded_stack(|| self.frames_found(address))
    }

    fn frames_found(&self, address: u64) -> Vec<LineFrame> {
        let mut found = Vec::new();
        // The look-up asks for the range up to the next address.
        if address == u64::MAX {
            return found;
        }
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|function| Some(function.raw_name().ok()?.into_owned()));
            let (file, line) = frame.location.map_or((None, None), |location| (location.file, location.line));
            found.push(LineFrame { name, file: file.map(str::to_owned), line });
        }
        found
    }

    /// Bytes in memory, as far as they are counted.
    pub(crate) fn bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed).saturating_mul(PARSED_FACTOR)
    }
}

/// Variables' locations, macros and name indices are of no use here.
fn is_read(name: &str) -> bool {
    !matches!(
        name,
        ".debug_loc"
            | ".debug_loclists"
            | ".debug_macinfo"
            | ".debug_macro"
            | ".debug_names"
            | ".debug_types"
    )
}
