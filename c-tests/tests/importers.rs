//! Hostile names of threads, functions, files and modules, read by the importers of the Firefox
//! Profiler and of speedscope: every thread, every frame and every name comes out as it went in.
//! What a registry does not give is counted as ignored, with the reason.

use std::collections::BTreeMap;
use std::process::ExitCode;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::harness::{self, NotRun};
use swipr_c_tests::{firefox, speedscope};
use swipr_formats::Options;
use swipr_properties::hostile::{FRAMES, names, recording};
use swipr_properties::readers::folded::parse_folded;
use swipr_properties::readers::{perf, viewers};

swipr_c_tests::tests! {
    the_firefox_profiler_reads_hostile_names_from_its_own_format,
    the_firefox_profiler_reads_hostile_names_from_perf_text,
    speedscope_reads_hostile_names_from_its_own_format,
    speedscope_reads_hostile_names_from_perf_text,
    speedscope_reads_hostile_names_from_folded_text,
}

fn text(format: &str) -> String {
    recording().text(format, &Options::default())
}

/// What the Firefox Profiler has of each thread: its name, and its stack from the root on.
fn in_firefox(file_name: &str, format: &str) -> Result<BTreeMap<u32, (String, Vec<String>)>, NotRun> {
    let folder = Directory::new();
    let file = folder.path().join(file_name);
    std::fs::write(&file, text(format)).expect("the file can be written");
    let loaded = firefox::Loaded::load(&file)?;
    let mut all = BTreeMap::new();
    for thread in loaded.threads() {
        let mut stacks = loaded.stacks(&thread);
        assert!(stacks.len() == 1 && stacks[0].1 > 0.0, "{thread:?}: {stacks:?}");
        let tid = thread.tid.parse().expect("a number");
        let before = all.insert(tid, (thread.name, stacks.remove(0).0));
        assert!(before.is_none(), "two threads are {tid}");
    }
    Ok(all)
}

fn the_firefox_profiler_reads_hostile_names_from_its_own_format() -> Result<(), NotRun> {
    let found = in_firefox("profile.json", "firefox")?;
    let expected = viewers::firefox(&text("firefox"));
    let expected: BTreeMap<u32, (String, Vec<String>)> =
        (1000..).zip(expected).map(|(tid, each)| (tid, (each.thread, each.stack))).collect();
    assert_eq!(found.len(), names().len());
    assert_same(&found, &expected);
    Ok(())
}

/// A perf line's name without its offset.
fn without_offset(symbol: &str) -> &str {
    symbol.rsplit_once("+0x").map_or(symbol, |(name, _)| name)
}

fn the_firefox_profiler_reads_hostile_names_from_perf_text() -> Result<(), NotRun> {
    let found = in_firefox("profile.perf", "perf")?;
    let expected = perf::read(&text("perf")).into_iter().map(|sample| {
        let names = sample.frames.iter().rev().map(|frame| without_offset(&frame.symbol).to_owned());
        (sample.tid, (sample.comm, names.collect()))
    });
    assert_same(&found, &expected.collect());
    Ok(())
}

fn assert_same(
    found: &BTreeMap<u32, (String, Vec<String>)>,
    expected: &BTreeMap<u32, (String, Vec<String>)>,
) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (tid, thread) in expected {
        assert_eq!(thread.1.len(), FRAMES, "{thread:?}");
        assert_eq!(found.get(tid), Some(thread), "thread {tid}");
    }
}

fn speedscope_reads_hostile_names_from_its_own_format() -> Result<(), NotRun> {
    let profiles = speedscope::Loaded::load("profile.speedscope.json", &text("speedscope"))?.profiles();
    let expected = viewers::speedscope(&text("speedscope"));
    assert_eq!((profiles.len(), expected.len()), (names().len(), names().len()));
    for (profile, expected) in profiles.iter().zip(&expected) {
        assert_eq!((&profile.name, &profile.stacks), (&expected.thread, &vec![expected.stack.clone()]));
    }
    Ok(())
}

fn speedscope_reads_hostile_names_from_perf_text() -> Result<(), NotRun> {
    let profiles = speedscope::Loaded::load("profile.linux-perf.txt", &text("perf"))?.profiles();
    let expected = perf::read(&text("perf"));
    assert_eq!((profiles.len(), expected.len()), (names().len(), names().len()));
    for (profile, sample) in profiles.iter().zip(&expected) {
        assert_eq!(profile.name, format!("{} pid: {} tid: {}", sample.comm, sample.pid, sample.tid));
        let shown = |frame: &perf::PerfFrame| match without_offset(&frame.symbol) {
            "[unknown]" => format!("??? ({})", frame.module),
            name => name.to_owned(),
        };
        let stack: Vec<String> = sample.frames.iter().rev().map(shown).collect();
        assert_eq!(profile.stacks, [stack], "{sample:?}");
    }
    Ok(())
}

fn speedscope_reads_hostile_names_from_folded_text() -> Result<(), NotRun> {
    let mut profiles = speedscope::Loaded::load("profile.collapsedstack.txt", &text("folded"))?.profiles();
    assert_eq!(profiles.len(), 1);
    let mut found = profiles.remove(0).stacks;
    let mut expected: Vec<Vec<String>> =
        parse_folded(&text("folded")).into_iter().map(|(stack, _)| stack).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    Ok(())
}

fn main() -> ExitCode {
    harness::run(TESTS)
}
