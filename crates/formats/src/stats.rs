//! The counts of a recording in one line, for comments and headers; and such a line read again.

use crate::model::{Cost, Summary};

/// `threads=8 ticks=800 samples=793 truncated=3 late=0 dropped=0`, then what there is of
/// ` filtered=…`, ` filled=…`, ` inferred=…`, ` cpu_wait_ns=…`, ` unsampled_cpu_ns=…`, `
/// at_most_hz=…`, ` without_lines=…`, ` truncated_by=no-unwind-information:2,too-deep:1` and `
/// held_p50_ns=… held_p99_ns=… sweep_p50_ns=… sweep_p99_ns=… agent_cpu_ns=…`. What nobody counted
/// is left out, and ` uncounted=1` says so.
///
/// No number stands after a blank: one reader takes such a comment line for a sample.
pub fn stats_line(summary: &Summary) -> String {
    let is_written = |&(name, number): &(&str, u64)| match name {
        "duration_ns" => false,
        "threads" | "samples" => true,
        "ticks" | "truncated" | "late" | "dropped" => number > 0 || summary.uncounted == 0,
        _ => number > 0,
    };
    let kept = Some(("kept_ns", summary.duration_ns)).filter(|_| summary.asked_ns > 0);
    let counts = summary.counts().filter(is_written).chain(kept);
    let mut line = counts.map(|(name, number)| format!("{name}={number}")).collect::<Vec<_>>().join(" ");
    if !summary.truncated_by.is_empty() {
        let reasons: Vec<String> = summary
            .truncated_by
            .iter()
            .map(|(reason, count)| format!("{}:{count}", reason.replace(' ', "-")))
            .collect();
        line.push_str(&format!(" truncated_by={}", reasons.join(",")));
    }
    for (name, ns) in summary.cost.iter().flat_map(Cost::fields) {
        line.push_str(&format!(" {name}={ns}"));
    }
    line
}

/// The losses in such a line; none where it is something else.
pub fn read_stats_line(line: &str) -> Option<Summary> {
    let mut summary = Summary::default();
    for field in line.starts_with("threads=").then(|| line.split(' '))? {
        let (name, value) = field.split_once('=')?;
        if let Some(count) = summary.count_mut(name) {
            *count = value.parse().ok()?;
        }
    }
    Some(summary)
}

/// Why a recording has no sample, in words.
pub(crate) fn why_empty(summary: &Summary) -> &'static str {
    if summary.is_starved() {
        "the agent got too little CPU time to sample the threads"
    } else if summary.ticks == 0 {
        "no tick happened: the recording was too short, or the agent could not run"
    } else if summary.dropped > 0 {
        "every sample was dropped: the output was read too slowly"
    } else if summary.threads == 0 {
        "no thread passed the filters"
    } else if summary.filtered > 0 {
        "no sample passed the filters of states and frames"
    } else {
        "no thread used CPU time at a tick"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recording that was converted had `late=0` where 20 ticks were late.
    #[test]
    fn a_line_is_read_as_it_was_written_and_what_nobody_counted_is_not_in_it() {
        let mut summary = Summary { threads: 3, ticks: 100, samples: 290, late: 20, ..Summary::default() };
        summary.truncated_by = vec![("too deep".into(), 2)];
        let line = stats_line(&summary);
        summary.truncated_by.clear();
        assert_eq!(read_stats_line(&line).as_ref(), Some(&summary));
        summary.uncounted = 1;
        assert_eq!(stats_line(&summary), "threads=3 ticks=100 samples=290 late=20 uncounted=1");
        assert_eq!(read_stats_line(&stats_line(&summary)).as_ref(), Some(&summary));
        assert_eq!(read_stats_line("threads=many"), None);
        assert_eq!(read_stats_line("title: an app"), None);
    }

    /// Said "no thread used CPU time" of 10 ticks with 2,990 late ones.
    #[test]
    fn an_agent_without_a_cpu_is_told_from_threads_that_used_none() {
        let why = |ticks, late, duration_ns| {
            why_empty(&Summary { threads: 1, ticks, late, duration_ns, ..Summary::default() })
        };
        for (ticks, late) in [(10, 2_990), (0, 0)] {
            assert!(why(ticks, late, 30_000_000_000).starts_with("the agent got too little CPU time"));
        }
        assert!(why(0, 0, 5_000_000).starts_with("no tick happened"));
        assert!(why(3_000, 10, 30_000_000_000).starts_with("no thread used CPU time"));
    }
}
