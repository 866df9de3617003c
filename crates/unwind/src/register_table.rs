//! Where registers are saved, for code whose frame descriptions no handler can find or understand:
//! objects without a search table, code that the program registered itself, and what `.debug_frame`
//! alone describes.
//!
//! All that is said of a register is written out beforehand, which takes several times the room of
//! the unwind table. So the many objects that have a search table have none of this: see
//! [`crate::register_rules`].

use crate::register_rules::{RegisterRule, Saved};

/// The register of the rows that say where code is described ([`RegisterRule::Same`]) and where
/// not.
pub const DESCRIBED: u8 = u8::MAX;

/// From `start` on, until the register's next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterRow {
    /// Where it begins, from the table's base.
    pub start: u32,
    /// Which register, by DWARF number, or [`DESCRIBED`].
    pub register: u8,
    /// How `value` is read.
    pub how: RegisterRule,
    /// Bytes of the expression.
    pub length: u16,
    /// An offset, a register, or where the expression begins among the table's.
    pub value: i32,
}

impl RegisterRow {
    /// What rows are sorted by.
    pub fn key(&self) -> (u8, u32) {
        (self.register, self.start)
    }
}

/// Where `register` is at `offset` from the table's base; `None` where nothing is described.
#[inline(never)]
pub(crate) fn find(rows: &[RegisterRow], expressions: &[u8], offset: u64, register: u8) -> Option<Saved> {
    let offset = u32::try_from(offset).ok()?;
    last(rows, DESCRIBED, offset).filter(|row| row.how == RegisterRule::Same)?;
    let Some(row) = last(rows, register, offset) else { return Some(Saved::SAME) };
    let value = match row.how {
        RegisterRule::At | RegisterRule::Value => {
            let start = usize::try_from(row.value).ok()?;
            expressions.get(start..)?.as_ptr() as u64
        }
        _ => i64::from(row.value) as u64,
    };
    Some(Saved { how: row.how, length: row.length, value })
}

fn last(rows: &[RegisterRow], register: u8, offset: u32) -> Option<&RegisterRow> {
    let behind = rows.partition_point(|row| row.key() <= (register, offset));
    rows.get(behind.checked_sub(1)?).filter(|row| row.register == register)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_holds_until_the_next_of_its_register_and_only_where_code_is_described() {
        let row = |register, start, how, value| RegisterRow { start, register, how, length: 0, value };
        let rows = [
            row(3, 11, RegisterRule::AtCfa, -16),
            row(3, 19, RegisterRule::Same, 0),
            row(12, 12, RegisterRule::At, 2),
            row(DESCRIBED, 10, RegisterRule::Same, 0),
            row(DESCRIBED, 20, RegisterRule::Undefined, 0),
        ];
        assert!(rows.is_sorted_by_key(RegisterRow::key));
        let expressions = [1, 2, 3];
        let at = |offset, register| find(&rows, &expressions, offset, register);
        let pushed = Some(Saved { how: RegisterRule::AtCfa, length: 0, value: -16_i64 as u64 });
        assert_eq!([at(9, 3), at(10, 3), at(11, 3)], [None, Some(Saved::SAME), pushed]);
        assert_eq!([at(18, 3), at(19, 3), at(20, 3)], [pushed, Some(Saved::SAME), None]);
        assert_eq!(at(19, 12).map(|saved| saved.value), Some(&raw const expressions[2] as u64));
        assert_eq!(
            [at(15, 4), at(15, 13), at(1 << 32 | 15, 3)],
            [Some(Saved::SAME), Some(Saved::SAME), None]
        );
        assert_eq!(find(&[], &[], 0, 3), None);
    }
}
