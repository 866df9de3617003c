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
    rows.sort_by(|a, b| change(b).total_cmp(&change(a)).then_with(|| a.0.cmp(b.0)));
    let mut out = format!(
        "{} before, {} after; shares of the whole in percent\n{:>8} {:>8} {:>8}  {:>8} {:>8}  function\n",
        diff.before.whole_text(),
        diff.after.whole_text(),
        "self",
        "before",
        "after",
        "total",
        "after"
    );
    for (name, before, after) in rows.into_iter().take(most) {
        let (own, total) = (100.0 * (after.own - before.own), 100.0 * (after.total - before.total));
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{own:>+8.2} {:>8.2} {:>8.2}  {total:>+8.2} {:>8.2}  {}",
            100.0 * before.own,
            100.0 * after.own,
            100.0 * after.total,
            crate::names::printable(name)
        );
    }
    out
}
