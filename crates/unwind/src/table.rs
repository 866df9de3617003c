//! The unwind table of one loaded object: which [`Rule`] holds at a pc.
//!
//! A row says "from this pc on, this rule". Code is cut into buckets of 256
//! bytes: `index[b]` is the number of rows that begin before bucket `b`, so the
//! rows of a bucket are `index[b]..index[b + 1]`. A row is the low byte of its pc
//! (`lows`) and the number of its rule in a dictionary (`ids`): three bytes, about
//! four with the index. A look-up reads one index entry, compares the bucket's low
//! bytes sixteen at a time, and reads one id: 25-40 ns at random pcs, where a binary search
//! over eight-byte rows took 140-170.
//!
//! This module only reads. `swipr-unwind-tables` builds the arrays (not in a handler).

use crate::register_rules::Saved;
use crate::register_table::{self, RegisterRow};
use crate::rule::{Extended, Rule};

/// Bytes of code a bucket covers.
pub const BUCKET: u64 = 256;
/// Bytes that [`Table::lows`] holds behind its last row, so that sixteen can be read at once.
pub const LOWS_PADDING: usize = 16;

/// Borrowed arrays of one object's table.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The address in this process that row offsets count from.
    pub base: u64,
    /// Rows that begin before each bucket, and at the end the number of all rows.
    pub index: &'a [u32],
    /// Low byte of each row's pc offset, then [`LOWS_PADDING`] bytes of 0xff.
    pub lows: &'a [u8],
    /// Index into `dictionary`, one a row.
    pub ids: &'a [u16],
    /// The distinct rules.
    pub dictionary: &'a [Rule],
    /// Rules that do not fit [`Rule`].
    pub extended: &'a [Extended],
    /// DWARF expressions of the extended rules and of `saved`, one after the other.
    pub expressions: &'a [u8],
    /// Where registers are saved, sorted by [`RegisterRow::key`]; mostly none, see there.
    pub saved: &'a [RegisterRow],
}

impl Table<'_> {
    /// Without a row.
    pub const EMPTY: Table<'static> = Table {
        base: 0,
        index: &[],
        lows: &[],
        ids: &[],
        dictionary: &[],
        extended: &[],
        expressions: &[],
        saved: &[],
    };

    /// The rule that holds at `pc`, an address in this process;
    /// [`Rule::NONE`] outside of the table. Async-signal-safe.
    #[inline]
    pub fn rule(&self, pc: u64) -> Rule {
        match self.row(pc) {
            Some(row) => self.rule_of_row(row),
            None => Rule::NONE,
        }
    }

    /// The number of the row that holds at `pc`.
    #[inline]
    pub fn row(&self, pc: u64) -> Option<usize> {
        let offset = pc.wrapping_sub(self.base);
        let bucket = (offset / BUCKET) as usize;
        let first = *self.index.get(bucket)? as usize;
        let end = *self.index.get(bucket.checked_add(1)?)? as usize;
        // Which of them is only known once the low bytes are there. Both are out of the cache, and
        // come at the same time so.
        crate::arch::prefetch(self.ids.as_ptr().wrapping_add(first));
        let window = self.lows.get(first..end.checked_add(LOWS_PADDING)?)?;
        let rows_before = first + crate::arch::count_at_most(window, end.wrapping_sub(first), offset as u8);
        rows_before.checked_sub(1)
    }

    /// The rule of a row; [`Rule::NONE`] when there is no such row.
    #[inline]
    pub fn rule_of_row(&self, row: usize) -> Rule {
        match self.ids.get(row) {
            Some(&id) => match self.dictionary.get(id as usize) {
                Some(&rule) => rule,
                None => Rule::NONE,
            },
            None => Rule::NONE,
        }
    }

    /// The address at which a row begins. Looks the bucket up by binary search.
    pub fn start_of_row(&self, row: usize) -> Option<u64> {
        let low = u64::from(*self.lows.get(row)?);
        // The bucket is the last one whose rows begin at or before this row.
        let bucket = self.index.partition_point(|&first| first as usize <= row).checked_sub(1)?;
        Some(self.base.wrapping_add(bucket as u64 * BUCKET).wrapping_add(low))
    }

    /// Where `register` is saved at `pc`, if this table says so.
    #[inline]
    pub fn saved(&self, pc: u64, register: u8) -> Option<Saved> {
        register_table::find(self.saved, self.expressions, pc.wrapping_sub(self.base), register)
    }

    /// An extended rule of this table.
    #[inline]
    pub fn extended_rule(&self, rule: Rule) -> Option<&Extended> {
        self.extended.get(rule.extended_index())
    }
}
