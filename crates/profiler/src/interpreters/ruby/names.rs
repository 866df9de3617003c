//! Ruby's list of all names, by their numbers: an array of parts, each an array of
//! strings and symbols in turn.

use super::Exported;
use swipr_runtimes::ruby::{RubyLayout, RubyRow};

/// Names of a part, and what one of them takes in it.
const OF_PART: u64 = 512;
const NAME_BYTES: u64 = 16;
/// Parts that are looked through for a name.
const MAX_PARTS: u64 = 64;
/// The operator that has its character for its number.
const PLUS: u64 = b'+' as u64;
/// Types of objects, and the mark of a symbol that is a number (`ruby/ruby.h`).
const TYPE: u64 = 0x1f;
const STRING: u64 = 5;
const ARRAY: u64 = 7;
const SYMBOL: u64 = 0xc;

fn word(exported: &Exported, at: u64) -> Option<u64> {
    exported.copy(at).map(u64::from_ne_bytes)
}

/// Where the elements of an array are.
fn elements(array: u64, exported: &Exported, row: &RubyRow) -> Option<u64> {
    let flags = word(exported, array).filter(|flags| flags & TYPE == ARRAY)?;
    match flags & u64::from(row.flag_array_inside) {
        0 => word(exported, array.checked_add(row.array_pointer.into())?),
        _ => array.checked_add(row.array_inside.into()),
    }
}

/// Where the names of a part are.
fn part(names: u64, number: u64, exported: &Exported, row: &RubyRow) -> Option<u64> {
    let parts = elements(word(exported, names)?, exported, row)?;
    elements(word(exported, parts.checked_add(8 * number)?)?, exported, row)
}

/// Whether an object is this text, as short strings are kept.
fn is_text(string: u64, text: &[u8], exported: &Exported, row: &RubyRow) -> bool {
    let flags = word(exported, string).unwrap_or(0);
    let length = match row.string_inside_mask {
        0 => word(exported, string.wrapping_add(row.string_length.into())).unwrap_or(0),
        mask => flags >> row.string_inside_shift & u64::from(mask),
    };
    let mut bytes = vec![0; text.len()];
    let is_short = flags & TYPE == STRING && flags & u64::from(row.flag_string_outside) == 0;
    is_short
        && length == text.len() as u64
        && exported.copy_into(string.wrapping_add(row.string_inside.into()), &mut bytes).is_some()
        && bytes == text
}

/// Whether the list is there: the operator `+` is in it at its place.
pub fn are_at(names: u64, exported: &Exported, row: &RubyRow) -> bool {
    let plus = part(names, 0, exported, row).and_then(|part| word(exported, part + PLUS * NAME_BYTES));
    plus.is_some_and(|plus| is_text(plus, b"+", exported, row))
}

/// The number that symbols of this name have.
pub fn id_of(text: &[u8], exported: &Exported, layout: &RubyLayout) -> Option<u64> {
    let row = layout.row;
    for number in 0..MAX_PARTS {
        let mut names = vec![0; (OF_PART * NAME_BYTES) as usize];
        exported.copy_into(part(layout.names, number, exported, row)?, &mut names)?;
        for name in names.as_chunks::<{ NAME_BYTES as usize }>().0 {
            let [string, symbol] =
                [0, 8].map(|at| name.get(at..).and_then(|rest| rest.first_chunk()).copied());
            let (string, symbol) = (u64::from_ne_bytes(string?), u64::from_ne_bytes(symbol?));
            if symbol & 0xff == SYMBOL && is_text(string, text, exported, row) {
                return Some(symbol >> 8);
            }
        }
    }
    None
}
