//! A diff as a table of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::{Diff, Stacks};

/// What a function takes of a whole.
#[derive(Clone, Copy, Default)]
struct Share {
    /// By itself.
    own: f64,
    /// With what it calls.
    total: f64,
}

/// Two recordings of the same program differ by more than so many standard deviations in three of
/// a thousand functions.
const DEVIATIONS: f64 = 3.0;

/// What rounding makes of no change.
const NONE: f64 = 1e-9;

/// Whether so many random samples of two equal shares may well be so far apart.
fn is_chance(before: f64, after: f64, [first, second]: [f64; 2]) -> bool {
    let share = (before * first + after * second) / (first + second);
    let variance = share * (1.0 - share) * (1.0 / first + 1.0 / second);
    first > 0.0 && second > 0.0 && (after - before).abs() <= NONE + DEVIATIONS * variance.max(0.0).sqrt()
}

fn shares(stacks: &Stacks) -> BTreeMap<&str, Share> {
    let whole = stacks.whole().max(1) as f64;
    let mut shares: BTreeMap<&str, Share> = BTreeMap::new();
    for (stack, &weight) in &stacks.weights {
        let part = weight as f64 / whole;
        for name in stack.iter().map(String::as_str).collect::<BTreeSet<_>>() {
            shares.entry(name).or_default().total += part;
        }
        if let Some(leaf) = stack.last() {
            shares.entry(leaf).or_default().own += part;
        }
    }
    shares
}

pub(super) fn table(diff: &Diff, most: usize) -> String {
    let (before, after) = (shares(&diff.before), shares(&diff.after));
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let of = |shares: &BTreeMap<&str, Share>, name: &str| shares.get(name).copied().unwrap_or_default();
    let mut rows: Vec<(&str, Share, Share)> =
        names.into_iter().map(|name| (name, of(&before, name), of(&after, name))).collect();
    let change = |(_, before, after): &(&str, Share, Share)| {
        (after.own - before.own).abs().max((after.total - before.total).abs() / 1e6)
    };
    let samples = [diff.before.samples, diff.after.samples];
    let is_chance = |before: f64, after: f64| is_chance(before, after, samples);
    let may_be_chance = |(_, before, after): &(&str, Share, Share)| {
        is_chance(before.own, after.own) && is_chance(before.total, after.total)
    };
    rows.sort_by(|a, b| {
        let sure = may_be_chance(a).cmp(&may_be_chance(b));
        sure.then(change(b).total_cmp(&change(a))).then_with(|| a.0.cmp(b.0))
    });
    let [of_before, of_after] = [&diff.before, &diff.after].map(Stacks::whole_text);
    let mut out = format!("{of_before} before, {of_after} after; shares of the whole in percent");
    if samples.into_iter().all(|samples| samples > 0.0) {
        let [first, second] = samples;
        let _ = write!(out, "\n~: chance may do that with {first:.0} samples before and {second:.0} after");
    }
    let _ = writeln!(
        out,
        "\n{:>8}  {:>8} {:>8}  {:>8}  {:>8}  function",
        "self", "before", "after", "total", "after"
    );
    let mark = |before, after| if is_chance(before, after) { '~' } else { ' ' };
    for (name, before, after) in rows.into_iter().take(most) {
        let (own, total) = (100.0 * (after.own - before.own), 100.0 * (after.total - before.total));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{own:>+8.2}{} {:>8.2} {:>8.2}  {total:>+8.2}{} {:>8.2}  {}",
            mark(before.own, after.own),
            100.0 * before.own,
            100.0 * after.own,
            mark(before.total, after.total),
            100.0 * after.total,
            crate::names::printable(name)
        );
    }
    out
}
