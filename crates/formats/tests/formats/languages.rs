//! Every format that can say it says of a function which language it is written in.

use serde_json::Value;
use std::collections::BTreeSet;
use swipr_formats::Options;
use swipr_formats::model::{FrameKind, Language, Mode, State};
use swipr_properties::readers::perf::read;
use swipr_properties::readers::pprof::decode;
use swipr_properties::readers::viewers::html_data;
use swipr_properties::recording::{Recording, at, bare, function, module, native, stack, thread};

/// What formats call the languages: the word of those for programs, the word of those for people.
const LANGUAGES: [(Language, &str, &str); Language::ALL.len()] = [
    (Language::Python, "python", "Python"),
    (Language::Perl, "perl", "Perl"),
    (Language::Php, "php", "PHP"),
    (Language::Ruby, "ruby", "Ruby"),
    (Language::JavaScript, "javascript", "JavaScript"),
    (Language::Java, "java", "Java"),
];

/// One stack: of each language a function `in_WORD` with a file and a function `built_in_WORD`
/// without, below the native `evaluate`; all of a language have the address of its evaluator.
fn recording() -> Recording {
    let mut frames = vec![];
    for (number, (language, word, _)) in LANGUAGES.into_iter().enumerate() {
        let address = 0x1001 + 0x100 * number as u64;
        let kind = FrameKind::Interpreted(language);
        frames.push(bare(address, kind, vec![function(&format!("built_in_{word}"), 0)]));
        frames.push(bare(address, kind, vec![at(function(&format!("in_{word}"), 0), "/srv/app", 7)]));
        frames.push(native(address, &module("/lib/x.so", 0x1000), vec![function("evaluate", 1)]));
    }
    let mut recording = Recording::new(Mode::Cpu);
    recording.add(&thread(77, "app"), State::Running, 1_000_000, &stack(frames));
    recording
}

fn json(format: &str) -> Value {
    serde_json::from_str(&recording().text(format, &Options::default())).unwrap()
}

fn name_of(frame: &Value) -> &str {
    frame["functions"][0]["name"].as_str().unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Which language each named function is in, by the words of one format.
fn languages_in(format: &str) -> Vec<(String, String)> {
    let kinds = |frames: &Value| {
        let frames = frames.as_array().unwrap().iter();
        frames.map(|frame| (name_of(frame).to_owned(), text(&frame["kind"]))).collect()
    };
    match format {
        "raw" => {
            let raw = recording().text("raw", &Options::default());
            let lines = raw.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let mut stacks = lines.filter(|line| line["type"] == "stack");
            kinds(&stacks.next().unwrap()["frames"])
        }
        "json" => kinds(&json("json")["samples"][0]["frames"]),
        "perf" => {
            let samples = read(&recording().text("perf", &Options::default()));
            let frames = samples[0].frames.iter();
            let name = |symbol: &str| symbol.split('+').next().unwrap().to_owned();
            frames.map(|frame| (name(&frame.symbol), frame.module.clone())).collect()
        }
        "dump" => {
            let dump = recording().text("dump", &Options::default());
            let frames = dump.lines().filter_map(|line| line.split_once("] ").map_or(Some(line), |_| None));
            let frames =
                frames.filter_map(|line| line.strip_prefix("  #")?.split_once("0x")?.1.split_once(' '));
            let name = |rest: &str| rest.split(['+', ' ']).next().unwrap().to_owned();
            let module = |rest: &str| rest.split(['(', ')']).nth(1).unwrap().to_owned();
            frames.map(|(_, rest)| (name(rest), module(rest))).collect()
        }
        other => told_by_tables(other),
    }
}

/// The same by the formats in which a function has the numbers of other things.
fn told_by_tables(format: &str) -> Vec<(String, String)> {
    let column = |table: &Value, name: &str, row: usize| table[name][row].as_u64().unwrap() as usize;
    match format {
        "pprof" => {
            let profile = decode(&recording().write("pprof", &Options::default()));
            let locations = profile.location.iter().map(|location| {
                let function = &profile.function[location.line[0].function_id as usize - 1];
                let mapping = &profile.mapping[location.mapping_id as usize - 1];
                (profile.string(function.name).to_owned(), profile.string(mapping.filename).to_owned())
            });
            locations.collect()
        }
        "firefox" => {
            let file = json("firefox");
            let thread = &file["threads"][0];
            let (frames, functions) = (&thread["frameTable"], &thread["funcTable"]);
            let rows = 0..frames["length"].as_u64().unwrap() as usize;
            let name = |row| &thread["stringArray"][column(functions, "name", column(frames, "func", row))];
            let category = |row| &file["meta"]["categories"][column(frames, "category", row)]["name"];
            rows.map(|row| (text(name(row)), text(category(row)))).collect()
        }
        "svg" => {
            let svg = recording().text("svg", &Options::default());
            let titles = svg.split("<title>").skip(2).map(|rest| rest.split("</title>").next().unwrap());
            let titles = titles.filter_map(|title| title.split_once(" (").zip(title.rsplit_once(", ")));
            titles.map(|((name, _), (_, module))| (name.to_owned(), module.to_owned())).collect()
        }
        "html" => {
            let data = html_data(&recording().text("html", &Options::default()));
            let classes = include_str!("../../src/html/flame.js").split_once("const CLASSES = ").unwrap().1;
            let classes: Value = serde_json::from_str(classes.split_once(';').unwrap().0).unwrap();
            let frames = data["frames"].as_array().unwrap().chunks(5);
            let at = |value: &Value| value.as_u64().unwrap() as usize;
            frames
                .map(|frame| (text(&data["names"][at(&frame[0])]), text(&classes[at(&frame[1])][0])))
                .collect()
        }
        other => panic!("{other}"),
    }
}

#[test]
fn formats_tell_the_language_of_each_function() {
    for format in ["raw", "json", "perf", "dump", "pprof", "firefox", "svg", "html"] {
        let shown = languages_in(format);
        for (_, word, label) in LANGUAGES {
            let expected = match format {
                "raw" | "json" => word.to_owned(),
                "firefox" | "html" => label.to_owned(),
                _ => format!("[{word}]"),
            };
            for name in [format!("in_{word}"), format!("built_in_{word}")] {
                let of: Vec<_> = shown.iter().filter(|(known, _)| *known == name).collect();
                assert!(!of.is_empty(), "{format}: no {name} in {shown:?}");
                assert!(of.iter().all(|(_, language)| *language == expected), "{format}: {of:?}");
            }
        }
        let of_native = shown.iter().filter(|(name, _)| name == "evaluate");
        let is_language = |language: &str| {
            LANGUAGES.iter().any(|(_, word, label)| language == *label || language.contains(word))
        };
        assert!(of_native.clone().count() > 0, "{format}: {shown:?}");
        assert!(of_native.clone().all(|(_, language)| !is_language(language)), "{format}: {shown:?}");
    }
}

/// speedscope shows a file beside a function, and has no other place.
#[test]
fn speedscope_has_the_language_in_the_place_of_a_file_that_is_not_known() {
    let file = json("speedscope");
    let frames = file["shared"]["frames"].as_array().unwrap();
    for (_, word, _) in LANGUAGES {
        let file_of = |name: String| &frames.iter().find(|frame| frame["name"] == name).unwrap()["file"];
        assert_eq!(file_of(format!("built_in_{word}")), &format!("[{word}]"));
        assert_eq!(file_of(format!("in_{word}")), "/srv/app");
    }
}

#[test]
fn pictures_and_categories_have_a_colour_for_each_language() {
    let svg = recording().text("svg", &Options::default());
    let fill = |word: &str| {
        let of = svg.split("<g data-k").find(|each| each.contains(&format!("<title>in_{word} ")));
        let (_, rest) = of.unwrap().split_once("fill=\"hsl(").unwrap();
        rest.split_once(',').unwrap().0.to_owned()
    };
    let hues: BTreeSet<String> = LANGUAGES.iter().map(|(_, word, _)| fill(word)).collect();
    assert_eq!(hues.len(), LANGUAGES.len(), "{hues:?}");
    let file = json("firefox");
    let categories = file["meta"]["categories"].as_array().unwrap();
    let colours: BTreeSet<&str> =
        categories.iter().map(|category| category["color"].as_str().unwrap()).collect();
    assert_eq!(colours.len(), categories.len(), "{categories:?}");
}
