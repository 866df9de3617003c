//! The counts of a recording in one line, for comments and headers.

use crate::model::Summary;

/// `threads=8 ticks=800 samples=793 missed=7 truncated=0 late=0 dropped=0`, and
/// `filled`, `inferred`, `cpu_wait_ns`, `unsampled_cpu_ns` where there is some.
///
/// No number stands after a blank: one reader takes such a comment line for a sample.
pub fn stats_line(summary: &Summary) -> String {
    let mut line = format!(
        "threads={} ticks={} samples={} missed={} truncated={} late={} dropped={}",
        summary.threads,
        summary.ticks,
        summary.samples,
        summary.missed,
        summary.truncated,
        summary.late,
        summary.dropped
    );
    let where_there_is_some = [
        ("filled", summary.filled),
        ("inferred", summary.inferred),
        ("cpu_wait_ns", summary.cpu_wait_ns),
        ("unsampled_cpu_ns", summary.unsampled_cpu_ns),
    ];
    for (name, number) in where_there_is_some.into_iter().filter(|&(_, number)| number > 0) {
        line.push_str(&format!(" {name}={number}"));
    }
    line
}

/// Whether anything that belongs to the recording is missing from it.
pub(crate) fn has_losses(summary: &Summary) -> bool {
    summary.missed > 0
        || summary.truncated > 0
        || summary.late > 0
        || summary.dropped > 0
        || summary.unsampled_cpu_ns > 0
}

/// Why a recording has no sample, in words.
pub(crate) fn why_empty(summary: &Summary) -> &'static str {
    if summary.ticks == 0 {
        "no tick happened: the recording was too short, or the agent could not run"
    } else if summary.dropped > 0 {
        "every sample was dropped: the output was read too slowly"
    } else if summary.threads == 0 {
        "no thread passed the filters"
    } else if summary.missed > 0 {
        "no thread could be reached"
    } else {
        "no thread used CPU time at a tick, or no stack passed the filters"
    }
}
