use super::samples::HAND_ON_NS;
use super::*;
use crate::sample_queue::{QUEUE_BYTES, SampleReceiver, sample_queue};
use crate::sampler::account::Weighted;
use crate::stack::RawStack;
use std::time::Duration;
use swipr_formats::model::{State, Thread};

fn of_a_second() -> (RunningRecording, SampleReceiver) {
    of_a_second_each(Duration::from_millis(10))
}

fn of_a_second_each(interval: Duration) -> (RunningRecording, SampleReceiver) {
    recording(interval, Length::Time(Duration::from_secs(1)))
}

fn recording(interval: Duration, length: Length) -> (RunningRecording, SampleReceiver) {
    let format = swipr_formats::find("perf").unwrap();
    let request = Request {
        interval,
        length,
        mode: Mode::Wall,
        source: Default::default(),
        format: swipr_formats::Selection { format, options: Default::default() },
        threads: None,
        filter: Default::default(),
        purpose: Default::default(),
        symbolize: swipr_server::recording::Symbolize::Never,
        frames: Default::default(),
        id: None,
    };
    let (sender, receiver) = sample_queue(QUEUE_BYTES);
    let mut recording =
        RunningRecording::new(Arc::new(request), sender, Arc::default(), Arc::default(), EpochClock::now());
    recording.start(0);
    (recording, receiver)
}

/// Regression: what a sampler that is late did not see of exit(3), which waits for it, counted.
#[test]
fn a_recording_ends_when_it_was_stopped_however_late_that_is_seen() {
    let (mut recording, _receiver) = of_a_second();
    let started = recording.next_tick();
    recording.stop_at(started + 300);
    recording.stop_at(started + 400);
    assert!(recording.has_ended(started + 900_000_000));
    assert_eq!(recording.counters().duration_ns.get(), 300);
    assert_eq!(
        [200, 900].map(|ns| recording.at_most_end_ns(started + ns)),
        [200, 300].map(|ns| started + ns)
    );
    let (mut recording, _receiver) = of_a_second();
    let started = recording.next_tick();
    assert!(recording.has_ended(started + 5_000_000_000));
    assert_eq!(recording.counters().duration_ns.get(), 1_000_000_000);
}

/// Regression: a dump of 4,001 threads on a busy machine had each of them 29 times.
#[test]
fn a_snapshot_has_one_tick_however_late_it_is() {
    let (mut recording, _receiver) = recording(Duration::from_millis(10), Length::Ticks(1));
    let start = recording.next_tick();
    assert!(recording.begin_tick(start + 280_000_000, 0));
    assert_eq!((recording.passed(), recording.counters().late.get()), ((1, 0), 0));
}

/// Regression: after a stop of 10 s, a recording of 100 ticks reported 1,000 late ticks.
#[test]
fn ticks_behind_the_end_of_a_recording_are_not_late() {
    let (mut recording, _receiver) = of_a_second();
    let start = recording.next_tick();
    assert!(recording.begin_tick(start, 0));
    assert!(recording.begin_tick(start + 10_000_000_000, 0));
    assert!(!recording.begin_tick(start + 10_010_000_000, 0));
    let counters = recording.counters();
    assert!((99..=100).contains(&(counters.ticks.get() + counters.late.get())), "{counters:?}");
}

/// Regression: a program that was stopped during a sweep until after the recording's end had a
/// recording of the ticks before.
#[test]
fn ticks_in_which_no_sweep_began_before_the_end_are_late() {
    let (mut recording, _receiver) = of_a_second();
    let start = recording.next_tick();
    assert!(recording.begin_tick(start, 0));
    recording.end_tick();
    assert!(recording.has_ended(start + 3_000_000_000) && recording.has_ended(start + 4_000_000_000));
    assert_eq!((recording.counters().late.get(), recording.passed()), (99, (100, 99)));
}

fn blocked(ticks: u32, ns: u64) -> Weighted {
    let (state, stack) = (State::Blocked(None), Arc::new(RawStack::none()));
    Weighted { state, stack, ticks, cpu_ns: 0, ns, thread: None, is_unsampled: false }
}

/// Regression: of more than 1,000 late ticks the time was lost, also that in which threads ran.
#[test]
fn ticks_while_the_program_was_stopped_for_long_have_their_time_in_few_samples() {
    let (mut recording, receiver) = of_a_second();
    let start = recording.next_tick();
    recording.count_late(30_000);
    assert_eq!(recording.passed(), (30_000, 30_000));
    let thread = Arc::new(Thread { tid: 1, name: "t".into() });
    recording.take(&thread, vec![blocked(30_000, start), blocked(300, start)]);
    recording.flush(start);
    let batch = receiver.receive(Duration::ZERO).unwrap();
    let events: Vec<(u32, u64)> = batch.iter().map(|event| (event.ticks, event.weight_ns)).collect();
    assert_eq!(events, [(1000, 300_000_000), (300, 10_000_000)]);
}

/// Regression: 0.1 s recorded with an interval of 1 s were 1 s of wall-clock time.
#[test]
fn the_tick_of_a_recording_that_is_shorter_than_its_interval_stands_for_the_recording() {
    let (recording, _receiver) = of_a_second_each(Duration::from_secs(10));
    assert_eq!(recording.interval_ns(), 1_000_000_000);
}

#[test]
fn samples_are_handed_on_at_once_then_in_batches_and_all_of_them_at_the_end() {
    let (mut recording, receiver) = of_a_second();
    let (thread, stack) = (Arc::new(Thread { tid: 1, name: "t".into() }), Arc::new(RawStack::none()));
    let begin = recording.next_tick();
    let mut handed_on = vec![];
    for tick in 0..100 {
        let now = begin + tick * 1_000_000;
        let sample = Weighted {
            state: State::Running,
            stack: stack.clone(),
            ticks: 1,
            cpu_ns: 0,
            ns: now,
            thread: None,
            is_unsampled: false,
        };
        recording.take(&thread, vec![sample]);
        assert!(recording.next_wake() <= now.max(begin) + HAND_ON_NS);
        recording.flush_if_due(now);
        handed_on.extend(receiver.receive(Duration::ZERO).map(|batch| batch.len()));
    }
    recording.flush(begin);
    handed_on.extend(receiver.receive(Duration::ZERO).map(|batch| batch.len()));
    assert_eq!(handed_on, [1, 50, 49]);
}
