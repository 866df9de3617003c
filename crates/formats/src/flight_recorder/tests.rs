use super::record::Second;
use super::*;
use crate::Format;
use crate::model::{Frame, FrameKind, Function, Stack, State, Thread};
use std::sync::Arc;

fn stack(name: &str) -> Arc<Stack> {
    stack_at(1, name)
}

fn stack_at(address: u64, name: &str) -> Arc<Stack> {
    let function = Function { name: name.into(), mangled: None, offset: 0, file: None, line: None };
    let frame = Frame { address, kind: FrameKind::Native, module: None, functions: [function].into() };
    Arc::new(Stack { frames: vec![frame] })
}

fn ring() -> FlightRecorder {
    let header = Header {
        pid: 7,
        process_name: "app".into(),
        executable: "/app".into(),
        start_ns: 0,
        interval_ns: 20_000_000,
        mode: Mode::Wall,
        measure: None,
    };
    FlightRecorder::new(header, 60_000_000_000)
}

fn fill(ring: &mut FlightRecorder, seconds: std::ops::Range<u64>, name: &str) {
    let (thread, stack) = (Arc::new(Thread { tid: 7, name: "main".into() }), stack(name));
    for tick in seconds.start * 50..seconds.end * 50 {
        let time_ns = tick * 20_000_000;
        let (state, weight_ns) = (State::Running, 20_000_000);
        ring.add(&Sample { time_ns, ticks: 1, thread: &thread, state, weight_ns, stack: &stack });
    }
}

fn folded(ring: &FlightRecorder, since_s: u64) -> (String, Summary) {
    named(ring, since_s, |stack| stack)
}

fn named(ring: &FlightRecorder, since_s: u64, mut name: impl FnMut(Stack) -> Stack) -> (String, Summary) {
    let mut format = (crate::find("folded").unwrap().make)(&Options::default());
    let mut out = Vec::new();
    let mut record = FlightRecord::begin(ring, since_s * 1_000_000_000, 0, format.as_mut(), &mut out);
    while let Some(second) = record.take(ring) {
        write(&mut record, second, format.as_mut(), &mut name, &mut out);
    }
    let summary = record.into_summary();
    format.finish(&summary, &mut out);
    (String::from_utf8(out).unwrap(), summary)
}

fn write(
    record: &mut FlightRecord,
    second: Second,
    format: &mut dyn Format,
    mut name: impl FnMut(Stack) -> Stack,
    out: &mut Vec<u8>,
) {
    record.write::<()>(second, format, &mut name, &mut |_| true, out, |_| Ok(())).unwrap();
}

/// What a slow reader has not got by then is gone, and is counted.
#[test]
fn what_is_let_go_while_it_is_written_counts_as_dropped() {
    let mut ring = ring();
    fill(&mut ring, 0..60, "before");
    let mut format = (crate::find("folded").unwrap().make)(&Options::default());
    let mut out = Vec::new();
    let mut record = FlightRecord::begin(&ring, 0, 0, format.as_mut(), &mut out);
    let first = record.take(&ring).unwrap();
    write(&mut record, first, format.as_mut(), |stack| stack, &mut out);
    fill(&mut ring, 60..100, "after");
    while let Some(second) = record.take(&ring) {
        write(&mut record, second, format.as_mut(), |stack| stack, &mut out);
    }
    let summary = record.into_summary();
    format.finish(&summary, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), format!("main;before {}\n", summary.samples));
    assert_eq!(summary.samples + summary.dropped, 3000);
    assert!((1000..1200).contains(&summary.samples), "{summary:?}");
}

#[test]
fn what_is_older_than_asked_for_or_than_is_kept_is_not_there() {
    let mut ring = ring();
    fill(&mut ring, 0..100, "before");
    fill(&mut ring, 100..200, "after");
    let (text, summary) = folded(&ring, 170);
    assert_eq!(text, format!("main;after {}\n", summary.samples));
    assert!((1450..=1600).contains(&summary.samples), "{summary:?}");
    let (_, all) = folded(&ring, 0);
    assert!((2900..=3150).contains(&all.samples), "a minute is kept: {all:?}");
    assert!(ring.generations.len() <= 3);
}

/// Regression: a thread that waited had 4.0 s of the last 3.0.
#[test]
fn ticks_are_in_the_seconds_in_which_they_were() {
    let mut ring = ring();
    let (thread, stack) = (Arc::new(Thread { tid: 7, name: "main".into() }), stack("wait"));
    // 90 s, handed on 1.5 s at a time: two trees are started meanwhile.
    for window in 1..=60u64 {
        let (time_ns, weight_ns) = (window * 1_500_000_000 - 1, 20_000_000);
        let state = State::Blocked(None);
        ring.add(&Sample { time_ns, ticks: 75, thread: &thread, state, weight_ns, stack: &stack });
    }
    for since_s in 35..=89 {
        let (text, summary) = folded(&ring, since_s);
        assert_eq!(text, format!("main;wait;[blocked] {}\n", 50 * (90 - since_s)), "{since_s}");
        assert_eq!((summary.duration_ns + 1) / 1_000_000_000, 90 - since_s);
    }
}

/// They were all 0, and the number of ticks was that of the time.
#[test]
fn losses_are_those_of_the_time_that_is_written() {
    let mut ring = ring();
    let at = |ticks, late, dropped| Summary { ticks, late, dropped, ..Summary::default() };
    fill(&mut ring, 0..10, "before");
    ring.set_figures(at(400, 100, 7));
    fill(&mut ring, 10..20, "after");
    ring.set_figures(at(850, 150, 9));
    let figures = |since_s| {
        let (_, summary) = folded(&ring, since_s);
        (summary.ticks, summary.late, summary.dropped)
    };
    assert_eq!((figures(0), figures(11)), ((850, 150, 9), (450, 50, 2)));
}

#[test]
fn stacks_are_named_when_they_are_written_and_may_turn_out_to_be_whole() {
    let mut ring = ring();
    fill(&mut ring, 0..10, "work");
    let mut cut = stack("0x2");
    Arc::make_mut(&mut cut).frames.push(crate::raw_tree::note("[truncated: no unwind information]"));
    let (thread, state) = (Arc::new(Thread { tid: 7, name: "main".into() }), State::Running);
    ring.add(&Sample { time_ns: 9_990_000_000, ticks: 5, thread: &thread, state, weight_ns: 1, stack: &cut });
    ring.set_figures(Summary { truncated: 5, ..Summary::default() });
    let name = |stack: Stack| if stack.frames.len() == 1 { stack } else { (*stack_at(2, "_start")).clone() };
    let (text, summary) = named(&ring, 0, name);
    assert_eq!(text, "main;_start 5\nmain;work 500\n");
    assert_eq!(summary.truncated, 0);
}

#[test]
fn a_program_whose_stacks_never_repeat_fills_no_memory() {
    let mut ring = ring();
    let thread = Arc::new(Thread { tid: 7, name: "main".into() });
    for tick in 0..300_000u64 {
        let (time_ns, stack) = (tick * 1_000_000, stack_at(tick + 1, &format!("f{tick}")));
        let (state, weight_ns) = (State::Running, 1_000_000);
        ring.add(&Sample { time_ns, ticks: 1, thread: &thread, state, weight_ns, stack: &stack });
    }
    let nodes: usize = ring.generations.iter().map(|generation| generation.stacks.tree.len()).sum();
    assert!(nodes <= 3 * (MAX_NODES + 10), "{nodes}");
    let (_, summary) = folded(&ring, 0);
    assert!(summary.samples + summary.dropped >= 60_000, "nothing is lost in silence: {summary:?}");
}
