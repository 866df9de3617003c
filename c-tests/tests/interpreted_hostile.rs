//! Programs whose functions have hostile names, as far as their language allows it: lines, markup,
//! control characters, marks that turn text, 10 KB, bytes that are no UTF-8. Each format's reader
//! finds these functions in their order, and nothing that they made up.

use serde_json::Value;
use std::path::Path;
use swipr_c_tests::host::Host;
use swipr_c_tests::http;
use swipr_c_tests::interpreted::{interpreters, pythons, start};
use swipr_properties::readers::folded::parse_folded;
use swipr_properties::readers::{flamegraph, perf, pprof, viewers};

const FORMATS: [&str; 10] =
    ["perf", "folded", "pprof", "firefox", "speedscope", "svg", "html", "raw", "dump", "json"];

/// `None`: the program got no CPU for as long as the recording took; the machine is loaded.
fn profile(host: &Host, format: &str) -> Option<Vec<u8>> {
    let target = format!("/profile?samples=50&hz=200&mode=cpu&format={format}");
    let answer = http::get(&host.socket(), &target).and_then(http::Answer::read_all).expect("an answer");
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status == 200 || text.starts_with("no sample was taken"), "{format}: {text}");
    (answer.status == 200).then_some(answer.body)
}

fn names_of(frames: &Value) -> Vec<String> {
    let name = |frame: &Value| frame["functions"][0]["name"].as_str().unwrap_or("").to_owned();
    frames.as_array().expect("frames").iter().rev().map(name).collect()
}

/// The stacks in bytes of that format, root first, read strictly; of a picture, all its names.
fn stacks(format: &str, bytes: &[u8]) -> Vec<Vec<String>> {
    let text = || std::str::from_utf8(bytes).expect("UTF-8");
    let drawn = |all: Vec<viewers::Weighted>| all.into_iter().map(|each| each.stack).collect();
    match format {
        "perf" => {
            let samples = perf::read(text());
            let collapsed = flamegraph::collapse(text());
            assert!(!collapsed.is_empty() && collapsed.len() <= samples.len());
            let symbol = |frame: &perf::PerfFrame| frame.symbol.clone();
            samples.iter().map(|sample| sample.frames.iter().rev().map(symbol).collect()).collect()
        }
        "folded" => parse_folded(text()).into_iter().map(|(stack, _)| stack).collect(),
        "pprof" => {
            let profile = pprof::decode(bytes);
            let names = |sample| profile.frames(sample).into_iter().rev().map(str::to_owned).collect();
            profile.sample.iter().map(names).collect()
        }
        "firefox" => drawn(viewers::firefox(text())),
        "speedscope" => drawn(viewers::speedscope(text())),
        "html" => drawn(viewers::html(text())),
        // Boxes as they are written: a parent, then what is in it.
        "svg" => vec![viewers::svg(text()).1.into_iter().map(|(name, _)| name).collect()],
        "raw" => {
            let lines = text().lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
            lines.filter(|line| line["type"] == "stack").map(|line| names_of(&line["frames"])).collect()
        }
        "json" => {
            let dump: Value = serde_json::from_str(text()).expect("JSON");
            dump["samples"].as_array().expect("samples").iter().map(|s| names_of(&s["frames"])).collect()
        }
        "dump" => {
            let of_thread = |lines: &str| {
                let frames = lines.lines().filter_map(|line| line.strip_prefix("  #")?.get(4..));
                let names = frames.map(|rest| rest.split_once(' ').map_or(rest, |(_, name)| name).to_owned());
                names.collect::<Vec<_>>().into_iter().rev().collect()
            };
            text().split("\n\"").skip(1).map(of_thread).collect()
        }
        other => panic!("{other}"),
    }
}

/// The digit of a name `h0_…`.
fn tag(name: &str) -> Option<char> {
    let name = name.trim_start_matches("main::").trim_start_matches("Object#");
    let mut characters = name.strip_prefix('h')?.chars();
    characters.next().filter(char::is_ascii_digit).filter(|_| characters.next() == Some('_'))
}

fn is_harmful(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `tags`: the digits of the names that the program can have, in the order of the calls.
fn expect_names(interpreter: &Path, script: &str, tags: &str) {
    let host = start(interpreter, script, &[]);
    let has_tags =
        |stack: &Vec<String>| stack.iter().filter_map(|name| tag(name)).collect::<String>() == tags;
    for format in FORMATS {
        let what = format!("{}, {format}", interpreter.display());
        let mut found = vec![];
        for _ in 0..20 {
            found.extend(profile(&host, format).map(|bytes| stacks(format, &bytes)).into_iter().flatten());
            if found.iter().any(has_tags) {
                break;
            }
        }
        assert!(found.iter().any(has_tags), "{what}: no stack has {tags}: {:?}", found.last());
        for name in found.iter().flatten() {
            assert!(!name.starts_with("pwned") && !name.starts_with("evil"), "{what}: {name}");
            let is_text = matches!(format, "raw" | "json");
            assert!(is_text || !name.contains(is_harmful), "{what}: {name:?}");
        }
    }
}

#[test]
fn names_of_python_stay_in_their_places() {
    for (_, python) in [8, 11, 13].into_iter().flat_map(|minor| pythons(minor..=minor)) {
        expect_names(&python, "hostile_names.py", "012345678");
    }
}

#[test]
fn names_of_perl_stay_in_their_places() {
    for perl in interpreters("perl", "PERLS") {
        expect_names(&perl, "hostile_names.pl", "012345678");
    }
}

#[test]
fn names_of_php_stay_in_their_places() {
    for php in interpreters("php", "PHPS") {
        expect_names(&php, "hostile_names.php", "235");
    }
}

#[test]
fn names_of_ruby_stay_in_their_places() {
    for ruby in interpreters("ruby", "RUBIES") {
        expect_names(&ruby, "hostile_names.rb", "235");
    }
}

#[test]
fn names_of_javascript_stay_in_their_places() {
    for node in interpreters("node", "NODES") {
        expect_names(&node, "hostile_names.js", "012345678");
    }
}
