//! The list of formats.

use std::collections::BTreeSet;

use swipr_formats::{FORMATS, Options, find};

use crate::cases;

#[test]
fn formats_are_found_by_name_and_alias_in_any_case() {
    for (asked, name) in [
        ("perf", "perf"),
        ("PERFSYMBOLIZED", "perf"),
        ("perf-script", "perf"),
        ("flamegraphCollapsedSymbolized", "folded"),
        ("collapsed", "folded"),
        ("pprofSymbolized", "pprof"),
        ("Raw", "raw"),
        ("dump", "dump"),
        ("json", "json"),
    ] {
        assert_eq!(find(asked).map(|info| info.name), Some(name), "{asked}");
    }
    assert!(find("").is_none() && find("perf ").is_none());
}

#[test]
fn no_name_or_suffix_means_two_formats() {
    let mut names = BTreeSet::new();
    let mut suffixes = BTreeSet::new();
    for info in FORMATS {
        assert!(suffixes.insert(info.suffix), "{}", info.suffix);
        for name in info.aliases.iter().chain([&info.name]) {
            assert!(names.insert(name.to_ascii_lowercase()), "{name}");
        }
    }
}

#[test]
fn formats_that_stream_write_each_sample_and_the_others_none() {
    let recording = cases::cpu();
    for info in FORMATS {
        let mut writer = (info.make)(&Options::default());
        writer.begin(&recording.header, &mut Vec::new());
        for owned in &recording.samples {
            let mut out = Vec::new();
            writer.sample(&owned.as_sample(), &mut out);
            assert_eq!(!out.is_empty(), info.streams, "{}", info.name);
        }
    }
}
