//! Perf script text, read strictly.

use swipr_formats::Options;
use swipr_properties::readers::perf::read;

use crate::cases;

#[test]
fn samples_carry_time_period_event_and_addresses() {
    let samples = read(&cases::cpu().text("perf", &Options::default()));
    let [first, second, _] = samples.as_slice() else {
        panic!("{samples:?}");
    };
    assert_eq!(first.comm, "app");
    assert_eq!(first.time, "1700000000.000000005");
    assert_eq!(second.time, "1700000000.010000005");
    assert_eq!((first.period, second.period), (9_999_999, 1));
    assert_eq!(first.event, "cpu-clock");
    assert_eq!(first.frames[0].address, 0x1100);
    assert_eq!(first.frames[0].symbol, "hot+0x1");
    assert_eq!(first.frames[0].module, "/usr/bin/app");
}

#[test]
fn every_sample_of_a_stream_has_the_same_event() {
    let samples = read(&cases::everything().text("perf", &Options::default()));
    assert_eq!(samples.len(), 6);
    assert!(samples.iter().all(|sample| sample.event == "wall-clock"));
}

#[test]
fn the_text_begins_with_a_sample_line_or_the_whole_header() {
    let text = cases::everything().text("perf", &Options::default());
    assert!(text.starts_with("app 77/77 1700000000."), "{text}");
    let text = cases::empty().text("perf", &Options::default());
    assert!(text.starts_with("# ========\n# "), "{text}");
    assert!(text.ends_with("\n# ========\n#\n"), "{text}");
    assert!(text.contains("threads=3 ticks=100"), "{text}");
    assert!(text.contains("late=300"), "{text}");
}

#[test]
fn the_figures_follow_the_last_sample() {
    let text = cases::everything().text("perf", &Options::default());
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("# swipr: ") && last.contains("truncated=1 "), "{last}");
    assert!(last.contains(" truncated_by=no-unwind-information:1 held_p50_ns=1023 "), "{last}");
    // Its one reader that matters is another program's.
    let options = Options { compat: true, ..Options::default() };
    let text = cases::everything().text("perf", &options);
    assert!(!text.contains('#'), "{text}");
}
