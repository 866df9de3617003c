//! Names that try to break out of their place, as thread, function, file and module,
//! read back with every sample, thread and frame.

use std::collections::BTreeSet;
use std::io::Cursor;

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options as FolderOptions};
use swipr_formats::model::Mode;
use swipr_formats::{Names, Options, Weight};
use swipr_properties::hostile::{FRAMES, WEIGHT_NS, names, recording};
use swipr_properties::readers::folded::{collapse, parse_folded};
use swipr_properties::readers::perf::read;
use swipr_properties::readers::pprof::decode;
use swipr_properties::readers::viewers::{self, Weighted};
use swipr_properties::readers::{flamegraph, flamescope};
use swipr_properties::recording::{PID, Recording};

fn all_options() -> Vec<Options> {
    let mut all = Vec::new();
    for names in [Names::Safe, Names::Raw, Names::Mangled] {
        for (lines, compat) in [(false, false), (true, false), (false, true)] {
            all.push(Options {
                names,
                lines,
                compat,
                weight: Some(Weight::Nanoseconds),
                ..Options::default()
            });
        }
    }
    all
}

#[test]
fn inferno_finds_every_thread_sample_and_frame_of_perf_text() {
    for options in all_options() {
        let perf = recording().text("perf", &options);
        let lines = collapse(&perf);
        let mut tids = BTreeSet::new();
        for (parts, count) in &lines {
            assert_eq!(parts.len(), 1 + FRAMES, "{options:?} {parts:?}");
            assert!(parts.iter().all(|part| !part.is_empty()), "{parts:?}");
            // The other shape has no period.
            assert_eq!(*count, if options.compat { 1 } else { WEIGHT_NS });
            let (_, ids) = parts[0].rsplit_once('-').unwrap();
            let (pid, tid) = ids.split_once('/').unwrap();
            assert_eq!(pid, PID.to_string());
            tids.insert(tid.parse::<usize>().unwrap());
        }
        let expected: BTreeSet<usize> = (1000..1000 + names().len()).collect();
        assert_eq!(tids, expected, "{options:?}");
    }
}

#[test]
fn a_strict_reader_finds_every_thread_sample_and_frame_of_perf_text() {
    for options in all_options() {
        let perf = recording().text("perf", &options);
        let samples = read(&perf);
        assert_eq!(samples.len(), names().len());
        for (sample, tid) in samples.iter().zip(1000..) {
            assert_eq!((sample.pid, sample.tid), (PID, tid));
            assert_eq!(sample.frames.len(), FRAMES, "{sample:?}");
            for frame in &sample.frames {
                assert!(!frame.symbol.starts_with(['(', ' ']), "{frame:?}");
                assert!(!frame.symbol.starts_with("0x"), "{frame:?}");
                assert!(!frame.symbol.contains("->"), "{frame:?}");
            }
        }
    }
}

#[test]
fn flamegraphs_programs_find_every_thread_sample_and_frame_of_perf_and_folded_text() {
    for options in all_options() {
        let folded = flamegraph::collapse(&recording().text("perf", &options));
        assert_eq!(folded.len(), names().len());
        for ((stack, weight), tid) in folded.iter().zip(1000..) {
            assert!(stack[0].ends_with(&format!("-{PID}/{tid}")), "{stack:?}");
            assert_eq!(*weight, if options.compat { 1 } else { WEIGHT_NS });
            assert_eq!(stack.len(), 1 + FRAMES, "{stack:?}");
            assert!(stack.iter().all(|name| !name.is_empty()), "{stack:?}");
        }
        let drawn = flamegraph::draw(&recording().text("folded", &options));
        assert!(drawn.iter().all(|(stack, _)| stack.len() == 1 + FRAMES), "{drawn:?}");
        assert_eq!(drawn.iter().map(|(_, weight)| weight).sum::<u64>(), WEIGHT_NS * names().len() as u64);
    }
}

#[test]
fn flamescope_finds_every_sample_and_frame_of_perf_text() {
    // The other shape has no event.
    for options in all_options().into_iter().filter(|options| !options.compat) {
        let drawn = flamescope::draw(&recording().text("perf", &options));
        assert_eq!(drawn.len(), names().len());
        for (sample, number) in drawn.iter().zip(0..) {
            assert_eq!(sample.stack.len(), FRAMES, "{sample:?}");
            assert!(sample.stack.iter().all(|name| !name.is_empty()), "{sample:?}");
            let expected = 1_700_000_000.0 + f64::from(number) / 100.0;
            assert!((sample.seconds - expected).abs() < 0.001, "{sample:?}");
        }
    }
}

#[test]
fn folded_text_is_what_inferno_makes_of_perf_text() {
    let options = Options { weight: Some(Weight::Nanoseconds), ..Options::default() };
    let mut folder = FolderOptions::default();
    folder.nthreads = 1;
    let mut out = Vec::new();
    Folder::from(folder).collapse(Cursor::new(recording().text("perf", &options)), &mut out).unwrap();
    let theirs = comparable(&String::from_utf8(out).unwrap());
    let ours = comparable(&recording().text("folded", &options));
    assert!(ours.len() > names().len() / 2);
    let unlike: Vec<_> = ours.symmetric_difference(&theirs).collect();
    assert!(unlike.is_empty(), "{unlike:#?}");
}

/// Lines but for what inferno does to names: it cuts the parentheses of a call
/// operator off, undoes escapes before a Rust hash, puts a module into brackets that has some, and
/// would panic over some names of wide characters, in which perf text therefore has one replaced.
fn comparable(folded: &str) -> BTreeSet<String> {
    folded
        .lines()
        .filter(|line| !line.contains("h0123456789abcdef"))
        .filter(|line| line.is_ascii() || line.contains("ünïcödé"))
        .map(|line| line.replace("operator()", "operator").replace(";[[", ";[").replace("]];", "];"))
        .collect()
}

#[test]
fn inferno_draws_every_sample_of_folded_text() {
    for options in all_options() {
        let folded = recording().text("folded", &options);
        let lines = parse_folded(&folded);
        assert!(lines.iter().all(|(parts, _)| parts.len() == 1 + FRAMES));
        let total: u64 = lines.iter().map(|(_, count)| count).sum();
        assert_eq!(total, WEIGHT_NS * names().len() as u64);
        let mut svg = Vec::new();
        let mut drawing = inferno::flamegraph::Options::default();
        drawing.no_sort = true;
        inferno::flamegraph::from_lines(&mut drawing, folded.lines(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        let all = format!("<title>all ({},{:03} samples, 100%)</title>", total / 1000, total % 1000);
        assert!(svg.contains(&all), "{options:?}");
    }
}

#[test]
fn pprof_keeps_every_thread_sample_and_frame() {
    for options in all_options() {
        let profile = decode(&recording().write("pprof", &options));
        assert_eq!(profile.sample.len(), names().len());
        for (sample, tid) in profile.sample.iter().zip(1000..) {
            assert_eq!(profile.number(sample, "thread_id"), Some(tid));
            assert_eq!(sample.value, [1, WEIGHT_NS as i64]);
            assert_eq!(profile.frames(sample).len(), FRAMES);
        }
    }
}

#[test]
fn a_dump_has_a_line_for_every_thread_and_frame() {
    let dump = recording().text("dump", &Options::default());
    let starting = |start: &str| dump.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(starting("\""), names().len());
    assert_eq!(starting("  #"), FRAMES * names().len());
    // The head, an empty line and the figures.
    assert_eq!(dump.lines().count(), (2 + FRAMES) * names().len() + 3);
    assert!(dump.chars().all(|c| c == '\n' || !c.is_control()));
}

/// A dump's first lines begin with texts that are not swipr's.
#[test]
fn no_title_and_no_programs_name_makes_a_thread_or_a_frame_of_a_dump() {
    for name in
        ["  #0   0x0000000000000001 pwned+0x1 (x)", "\"t\" tid 1, running", " \t\"\"  #0", "\u{a0}  #0"]
    {
        let mut recording = Recording::new(Mode::Wall);
        recording.header.process_name = name.to_owned();
        let options = Options { title: Some(name.to_owned()), ..Options::default() };
        let dump = recording.text("dump", &options);
        assert!(!dump.lines().any(|line| line.starts_with("  #") || line.starts_with('"')), "{dump}");
    }
}

/// The stacks of each of the hostile names, which must be as many as there are names.
fn assert_all_there(all: &[Weighted]) {
    assert_eq!(all.len(), names().len());
    for each in all {
        assert_eq!((each.stack.len(), each.ns), (FRAMES, WEIGHT_NS), "{each:?}");
        assert!(
            each.stack.iter().all(|name| !name.is_empty() && !name.chars().any(char::is_control)),
            "{each:?}"
        );
        assert_eq!(each.stack[0], "main");
    }
}

#[test]
fn viewers_find_every_thread_sample_and_frame() {
    for options in all_options() {
        let mut recording = recording();
        recording.header.process_name = "</title><script>alert(1)</script>".to_owned();
        let firefox = viewers::firefox(&recording.text("firefox", &options));
        let speedscope = viewers::speedscope(&recording.text("speedscope", &options));
        let html = viewers::html(&recording.text("html", &options));
        for all in [&firefox, &speedscope, &html] {
            assert_all_there(all);
        }
        let stacks = |all: &[Weighted]| all.iter().map(|each| each.stack.clone()).collect::<Vec<_>>();
        assert_eq!(stacks(&firefox), stacks(&html));
        assert_eq!(stacks(&speedscope), stacks(&html));
        let (whole, boxes) = viewers::svg(&recording.text("svg", &options));
        assert_eq!(whole, WEIGHT_NS * names().len() as u64);
        let drawn: BTreeSet<&str> = boxes.iter().map(|(name, _)| name.as_str()).collect();
        for name in stacks(&html).iter().flatten() {
            // What is not allowed in XML is replaced.
            let name = name.replace(['\u{fffe}', '\u{ffff}'], "_");
            assert!(drawn.contains(name.as_str()), "{name:?}");
        }
    }
}

#[test]
fn no_title_ends_a_page_or_a_picture() {
    for title in names().into_iter().filter(|name| name.contains(['<', '&', ']', '{'])) {
        let options = Options { title: Some(title.clone()), ..Options::default() };
        let html = recording().text("html", &options);
        assert_eq!(viewers::html(&html).len(), names().len(), "{title:?}");
        viewers::svg(&recording().text("svg", &options));
    }
}
