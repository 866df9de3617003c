//! Functions, inlined frames, files and lines of one object, from its DWARF: a unit
//! is parsed when an address of it is first asked for. Names stay mangled here;
//! what to do where there is no DWARF is decided in [`crate::symbolizer`].

mod split;

use crate::elf::{ElfFile, Section};
use crate::pages::{Counter, PagedReader, Residence, with_bounded_stack};
use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{Dwarf, SectionId};
use split::Split;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// What a parsed unit occupies is not known; it goes with the pages that it was
/// parsed from, which are counted this many times.
const PARSED_FACTOR: usize = 2;
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
    context: Context<PagedReader>,
    split: Split,
    held: Counter,
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
            Dwarf::load(section)
        };
        let mut dwarf = load(files.main, 0).ok()?;
        dwarf.sup = files.alternate.and_then(|file| load(file, FURTHER_SECTIONS).ok()).map(Into::into);
        let context = Context::from_dwarf(dwarf).ok()?;
        let mut packages = vec![files.path.to_owned()];
        packages.extend(files.main.path().filter(|path| *path != files.path).map(PathBuf::from));
        let split = Split::new(packages, max_bytes, max_memory, held.clone());
        Some(Lines { context, split, held })
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
        let mut step = self.context.find_frames(address);
        let frames = loop {
            step = match step {
                LookupResult::Output(frames) => break frames,
                LookupResult::Load { load, continuation } => continuation.resume(self.split.load(&load)),
            }
        };
        let Ok(mut frames) = frames else {
            // The line table may be sound where the tree of functions is not.
            let place = self.context.find_location(address).ok().flatten();
            found.extend(place.map(|place| LineFrame {
                name: None,
                file: place.file.map(str::to_owned),
                line: place.line,
            }));
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|function| Some(function.raw_name().ok()?.into_owned()));
            let (file, line) = frame.location.map_or((None, None), |location| (location.file, location.line));
            found.push(LineFrame { name, file: file.map(str::to_owned), line });
        }
        found
    }

    /// Files of split DWARF that were found and are not what was asked for, since the last time.
    pub(crate) fn take_refused(&self) -> u64 {
        self.split.take_refused()
    }

    /// Bytes in memory, as far as they are counted.
    pub(crate) fn bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed).saturating_mul(PARSED_FACTOR)
    }
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
