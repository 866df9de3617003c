//! `/metrics`: the figures of `/status` in Prometheus' text format 0.0.4. `families.rs` says which
//! figure of `/status` becomes which metric; the histograms, of which `/status` has only
//! percentiles, come from the counters.

mod families;
#[cfg(test)]
mod tests;

use crate::counters::AgentCounters;
use crate::histogram::Histogram;
use families::{FAMILIES, Family, HISTOGRAMS, Source};
use serde_json::Value;
use std::fmt::Write;

/// The range of the histograms' buckets. No handler or sweep is shorter than the first or, unless
/// something is wrong, longer than the last.
const BUCKETS_NS: std::ops::RangeInclusive<u64> = 250..=(1 << 34);

const OFF_HELP: &str = "1: the agent has turned itself off; /status says why.";

/// The whole text, from what `/status` says at the same moment.
pub fn text(status: &Value, counters: &AgentCounters) -> String {
    let mut out = String::new();
    let version = status.get("version").and_then(Value::as_str).unwrap_or_default();
    head(&mut out, "swipr_build_info", "gauge", "The agent's version, as a label.");
    line(&mut out, "swipr_build_info", "", &[("version", version)], 1.0);
    let off = status.get("off").is_some_and(Value::is_string);
    head(&mut out, "swipr_off", "gauge", OFF_HELP);
    line(&mut out, "swipr_off", "", &[], f64::from(u8::from(off)));
    for family in FAMILIES {
        head(&mut out, family.name, family.kind.name(), family.help);
        family.sources.iter().for_each(|source| samples(&mut out, family, source, status));
    }
    for (name, help, histogram) in HISTOGRAMS {
        head(&mut out, name, "histogram", help);
        buckets(&mut out, name, histogram(counters));
    }
    out
}

/// A figure that is not known now (the symbolizer is busy, and the server does not wait for it) is
/// left out: a gap, and no 0.
fn samples(out: &mut String, family: &Family, source: &Source, status: &Value) {
    let label = |value| [(family.label, value)];
    match status.pointer(source.at) {
        Some(Value::Number(number)) => {
            let labels = label(source.label_value);
            let labels = if family.label.is_empty() { &[][..] } else { &labels };
            line(out, family.name, "", labels, family.value(number.as_f64().unwrap_or(0.0)));
        }
        Some(Value::Array(list)) => line(out, family.name, "", &[], list.len() as f64),
        Some(Value::Object(members)) => {
            for (name, number) in members {
                line(out, family.name, "", &label(name), family.value(number.as_f64().unwrap_or(0.0)));
            }
        }
        _ => {}
    }
}

fn buckets(out: &mut String, name: &str, histogram: &Histogram) {
    let counts = histogram.counts();
    let mut all = 0;
    for (end_ns, count) in counts.cumulative() {
        all = count;
        if BUCKETS_NS.contains(&end_ns) {
            line(out, name, "_bucket", &[("le", &seconds(end_ns).to_string())], count as f64);
        }
    }
    line(out, name, "_bucket", &[("le", "+Inf")], all as f64);
    line(out, name, "_sum", &[], seconds(counts.sum_ns));
    line(out, name, "_count", &[], all as f64);
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// The labels' values are the agent's own: nothing in them needs an escape.
fn line(out: &mut String, name: &str, suffix: &str, labels: &[(&str, &str)], value: f64) {
    let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(out, "{name}{suffix}{labels} {value}");
}
