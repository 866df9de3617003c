//! `/metrics`: the agent's figures in Prometheus' text format 0.0.4, and its histograms.

#[cfg(test)]
mod tests;

use super::figures::{FIGURES, Figure, HISTOGRAMS, Metric, Snapshot, seconds};
use crate::histogram::Histogram;
use serde_json::Value;
use std::fmt::Write;
use swipr_formats::Decimal;
use swipr_os::disabled;

/// The range of the histograms' buckets. No handler or sweep is shorter than the first or, unless
/// something is wrong, longer than the last.
const BUCKETS_NS: std::ops::RangeInclusive<u64> = 250..=(1 << 34);

const OFF_HELP: &str = "1: the agent has turned itself off; /status says why.";

/// The whole text.
pub fn text(now: &Snapshot<'_>) -> String {
    let mut out = String::new();
    head(&mut out, "swipr_build_info", "gauge", "The agent's version, as a label.");
    line(&mut out, "swipr_build_info", "", &[("version", env!("CARGO_PKG_VERSION"))], whole(1));
    head(&mut out, "swipr_off", "gauge", OFF_HELP);
    line(&mut out, "swipr_off", "", &[], whole(disabled::reason().is_some().into()));
    let mut last = "";
    for figure in FIGURES {
        let Some(metric) = &figure.metric else { continue };
        if metric.name != last {
            head(&mut out, metric.name, metric.kind.name(), metric.help);
            last = metric.name;
        }
        samples(&mut out, figure, metric, (figure.value)(now));
    }
    for (name, help, histogram) in HISTOGRAMS {
        head(&mut out, name, "histogram", help);
        buckets(&mut out, name, histogram(now.counters()));
    }
    out
}

/// A figure that is not known now is left out: a gap, and no 0.
fn samples(out: &mut String, figure: &Figure, metric: &Metric, value: Value) {
    let label = |value| [(metric.label, value)];
    let value_of = |number: &Value| figure.base_unit(number.as_u64().unwrap_or(0));
    match &value {
        Value::Number(_) => {
            let labels = label(metric.label_value);
            let labels = if metric.label.is_empty() { &[][..] } else { &labels };
            line(out, metric.name, "", labels, value_of(&value));
        }
        Value::Array(list) => line(out, metric.name, "", &[], whole(list.len() as u64)),
        Value::Object(members) => {
            for (name, number) in members {
                line(out, metric.name, "", &label(name), value_of(number));
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
            line(out, name, "_bucket", &[("le", &seconds(end_ns).to_string())], whole(count));
        }
    }
    line(out, name, "_bucket", &[("le", "+Inf")], whole(all));
    line(out, name, "_sum", &[], seconds(counts.sum_ns));
    line(out, name, "_count", &[], whole(all));
}

fn whole(number: u64) -> Decimal {
    Decimal::new(number, 0)
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a String cannot fail.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// The labels' values are the agent's own: nothing in them needs an escape.
fn line(out: &mut String, name: &str, suffix: &str, labels: &[(&str, &str)], value: Decimal) {
    let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(out, "{name}{suffix}{labels} {value}");
}
