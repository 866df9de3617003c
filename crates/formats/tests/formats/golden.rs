//! Output compared with `tests/data/<case>/<file>`; `SWIPR_BLESS=1` rewrites it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use swipr_formats::{Names, Options, Weight};

use crate::cases;
use swipr_properties::readers::pprof::decode;
use swipr_properties::recording::Recording;

/// Compares each file of a case, and the list of files.
fn check(case: &str, files: &[(&str, String)]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(case);
    if std::env::var_os("SWIPR_BLESS").is_some() {
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    for (name, text) in files {
        let path = folder.join(name);
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(*text, golden, "{} differs", path.display());
    }
    let there: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected: BTreeSet<String> = files.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(there, expected, "files of {case}");
}

/// The recording in every format, with the same options.
fn all(recording: &Recording, options: &Options) -> Vec<(&'static str, String)> {
    vec![
        ("perf", recording.text("perf", options)),
        ("folded", recording.text("folded", options)),
        ("raw.jsonl", recording.text("raw", options)),
        ("dump.txt", recording.text("dump", options)),
        ("dump.json", recording.text("json", options)),
        ("firefox.json", lines(&recording.text("firefox", options))),
        ("speedscope.json", lines(&recording.text("speedscope", options))),
        ("pprof.txt", format!("{:#?}\n", decode(&recording.write("pprof", options)))),
    ]
}

/// JSON with a line for each member and element, so that a difference is seen.
fn lines(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    format!("{value:#}\n")
}

#[test]
fn everything_with_default_options() {
    check("everything", &all(&cases::everything(), &Options::default()));
}

#[test]
fn everything_with_lines_raw_names_and_a_title() {
    let options = Options {
        lines: true,
        names: Names::Raw,
        title: Some("release\n2".to_owned()),
        ..Options::default()
    };
    check("lines_and_raw_names", &all(&cases::everything(), &options));
}

#[test]
fn everything_without_inlines_and_with_threads_merged() {
    let options = Options { inline: false, merge_threads: true, ..Options::default() };
    check("merged", &all(&cases::everything(), &options));
}

#[test]
fn swift_profile_recorders_shape() {
    let options = Options { compat: true, lines: true, ..Options::default() };
    let perf = cases::everything().text("perf", &options);
    check("compat", &[("perf", perf)]);
}

#[test]
fn cpu_time_in_nanoseconds() {
    let options = Options { weight: Some(Weight::Nanoseconds), ..Options::default() };
    check("cpu", &all(&cases::cpu(), &options));
}

#[test]
fn a_deep_stack_is_cut_in_the_middle() {
    let options = Options { max_depth: Some(5), ..Options::default() };
    check("deep", &all(&cases::deep(), &options));
}

#[test]
fn an_empty_recording_says_why() {
    check("empty", &all(&cases::empty(), &Options::default()));
}
