use super::*;
use crate::agent::Agent;
use crate::config::Config;
use crate::generated::assert_generated;
use std::collections::BTreeMap;

const PAGE: &str = "docs/http.md";

/// `name{labels}` and value of every sample, after a check of each line by the rules of the format.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut family = "";
    let mut helped = "";
    let mut found = BTreeMap::new();
    assert!(text.ends_with('\n'), "the last line must end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(is_name(name) && !help.is_empty() && !help.contains('\\'), "{line}");
            helped = name;
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, helped);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kinds.insert(name, kind), None, "{name} stands twice");
            assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            family = name;
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let suffixes: &[&str] =
                if kinds[family] == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(
                suffixes.iter().any(|suffix| name == format!("{family}{suffix}")),
                "{line} is not of {family}"
            );
            for label in labels.strip_suffix('}').unwrap().split(',').filter(|label| !label.is_empty()) {
                let (name, value) = label.split_once('=').unwrap();
                let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap();
                assert!(is_name(name) && !value.contains(['"', '\\']), "{line}");
            }
            let value: f64 = value.parse().unwrap();
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert_eq!(found.insert(series.to_string(), value), None, "{series} stands twice");
        }
    }
    found
}

fn metrics(agent: &Agent) -> BTreeMap<String, f64> {
    parsed(&text(&Snapshot::of(agent)))
}

/// The upper ends and counts of a histogram's buckets.
fn buckets(metrics: &BTreeMap<String, f64>, name: &str) -> Vec<(f64, f64)> {
    let start = format!("{name}_bucket{{le=\"");
    let bucket = |(series, count): (&String, &f64)| {
        let end = series.strip_prefix(&start)?.strip_suffix("\"}")?;
        Some((end.parse().unwrap(), *count))
    };
    let mut buckets: Vec<(f64, f64)> = metrics.iter().filter_map(bucket).collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    buckets
}

#[test]
fn a_histogram_is_cumulative_and_ends_with_its_count() {
    let agent = Agent::new(&Config::default());
    for ns in [0, 1, 255, 256, 1000, 1000, 5_000_000, u64::MAX >> 8] {
        agent.counters.held.add(ns);
    }
    let metrics = metrics(&agent);
    let buckets = buckets(&metrics, "swipr_hold_seconds");
    assert!(buckets.len() > 20 && buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1));
    assert_eq!(buckets.last(), Some(&(f64::INFINITY, 8.0)));
    assert_eq!(metrics["swipr_hold_seconds_count"], 8.0);
    let below = |seconds: f64| buckets.iter().rfind(|bucket| bucket.0 <= seconds).unwrap().1;
    assert_eq!((below(2.55e-7), below(5.11e-7), below(1.1e-6), below(0.01)), (3.0, 4.0, 6.0, 7.0));
}

#[test]
fn counts_stay_when_their_recording_ends() {
    let agent = Agent::new(&Config::default());
    let counters = std::sync::Arc::<crate::counters::RecordingCounters>::default();
    let running = crate::agent::Running {
        id: 7,
        id_of_client: None,
        stop: Default::default(),
        counters: counters.clone(),
    };
    agent.running.lock().unwrap().push(running);
    counters.dropped.add(3);
    counters.late.add(2);
    counters.unsampled_cpu_ns.add(1_500_000_000);
    let dropped = "swipr_samples_lost_total{reason=\"dropped\"}";
    let running = metrics(&agent);
    agent.forget(7);
    let ended = metrics(&agent);
    assert_eq!((running["swipr_recordings_running"], ended["swipr_recordings_running"]), (1.0, 0.0));
    for metrics in [&running, &ended] {
        assert_eq!((metrics[dropped], metrics["swipr_ticks_late_total"]), (3.0, 2.0));
        assert_eq!(metrics["swipr_unsampled_cpu_seconds_total"], 1.5);
    }
}

/// Figures that are no metrics: identities, and percentiles of what are histograms.
const NOT_METRICS: [&str; 4] = ["pid", "not_listening", "held", "sweep"];

#[test]
fn every_number_of_status_is_a_metric() {
    let agent = Agent::new(&Config::default());
    let now = Snapshot::of(&agent);
    for figure in FIGURES {
        let value = (figure.value)(&now);
        let is_number = value.is_number() || value.is_array() || value.is_object();
        let is_metric = figure.metric.is_some();
        assert_eq!(is_number && !NOT_METRICS.contains(&figure.at), is_metric, "{}", figure.at);
    }
}

#[test]
fn the_metrics_in_the_documentation_are_the_list() {
    let mut table = String::from("| metric | type | labels | meaning |\n|---|---|---|---|\n");
    table += "| `swipr_build_info` | gauge | `version` | The agent's version, as a label. |\n";
    table += &format!("| `swipr_off` | gauge |  | {OFF_HELP} |\n");
    let mut metrics: Vec<_> = FIGURES.iter().filter_map(|figure| figure.metric.as_ref()).collect();
    metrics.dedup_by_key(|metric| metric.name);
    for Metric { name, kind, help, label, .. } in metrics {
        let label = if label.is_empty() { String::new() } else { format!("`{label}`") };
        let _ = writeln!(table, "| `{name}` | {} | {label} | {help} |", kind.name());
    }
    for (name, help, _) in HISTOGRAMS {
        let _ = writeln!(table, "| `{name}` | histogram | `le` | {help} |");
    }
    assert_generated(PAGE, "metrics: generated", &table);
}
