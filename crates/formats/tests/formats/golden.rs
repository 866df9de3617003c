//! Output compared with `tests/data/<case>/<file>`; `SWIPR_BLESS=1` rewrites it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use serde_json::Value;
use swipr_formats::{Names, Options, Weight};

use crate::cases;
use swipr_properties::readers::pprof::{Profile, decode};
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
        ("pprof.txt", profile(&decode(&recording.write("pprof", options)))),
    ]
}

/// A profile with a line for each element of its lists.
fn profile(profile: &Profile) -> String {
    fn list<T: Debug>(name: &str, list: &[T]) -> String {
        list.iter().map(|element| format!("{name} {element:?}\n")).collect()
    }
    let Profile { time_nanos, duration_nanos, period_type, period, default_sample_type, .. } = profile;
    [
        list("sample_type", &profile.sample_type),
        list("sample", &profile.sample),
        list("mapping", &profile.mapping),
        list("location", &profile.location),
        list("function", &profile.function),
        list("string", &profile.string_table),
        list("comment", &profile.comment),
        list("period_type", period_type.as_slice()),
        format!("time {time_nanos} {duration_nanos}, period {period}, default {default_sample_type}\n"),
    ]
    .concat()
}

/// JSON with a line for each member and element, so that a difference is seen. What holds numbers
/// and texts alone is one line.
fn lines(json: &str) -> String {
    fn put(value: &Value, indent: usize, out: &mut String) {
        let is_flat = |value: &Value| !value.is_array() && !value.is_object();
        let (brackets, members): (_, Vec<(String, &Value)>) = match value {
            Value::Array(list) => ("[]", list.iter().map(|element| (String::new(), element)).collect()),
            Value::Object(members) => {
                ("{}", members.iter().map(|(name, value)| (format!("{name:?}: "), value)).collect())
            }
            _ => return out.push_str(&value.to_string()),
        };
        if members.iter().all(|(_, value)| is_flat(value)) {
            return out.push_str(&value.to_string());
        }
        out.push_str(&brackets[..1]);
        for (number, (name, value)) in members.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            *out += &format!("{comma}\n{:indent$}{name}", "", indent = indent + 2);
            put(value, indent + 2, out);
        }
        *out += &format!("\n{:indent$}{}", "", &brackets[1..]);
    }
    let mut out = String::new();
    put(&serde_json::from_str(json).unwrap(), 0, &mut out);
    out + "\n"
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
