//! The counts of a recording in one line, for comments and headers.

use crate::model::{Cost, Summary};

/// `threads=8 ticks=800 samples=793 missed=7 truncated=3 late=0 dropped=0`, then what there is of
/// ` filtered=…`, ` filled=…`, ` inferred=…`, ` cpu_wait_ns=…`, ` unsampled_cpu_ns=…`, ` without_lines=…`, ` truncated_by=no-unwind-information:2,too-deep:1` and ` held_p50_ns=… held_p99_ns=…
/// sweep_p50_ns=… sweep_p99_ns=… agent_cpu_ns=…`.
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
        ("filtered", summary.filtered),
        ("filled", summary.filled),
        ("inferred", summary.inferred),
        ("cpu_wait_ns", summary.cpu_wait_ns),
        ("unsampled_cpu_ns", summary.unsampled_cpu_ns),
        ("without_lines", summary.without_lines),
    ];
    for (name, number) in where_there_is_some.into_iter().filter(|&(_, number)| number > 0) {
        line.push_str(&format!(" {name}={number}"));
    }
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

/// Why a recording has no sample, in words.
pub(crate) fn why_empty(summary: &Summary) -> &'static str {
    if summary.ticks == 0 {
        "no tick happened: the recording was too short, or the agent could not run"
    } else if summary.dropped > 0 {
        "every sample was dropped: the output was read too slowly"
    } else if summary.threads == 0 {
        "no thread passed the filters"
    } else if summary.filtered > 0 {
        "no sample passed the filters of states and frames"
    } else if summary.missed > 0 {
        "no thread could be reached"
    } else {
        "no thread used CPU time at a tick"
    }
}
