//! The requests that Grafana Alloy's and Parca's scrapers send to a Go program, sent to a program
//! with the agent: the answers have everything that these scrapers require.

use std::path::Path;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::Host;
use swipr_c_tests::http;
use swipr_c_tests::program::Program;
use swipr_properties::readers::pprof::{Profile, decode};

/// A profile, by the rules of both: status and type; packed once, by gzip, and not by HTTP too; a
/// decoder that is as strict as theirs.
fn scraped(socket: &Path, target: &str) -> Profile {
    let answer = http::get(socket, target).and_then(http::Answer::read_all).expect(target);
    assert_eq!(answer.status, 200, "{target}: {}", String::from_utf8_lossy(&answer.body));
    assert_eq!(answer.field("content-type"), Some("application/octet-stream"), "{target}");
    assert_eq!(answer.field("content-encoding"), None, "{target}");
    assert_eq!(answer.field("x-content-type-options"), Some("nosniff"), "{target}");
    assert!(answer.body.starts_with(&[0x1f, 0x8b]), "{target} is gzip'd");
    decode(&answer.body)
}

fn types(profile: &Profile) -> Vec<(&str, &str)> {
    let text = |id| profile.string(id);
    profile.sample_type.iter().map(|each| (text(each.kind), text(each.unit))).collect()
}

#[test]
fn scrapers_find_what_they_check_at_the_endpoints_that_they_ask_by_default() {
    let directory = Directory::new();
    let host = Host::start(&Program::compile("cpu_and_wall", directory.path()));
    let socket = host.socket();
    // Alloy requests a second less than its interval, Parca its own time; both as numbers.
    let cpu = scraped(&socket, "/debug/pprof/profile?seconds=1");
    assert_eq!(types(&cpu), [("samples", "count"), ("cpu", "nanoseconds")]);
    assert_eq!(cpu.string(cpu.period_type.as_ref().expect("a type").kind), "cpu");
    // A profile that has lasted no time is refused.
    assert!(cpu.period > 0 && cpu.time_nanos > 0 && cpu.duration_nanos >= 500_000_000, "{cpu:?}");
    assert!(!cpu.sample.is_empty() && !cpu.mapping.is_empty());
    let wall = scraped(&socket, "/debug/fgprof?seconds=1");
    assert_eq!(types(&wall)[1], ("wall", "nanoseconds"));
    let threads = scraped(&socket, "/debug/pprof/goroutine");
    assert_eq!(types(&threads), [("goroutine", "count")]);
    assert!(threads.sample.iter().all(|sample| sample.value[0] > 0), "{threads:?}");
    host.end();
}

#[test]
fn scrapers_are_refused_in_gos_way() {
    let directory = Directory::new();
    let host = Host::start(&Program::compile("cpu_and_wall", directory.path()));
    for target in ["/debug/pprof/profile?hz=0", "/debug/pprof/goroutine?threads=("] {
        let answer = http::get(&host.socket(), target).and_then(http::Answer::read_all).expect(target);
        assert_eq!((answer.status, answer.field("x-go-pprof")), (400, Some("1")), "{target}");
        assert_eq!(answer.field("content-type"), Some("text/plain; charset=utf-8"), "{target}");
        assert_eq!(String::from_utf8_lossy(&answer.body).lines().count(), 1, "{target}");
    }
    host.end();
}
