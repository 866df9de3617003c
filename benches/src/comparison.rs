//! Two stacks of the same moment, frame by frame, and what a whole run of comparisons found.
//!
//! The run's figures travel from the profiled program to the bench as text, `key value` a line.

use crate::figures::Series;
use std::collections::BTreeMap;
use swipr_unwind::frames::{BEFORE_ELIDED, CAPACITY, EXACT};

/// Where two stacks part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// They do not: every kept frame is equal.
    None,
    /// At this frame (0: innermost) they have different addresses.
    At(usize),
    /// Equal, but swipr's stack ends here and the other continues.
    OursEnds(usize),
    /// Equal, but the other ends here and swipr's stack continues.
    OtherEnds(usize),
}

/// Compares swipr's kept frames of `total` (see [`swipr_unwind::frames::kept`]) with the whole
/// stack of a peer.
pub fn compare(ours: &[u64], total: usize, other: &[u64]) -> Difference {
    let plain = |frame: u64| frame & !EXACT;
    let elided = total.saturating_sub(CAPACITY);
    let place = |n: usize| if n < BEFORE_ELIDED { n } else { n + elided };
    for (n, &frame) in ours.iter().enumerate() {
        match other.get(place(n)) {
            Some(&same) if same == plain(frame) => {}
            Some(_) => return Difference::At(place(n)),
            None => return Difference::OtherEnds(place(n)),
        }
    }
    if other.len() > total { Difference::OursEnds(total) } else { Difference::None }
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    counts: BTreeMap<String, u64>,
    reasons: BTreeMap<String, u64>,
}

/// The ways to walk that are timed, ours first. pprof-rs walks by the `backtrace` crate, which is
/// libgcc's unwinder, gperftools by `unw_step`.
pub const WAYS: [&str; 5] = ["swipr", "framehop", "`unw_backtrace`", "`backtrace` crate", "`unw_step`"];

impl Findings {
    /// Counts one more of `key`, which has no line break.
    pub fn count(&mut self, key: &str) {
        *self.counts.entry(key.into()).or_default() += 1;
    }

    /// Sets a figure.
    pub fn set(&mut self, key: &str, value: u64) {
        self.counts.insert(key.into(), value);
    }

    /// Sets a median and a 99th percentile.
    pub fn set_series(&mut self, key: &str, series: &Series) {
        if !series.is_empty() {
            self.set(&format!("{key} p50"), series.median() as u64);
            self.set(&format!("{key} p99"), series.percentile(0.99) as u64);
        }
    }

    /// Counts a disagreement or an incomplete stack, in words.
    pub fn reason(&mut self, reason: String) {
        *self.reasons.entry(reason).or_default() += 1;
    }

    /// A figure; 0 if it was never set.
    pub fn get(&self, key: &str) -> u64 {
        self.counts.get(key).copied().unwrap_or(0)
    }

    /// Reasons with how often they were seen, the most frequent first.
    pub fn reasons(&self) -> Vec<(&str, u64)> {
        let mut reasons: Vec<(&str, u64)> =
            self.reasons.iter().map(|(key, &value)| (key.as_str(), value)).collect();
        reasons.sort_by_key(|&(_, value)| std::cmp::Reverse(value));
        reasons
    }

    /// As text.
    pub fn text(&self) -> String {
        let line = |kind: char, (key, value): (&String, &u64)| format!("{kind} {value} {key}\n");
        let counts = self.counts.iter().map(|pair| line('c', pair));
        counts.chain(self.reasons.iter().map(|pair| line('r', pair))).collect()
    }

    /// From text; lines that are not understood are left out.
    pub fn parse(text: &str) -> Findings {
        let mut findings = Findings::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ' ');
            let (kind, value, key) = (fields.next(), fields.next(), fields.next());
            let (Some(value), Some(key)) = (value.and_then(|value| value.parse().ok()), key) else {
                continue;
            };
            match kind {
                Some("c") => _ = findings.counts.insert(key.into(), value),
                Some("r") => _ = findings.reasons.insert(key.into(), value),
                _ => {}
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_equal_only_if_every_frame_is() {
        assert_eq!(compare(&[1 | EXACT, 2, 3], 3, &[1, 2, 3]), Difference::None);
        assert_eq!(compare(&[1 | EXACT, 2, 3], 3, &[1, 9, 3]), Difference::At(1));
        assert_eq!(compare(&[1, 2], 2, &[1, 2, 3]), Difference::OursEnds(2));
        assert_eq!(compare(&[1, 2, 3], 3, &[1, 2]), Difference::OtherEnds(2));
    }

    #[test]
    fn of_deep_stacks_both_kept_ends_are_compared() {
        let total = 3000;
        let other: Vec<u64> = (0..total as u64).collect();
        let mut ours: Vec<u64> = (0..512).chain(total as u64 - 512..total as u64).collect();
        assert_eq!(compare(&ours, total, &other), Difference::None);
        ours[512] += 1;
        assert_eq!(compare(&ours, total, &other), Difference::At(total - 512));
    }

    #[test]
    fn findings_survive_the_way_as_text() {
        let mut findings = Findings::default();
        findings.count("samples");
        findings.count("samples");
        findings.reason("ours ends in libx.so+0x10: no unwind information".into());
        findings.set_series("depth", &[3.0, 1.0, 2.0].into_iter().collect());
        let read = Findings::parse(&findings.text());
        assert_eq!((read.get("samples"), read.get("depth p50"), read.get("none")), (2, 2, 0));
        assert_eq!(read.reasons(), [("ours ends in libx.so+0x10: no unwind information", 1)]);
    }
}
