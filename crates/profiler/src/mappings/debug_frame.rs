//! The `.debug_frame` of an object's file, for code that `.eh_frame` does not describe. It is not
//! in memory: the file is opened, which most objects are spared.

use super::origin::Origin;
use swipr_symbols::table::OwnedTable;

/// Larger sections are not read.
const MAX_BYTES: u64 = 64 << 20;
/// Nearly every object has this much code without a description: the linker and the C library's
/// start files put it around the program's own code.
const USUAL: u64 = 320;

/// Whether so much code lacks a rule that the file is worth reading.
pub fn is_wanted(table: &OwnedTable) -> bool {
    table.undescribed() > USUAL
}

/// The section, if the file has one and is certainly the one whose code is mapped.
pub fn of_object(origin: &Origin, build_id: &[u8]) -> Option<Vec<u8>> {
    let file = origin.open_proven(build_id)?;
    let bytes = file.bytes(file.section(".debug_frame")?, MAX_BYTES).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}
