//! The `.debug_frame` of an object's file, or of its separate debug file, for code that `.eh_frame`
//! does not describe. It is not in memory: the file is opened, which most objects are spared.

use super::origin::Origin;
use std::path::Path;
use swipr_symbols::elf::ElfFile;
use swipr_symbols::go;
use swipr_symbols::rows::DebugFrameInput;
use swipr_symbols::separate::{DEBUG_ROOT, Finder};
use swipr_symbols::table::OwnedTable;
use swipr_unwind::rule::Rule;

const NAME: &str = ".debug_frame";
/// Larger sections are not read.
const MAX_BYTES: u64 = 64 << 20;
/// Larger debug files are not read: that this is the right one may have to be seen from all of it,
/// which takes 2 ms a megabyte.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Nearly every object has this much code without a description: the linker and the C library's
/// start files put it around the program's own code.
const USUAL: u64 = 320;

/// Whether so much code lacks a rule that the file is worth reading.
pub fn is_wanted(table: &OwnedTable) -> bool {
    table.undescribed() > USUAL
}

/// What is read of a file.
pub struct DebugFrame {
    bytes: Vec<u8>,
    stack_switches: Vec<(u64, Rule)>,
}

impl DebugFrame {
    /// That of the object whose code is mapped, if its file is certainly the one.
    pub fn of_object(origin: &Origin, build_id: &[u8]) -> Option<DebugFrame> {
        let object = origin.open_proven(build_id)?;
        let separate = match object.section(NAME) {
            Some(_) => None,
            None => separate_file(&object, origin),
        };
        let file = separate.as_ref().unwrap_or(&object);
        let bytes = file.bytes(file.section(NAME)?, MAX_BYTES).ok()?;
        (!bytes.is_empty()).then(|| DebugFrame { bytes, stack_switches: go::stack_switches(&object, file) })
    }

    /// For a table; `bias` is what was added to the addresses in the file.
    pub fn input(&self, bias: u64) -> DebugFrameInput<'_> {
        DebugFrameInput { bias, bytes: &self.bytes, stack_switches: &self.stack_switches }
    }
}

fn separate_file(object: &ElfFile, origin: &Origin) -> Option<ElfFile> {
    let (roots, on_refusal) = (&[DEBUG_ROOT.into()], &mut |_| {});
    Finder { roots, max_bytes: MAX_FILE_BYTES, on_refusal }.debug_file(object, Path::new(&origin.path))
}
