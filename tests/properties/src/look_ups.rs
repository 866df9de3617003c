//! Look-ups in unwind tables: in a table that is sound they say what a look at every row says; in
//! one that is not they say something, and read nothing outside.

use crate::arrays::Arrays;
use crate::choices::Choices;
use swipr_unwind::arch::{count_at_most, count_at_most_portable};
use swipr_unwind::rule::Rule;
use swipr_unwind::table::{BUCKET, LOWS_PADDING};

const MAX_ROWS: usize = 600;

/// See the module's text.
pub fn check(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    match choices.flag() {
        true => sound(&mut choices),
        false => unsound(&mut choices),
    }
}

fn sound(choices: &mut Choices<'_>) {
    let base = choices.word();
    let mut rows = Vec::new();
    let mut at = 0u64;
    while !choices.is_over() && rows.len() < MAX_ROWS {
        at += match choices.byte() {
            255 => 1 + choices.below(0x10000),
            step => 1 + u64::from(step % 40),
        };
        let rule = Rule::sp(8 * rows.len() as i64, 0);
        rows.push((at, rule.unwrap_or(Rule::NONE)));
    }
    let arrays = Arrays::of(&rows);
    let table = arrays.table(base);
    for (number, &(start, rule)) in rows.iter().enumerate() {
        let address = base.wrapping_add(start);
        assert_eq!(table.start_of_row(number), Some(address));
        let next = rows.get(number + 1).map_or(start + 1, |next| next.0);
        for offset in [start, start + (next - start) / 2, next - 1] {
            let pc = base.wrapping_add(offset);
            assert_eq!((table.row(pc), table.rule(pc)), (Some(number), rule), "row {number} at {offset:#x}");
        }
    }
    let first = rows.first().map_or(0, |row| row.0);
    assert_eq!(table.rule(base.wrapping_add(first).wrapping_sub(1)), Rule::NONE);
}

fn unsound(choices: &mut Choices<'_>) {
    let base = choices.word();
    let index = (0..choices.below(20)).map(|_| choices.word() as u32).collect();
    let ids = (0..choices.below(40)).map(|_| choices.below(8) as u16).collect();
    let dictionary = (0..choices.below(8)).map(|n| Rule::plt(n as u8)).collect();
    let lows = choices.some_bytes().to_vec();
    let arrays = Arrays { index, lows, ids, dictionary };
    let table = arrays.table(base);
    for bucket in 0..24 {
        for low in [0, 7, 255] {
            let pc = base.wrapping_add(bucket * BUCKET + low);
            table.extended_rule(table.rule(pc));
        }
    }
    for row in [0, 1, arrays.ids.len(), usize::MAX] {
        table.rule_of_row(row);
        table.start_of_row(row);
    }
    let mut lows = choices.rest().to_vec();
    lows.sort_unstable();
    let count = lows.len();
    lows.extend([0xff; LOWS_PADDING]);
    for low in [0, base as u8, 255] {
        assert_eq!(count_at_most(&lows, count, low), count_at_most_portable(&lows, count, low));
    }
}
