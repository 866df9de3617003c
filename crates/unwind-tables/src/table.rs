//! The unwind table of one object, owned: the arrays that
//! [`swipr_unwind::table::Table`] borrows, and the builder that fills them row by
//! row. What the rows say is the business of [`crate`].

use rustc_hash::FxHashMap;
use swipr_unwind::register_table::RegisterRow;
use swipr_unwind::rule::{Extended, Rule};
use swipr_unwind::table::{BUCKET, LOWS_PADDING, Table};

/// An unwind table that owns its arrays. Immutable once built.
#[derive(Debug)]
pub struct OwnedTable {
    base: u64,
    index: Vec<u32>,
    lows: Vec<u8>,
    ids: Vec<u16>,
    dictionary: Vec<Rule>,
    extended: Vec<Extended>,
    expressions: Vec<u8>,
    saved: Vec<RegisterRow>,
    undescribed: u64,
}

impl OwnedTable {
    /// Bytes of code that no rule was found for.
    pub fn undescribed(&self) -> u64 {
        self.undescribed
    }

    pub(crate) fn with_saved(self, saved: Vec<RegisterRow>) -> OwnedTable {
        OwnedTable { saved, ..self }
    }

    /// The arrays as the unwinder reads them.
    pub fn view(&self) -> Table<'_> {
        Table {
            base: self.base,
            index: &self.index,
            lows: &self.lows,
            ids: &self.ids,
            dictionary: &self.dictionary,
            extended: &self.extended,
            expressions: &self.expressions,
            saved: &self.saved,
        }
    }

    /// Heap bytes that the arrays occupy.
    pub fn bytes(&self) -> usize {
        self.index.capacity() * size_of::<u32>()
            + self.lows.capacity()
            + self.ids.capacity() * size_of::<u16>()
            + self.dictionary.capacity() * size_of::<Rule>()
            + self.extended.capacity() * size_of::<Extended>()
            + self.expressions.capacity()
            + self.saved.capacity() * size_of::<RegisterRow>()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }
}

/// The number of [`Rule::NONE`] in every dictionary, so that a rule that finds no
/// place in a full dictionary can become "no unwind information".
const NONE_ID: u16 = 0;

/// Slots of the builder's cache of rule numbers: most rows repeat one of few rules.
const RECENT: usize = 256;

/// Takes rows in the order of their pc and lays them out.
pub(crate) struct TableBuilder {
    base: u64,
    index: Vec<u32>,
    lows: Vec<u8>,
    ids: Vec<u16>,
    dictionary: Vec<Rule>,
    numbers: FxHashMap<Rule, u16>,
    recent: [(Rule, u16); RECENT],
    /// The newest row: still replaceable by another at the same pc.
    pending: Option<(u64, Rule)>,
    written: Option<Rule>,
}

impl TableBuilder {
    /// An empty table whose rows begin at `base` or later.
    pub(crate) fn new(base: u64, expected_rows: usize) -> TableBuilder {
        let mut numbers = FxHashMap::default();
        numbers.insert(Rule::NONE, NONE_ID);
        TableBuilder {
            base,
            index: Vec::new(),
            lows: Vec::with_capacity(expected_rows),
            ids: Vec::with_capacity(expected_rows),
            dictionary: vec![Rule::NONE],
            numbers,
            recent: [(Rule::NONE, NONE_ID); RECENT],
            pending: None,
            written: None,
        }
    }

    /// From `pc` on, `rule`. A second row at the same pc replaces the first; one
    /// that says what the row before it said is left out. `pc` must not go down.
    #[inline]
    pub(crate) fn push(&mut self, pc: u64, rule: Rule) {
        if let Some((pending, old)) = self.pending
            && pending != pc
        {
            self.write(pending, old);
        }
        self.pending = Some((pc, rule));
    }

    #[inline]
    fn write(&mut self, pc: u64, rule: Rule) {
        if self.written == Some(rule) {
            return;
        }
        self.written = Some(rule);
        let offset = pc.wrapping_sub(self.base);
        let bucket = (offset / BUCKET) as usize;
        let rows = self.ids.len() as u32;
        if self.index.len() <= bucket {
            self.index.resize(bucket + 1, rows);
        }
        self.lows.push(offset as u8);
        let id = self.number(rule);
        self.ids.push(id);
    }

    #[inline]
    fn number(&mut self, rule: Rule) -> u16 {
        let bits = rule.bits();
        let slot = (bits >> 3 ^ bits >> 17 ^ bits << 6) as usize % RECENT;
        match self.recent.get(slot) {
            Some(&(known, id)) if known == rule => id,
            _ => {
                let id = self.number_in_dictionary(rule);
                if let Some(entry) = self.recent.get_mut(slot) {
                    *entry = (rule, id);
                }
                id
            }
        }
    }

    fn number_in_dictionary(&mut self, rule: Rule) -> u16 {
        if let Some(&id) = self.numbers.get(&rule) {
            return id;
        }
        let Ok(id) = u16::try_from(self.dictionary.len()) else {
            return NONE_ID;
        };
        self.dictionary.push(rule);
        self.numbers.insert(rule, id);
        id
    }

    /// Ends the table at `end`, the end of the last function's code.
    pub(crate) fn finish(
        mut self,
        end: u64,
        extended: Vec<Extended>,
        expressions: Vec<u8>,
        undescribed: u64,
    ) -> OwnedTable {
        self.push(end, Rule::NONE);
        if let Some((pc, rule)) = self.pending.take() {
            self.write(pc, rule);
        }
        self.index.push(self.ids.len() as u32);
        self.lows.resize(self.ids.len() + LOWS_PADDING, 0xff);
        let mut table = OwnedTable {
            base: self.base,
            index: self.index,
            lows: self.lows,
            ids: self.ids,
            dictionary: self.dictionary,
            extended,
            expressions,
            saved: Vec::new(),
            undescribed,
        };
        table.index.shrink_to_fit();
        table.lows.shrink_to_fit();
        table.ids.shrink_to_fit();
        table.dictionary.shrink_to_fit();
        table.extended.shrink_to_fit();
        table.expressions.shrink_to_fit();
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn rule(cfa: i64) -> Rule {
        Rule::sp(cfa, 0).unwrap()
    }

    #[test]
    fn a_row_holds_until_the_next_across_buckets() {
        let mut builder = TableBuilder::new(0x1000, 0);
        builder.push(0x1010, rule(8));
        builder.push(0x1011, rule(16));
        builder.push(0x1500, rule(24));
        let table = builder.finish(0x1510, Vec::new(), Vec::new(), 0);
        let view = table.view();
        for (pc, expected) in [
            (0x0fff, Rule::NONE),
            (0x1000, Rule::NONE),
            (0x100f, Rule::NONE),
            (0x1010, rule(8)),
            (0x1011, rule(16)),
            (0x14ff, rule(16)),
            (0x1500, rule(24)),
            (0x150f, rule(24)),
            (0x1510, Rule::NONE),
            (0x9999, Rule::NONE),
        ] {
            assert_eq!(view.rule(pc), expected, "at {pc:#x}");
        }
        assert_eq!(table.rows(), 4);
    }

    #[test]
    fn equal_neighbours_are_merged_and_the_last_row_of_a_pc_wins() {
        let mut builder = TableBuilder::new(0, 0);
        builder.push(0, rule(8));
        builder.push(4, rule(16));
        builder.push(4, rule(8));
        builder.push(9, rule(8));
        let table = builder.finish(12, Vec::new(), Vec::new(), 0);
        assert_eq!(table.rows(), 2);
        assert_eq!(table.view().rule(11), rule(8));
    }

    #[test]
    fn more_rules_than_the_dictionary_holds_become_no_rule() {
        let mut builder = TableBuilder::new(0, 0);
        for n in 0..70_000 {
            builder.push(n, Rule::sp((n as i64 % 16_000) * 8, 8 + (n as i64 / 16_000) * 8).unwrap());
        }
        let table = builder.finish(70_000, Vec::new(), Vec::new(), 0);
        assert_eq!(table.view().rule(65_000).fp_offset(), 40);
        assert_eq!(table.view().rule(69_999), Rule::NONE);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn any_rows_are_found_as_a_look_at_each_finds_them(
            base in any::<u32>(),
            steps in prop::collection::vec((prop_oneof![3 => 0..40u64, 1 => 0..2000u64], 0..6i64), 1..200),
        ) {
            let base = u64::from(base);
            let mut builder = TableBuilder::new(base, 0);
            let mut rows = vec![(0, Rule::NONE)];
            for (step, cfa) in steps {
                let (at, rule) = (rows[rows.len() - 1].0 + step, rule(8 * cfa));
                builder.push(base + at, rule);
                rows.push((at, rule));
            }
            let end = rows[rows.len() - 1].0 + 10;
            let table = builder.finish(base + end, Vec::new(), Vec::new(), 0);
            rows.push((end, Rule::NONE));
            for (at, _) in &rows {
                for at in [at.saturating_sub(1), *at, at + 1] {
                    let expected = rows.iter().rev().find(|row| row.0 <= at).unwrap().1;
                    prop_assert_eq!(table.view().rule(base + at), expected, "at {:#x}", at);
                }
            }
        }
    }
}
