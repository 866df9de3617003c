//! The arrays of an unwind table, laid out from rows.

use swipr_unwind::rule::Rule;
use swipr_unwind::table::{BUCKET, LOWS_PADDING, Table};

/// Arrays that a [`Table`] borrows.
#[derive(Debug, Default)]
pub struct Arrays {
    /// Rows before each bucket.
    pub index: Vec<u32>,
    /// Low bytes of rows.
    pub lows: Vec<u8>,
    /// Rules of rows.
    pub ids: Vec<u16>,
    /// The rules.
    pub dictionary: Vec<Rule>,
}

impl Arrays {
    /// Of rows that are sorted by their offset.
    pub fn of(rows: &[(u64, Rule)]) -> Arrays {
        let last = rows.last().map_or(0, |row| row.0);
        let before = |bucket: u64| rows.partition_point(|row| row.0 < bucket * BUCKET) as u32;
        let mut lows: Vec<u8> = rows.iter().map(|row| row.0 as u8).collect();
        lows.extend([0xff; LOWS_PADDING]);
        Arrays {
            index: (0..=last / BUCKET + 1).map(before).collect(),
            lows,
            ids: (0..rows.len() as u16).collect(),
            dictionary: rows.iter().map(|row| row.1).collect(),
        }
    }

    /// A table whose rows count from `base`.
    pub fn table(&self, base: u64) -> Table<'_> {
        Table {
            base,
            index: &self.index,
            lows: &self.lows,
            ids: &self.ids,
            dictionary: &self.dictionary,
            extended: &[],
            expressions: &[],
            saved: &[],
        }
    }
}
