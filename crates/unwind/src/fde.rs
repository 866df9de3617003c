//! A function's frame description (FDE) and what it shares with others (CIE), found through
//! the object's search table and read in place (LSB, "Exception Frames").
//!
//! Used for what no unwind table holds: where a register lies in a frame, and all of an object that
//! has no table yet.

use crate::cfi_reader::Reader;
use crate::dwarf::{DW_EH_PE_ABSPTR, DW_EH_PE_DATAREL, DW_EH_PE_SDATA4};
use crate::memory::Memory;

/// Entries of the search table that are read at once, at the end of a search.
const LAST_ENTRIES: u64 = 32;
const ENTRY_BYTES: u64 = 8;
/// The only form that linkers write: four bytes each, relative to the search table's section.
const TABLE_ENCODING: u8 = DW_EH_PE_DATAREL | DW_EH_PE_SDATA4;
/// Letters of an augmentation string that are looked at.
const LETTERS: usize = 8;

/// What is common to the descriptions of many functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cie {
    /// What code distances are multiplied with.
    pub(crate) code_factor: u64,
    /// What offsets are multiplied with.
    pub(crate) data_factor: i64,
    /// How the descriptions' pointers are encoded.
    pub(crate) encoding: u8,
    /// The column of the return address.
    pub(crate) return_register: u64,
    /// Whether the functions are signals' trampolines.
    pub(crate) is_signal: bool,
    is_augmented: bool,
}

/// What a search table says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Where the function begins.
    pub(crate) start: u64,
    /// The address of its description.
    pub(crate) description: u64,
    /// Where the next function begins.
    pub(crate) next: Option<u64>,
}

/// The entry that may hold for `pc`: the last one whose function begins at or before it, by the
/// `.eh_frame_hdr` at `header`.
#[inline(never)]
pub(crate) fn search<M: Memory + ?Sized>(reader: &mut Reader<'_, M>, header: u64, pc: u64) -> Option<Found> {
    reader.seek(header, u64::MAX)?;
    let [version, pointer, count, table] = [reader.byte()?, reader.byte()?, reader.byte()?, reader.byte()?];
    if version != 1 || table != TABLE_ENCODING {
        return None;
    }
    reader.number(pointer)?;
    let count = reader.number(count)?.min(u64::from(u32::MAX));
    let table = reader.at();
    let (mut low, mut high) = (0, count);
    let entry = |number: u64| table.wrapping_add(number * ENTRY_BYTES);
    let relative = |bytes: [u8; 4]| header.wrapping_add_signed(i64::from(i32::from_le_bytes(bytes)));
    while high - low > LAST_ENTRIES {
        let middle = low + (high - low) / 2;
        let mut start = [0; 4];
        if !reader.memory.code(entry(middle), &mut start) {
            return None;
        }
        if relative(start) <= pc { low = middle } else { high = middle }
    }
    // The rest is read at once, and looked through in the reader's own copy.
    let after = high.saturating_add(1).min(count);
    let mut start_of = |number: u64| {
        reader.seek(entry(number), entry(after))?;
        Some(relative(reader.four_bytes()?))
    };
    start_of(low)?;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if start_of(middle)? <= pc { low = middle } else { high = middle }
    }
    let next = if high < after { Some(start_of(high)?) } else { None };
    let start = start_of(low).filter(|&start| start <= pc)?;
    let description = relative(reader.four_bytes()?);
    Some(Found { start, description, next })
}

/// Moves the reader behind an entry's length and limits it to the entry.
fn enter<M: Memory + ?Sized>(reader: &mut Reader<'_, M>, address: u64) -> Option<()> {
    reader.seek(address, u64::MAX)?;
    let length = reader.unsigned(4)?;
    // 0: the section's end; above: the format for sections beyond 4 GiB
    if length == 0 || length >= 0xffff_fff0 {
        return None;
    }
    let end = reader.at().checked_add(length)?;
    reader.limit(end);
    Some(())
}

/// Where a description's own fields begin and end, and the address of its common entry.
pub(crate) fn head<M: Memory + ?Sized>(reader: &mut Reader<'_, M>, address: u64) -> Option<(u64, u64, u64)> {
    enter(reader, address)?;
    let place = reader.at();
    let distance = reader.unsigned(4)?;
    let common = place.checked_sub(distance)?;
    (distance != 0).then_some((reader.at(), reader.end(), common))
}

impl Cie {
    /// Nothing was read yet.
    pub(crate) const fn new() -> Cie {
        Cie {
            code_factor: 0,
            data_factor: 0,
            encoding: DW_EH_PE_ABSPTR,
            return_register: 0,
            is_signal: false,
            is_augmented: false,
        }
    }

    /// Reads a common entry; the reader is then at its instructions.
    pub(crate) fn read<M: Memory + ?Sized>(
        &mut self,
        reader: &mut Reader<'_, M>,
        address: u64,
    ) -> Option<()> {
        enter(reader, address)?;
        let (id, version) = (reader.unsigned(4)?, reader.byte()?);
        if id != 0 || !matches!(version, 1 | 3) {
            return None;
        }
        let mut letters = [0; LETTERS];
        for at in 0..=LETTERS {
            match reader.byte()? {
                0 => break,
                letter => *letters.get_mut(at)? = letter,
            }
        }
        *self = Cie { code_factor: reader.uleb()?, data_factor: reader.sleb()?, ..Cie::new() };
        self.return_register = if version == 1 { u64::from(reader.byte()?) } else { reader.uleb()? };
        match letters {
            [0, ..] => {}
            [b'z', rest @ ..] => {
                self.is_augmented = true;
                let bytes = reader.uleb()?;
                let instructions = reader.at().checked_add(bytes)?;
                for letter in rest {
                    match letter {
                        b'R' => self.encoding = reader.byte()?,
                        b'L' => _ = reader.byte()?,
                        b'P' => {
                            let encoding = reader.byte()?;
                            reader.number(encoding)?;
                        }
                        b'S' => self.is_signal = true,
                        // How aarch64 signs return addresses: no data.
                        b'B' | b'G' => {}
                        _ => break,
                    }
                }
                reader.seek(instructions, reader.end())?;
            }
            _ => return None,
        }
        Some(())
    }
}

/// Reads a description's fields; the reader is then at its instructions. The function's first
/// address, and its bytes.
pub(crate) fn function<M: Memory + ?Sized>(reader: &mut Reader<'_, M>, common: &Cie) -> Option<(u64, u64)> {
    let start = reader.pointer(common.encoding)?;
    let length = reader.number(common.encoding)?;
    if common.is_augmented {
        let bytes = reader.uleb()?;
        reader.skip(bytes)?;
    }
    Some((start, length))
}
