use super::*;
use crate::jit::JitCode;
use crate::sample_queue::Event;
use crate::sample_queue::{QUEUE_BYTES, SampleSender, sample_queue};
use crate::stack::RawStack;
use std::sync::Mutex;
use std::thread;
use swipr_formats::Selection;
use swipr_formats::model::{Mode, State, Thread};
use swipr_os::process::EpochClock;
use swipr_server::pipe::{PipeReader, pipe};
use swipr_server::recording::Length;
use swipr_symbols::symbolizer::{Budget, Symbolizer};
use swipr_unwind::frames::Storage;
use swipr_unwind::walk;

/// A writer of that format, its sampler's end and its client's.
fn writer(format: &str) -> (Writer, SampleSender, PipeReader) {
    let format = Selection { format: swipr_formats::find(format).unwrap(), options: Default::default() };
    let request = Request {
        interval: Duration::from_millis(10),
        length: Length::Ticks(1),
        mode: Mode::Wall,
        source: Default::default(),
        format,
        threads: None,
        filter: Default::default(),
        purpose: Default::default(),
        symbolize: swipr_server::recording::Symbolize::Never,
        frames: Default::default(),
        id: None,
    };
    let (sender, samples) = sample_queue(QUEUE_BYTES);
    let (output, reader) = pipe(1 << 20, Arc::new(|| {}));
    let of_agent = Arc::<AgentCounters>::default();
    of_agent.held.add(1_000_000_000); // of an earlier recording
    let writer = Writer {
        request: Arc::new(request),
        samples,
        output: Box::new(output),
        counters: Arc::default(),
        figures: Figures::new(&of_agent),
        start_ns: 0,
        of_agent,
        names: NameSources {
            symbolizer: Arc::new(Mutex::new(Symbolizer::new(Budget::default()))),
            jit_code: Arc::new(Mutex::new(JitCode::new(1 << 20))),
            latest: Arc::default(),
            clock: EpochClock::now(),
        },
        symbol_time: Duration::from_secs(1),
        flight_recorder: Arc::default(),
    };
    (writer, sender, reader)
}

fn event() -> Event {
    event_that_ends(walk::Stop::Root)
}

fn event_that_ends(stop: walk::Stop) -> Event {
    let storage: Box<Storage> = Box::new([const { std::sync::atomic::AtomicU64::new(0) }; 1024]);
    let stack = Arc::new(RawStack::new(&storage, 1, stop, &Arc::default(), Default::default()));
    let thread = Arc::new(Thread { tid: 1, name: "t".into() });
    Event { thread, state: State::Running, time_ns: 0, ticks: 1, weight_ns: 0, stack }
}

fn bytes(reader: &mut PipeReader) -> usize {
    reader.take(&mut vec![], usize::MAX)
}

/// Regression: formats that stream wrote their header, and the answer had status 200 instead of
/// 422.
#[test]
fn a_recording_that_found_nothing_writes_no_byte_in_any_format() {
    for format in swipr_formats::FORMATS {
        let (writer, sender, mut reader) = writer(format.name);
        writer.counters.ticks.add(1);
        sender.send(vec![]).unwrap();
        drop(sender);
        writer.run(());
        assert_eq!(bytes(&mut reader), 0, "{}", format.name);
        assert!(reader.end().is_some_and(|end| end.is_ok()), "{}", format.name);
    }
}

#[test]
fn what_streams_comes_with_the_first_sample_and_not_only_at_the_end() {
    let (writer, sender, mut reader) = writer("perf");
    let running = thread::spawn(move || writer.run(()));
    sender.send(vec![event()]).unwrap();
    while bytes(&mut reader) == 0 {
        assert_eq!(reader.end(), None);
        thread::yield_now();
    }
    drop(sender);
    running.join().unwrap();
}

#[test]
fn a_sampler_that_could_not_sample_makes_the_recording_fail_with_its_reason() {
    let (writer, sender, mut reader) = writer("perf");
    writer.of_agent.fail("cannot read /proc/self/task");
    drop(sender);
    writer.run(());
    assert_eq!(bytes(&mut reader), 0);
    assert_eq!(reader.end(), Some(Err("cannot read /proc/self/task".to_string())));
}

#[test]
fn an_older_failure_does_not_spoil_a_recording_that_had_its_ticks() {
    let (writer, sender, mut reader) = writer("perf");
    writer.of_agent.fail("cannot read /proc/self/task");
    writer.counters.ticks.add(1);
    drop(sender);
    writer.run(());
    assert!(reader.end().is_some_and(|end| end.is_ok()));
}

#[test]
fn the_figures_tell_what_this_recording_cost_and_why_its_stacks_were_cut() {
    let (writer, sender, mut reader) = writer("perf");
    let of_agent = writer.of_agent.clone();
    writer.counters.ticks.add(1);
    let running = thread::spawn(move || writer.run(()));
    sender.send(vec![event(), event_that_ends(walk::Stop::TooDeep)]).unwrap();
    let mut text = vec![];
    while reader.take(&mut text, usize::MAX) == 0 {
        thread::yield_now();
    }
    of_agent.held.add(1000);
    of_agent.sweep.add(50_000);
    drop(sender);
    running.join().unwrap();
    reader.take(&mut text, usize::MAX);
    let Some(Ok(summary)) = reader.end() else { panic!("the recording failed") };
    let cost = summary.cost.unwrap();
    assert_eq!((cost.held_p50_ns, cost.held_p99_ns, cost.sweep_p99_ns), (1023, 1023, 50_000));
    assert_eq!(summary.truncated_by, [("too deep".into(), 1)]);
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().last(), Some(&*format!("# swipr: {}", swipr_formats::stats_line(&summary))));
}

/// Regression: where recordings shared sweeps, the computed time of a thread's last ticks was
/// before that of its previous sample.
#[test]
fn the_times_of_a_threads_samples_never_go_back() {
    let (writer, sender, mut reader) = writer("perf");
    let at = |ms: u64, ticks| Event { time_ns: ms * 1_000_000, ticks, weight_ns: 10_000_000, ..event() };
    let other = Event { thread: Arc::new(Thread { tid: 2, name: "t".into() }), ..at(5, 1) };
    sender.send(vec![at(1000, 1), at(995, 1), other]).unwrap();
    sender.send(vec![at(1200, 40), at(1210, 1)]).unwrap();
    drop(sender);
    writer.run(());
    let mut text = vec![];
    reader.take(&mut text, usize::MAX);
    let text = String::from_utf8(text).unwrap();
    let times = |tid: &str| -> Vec<f64> {
        let heads = text.lines().filter(|line| line.contains(tid) && !line.starts_with(['#', '\t']));
        heads
            .map(|head| head.split_whitespace().nth(2).unwrap().trim_end_matches(':').parse().unwrap())
            .collect()
    };
    assert!(times("/1").len() >= 43, "{text}");
    assert!(times("/1").is_sorted(), "{:?}", times("/1"));
    assert_eq!((times("/1")[0], times("/2")), (1.0, vec![0.005]));
}
