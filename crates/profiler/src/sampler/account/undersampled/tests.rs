use super::*;
use crate::sampler::account::{Found, Moment, TimerState};
use crate::stack::RawStack;
use swipr_formats::model::State;
use swipr_unwind::frames::{CAPACITY, Storage};
use swipr_unwind::walk::Stop;

const MS: u64 = 1_000_000;
const TICK_NS: u64 = 4 * MS;

fn stack() -> Arc<RawStack> {
    let storage: Box<Storage> = Box::new([const { std::sync::atomic::AtomicU64::new(0) }; CAPACITY]);
    Arc::new(RawStack::new(&storage, 1, Stop::Root, &Arc::default(), Default::default()))
}

fn moment(ms: u64, ticks: u64) -> Moment {
    Moment { ns: ms * MS, cpu_ns: ms * MS, kernel_ns: None, delay_ns: 0, turns: 0, ticks, late: 0 }
}

fn thread(tid: u32) -> Arc<Thread> {
    Arc::new(Thread { tid, name: "request".into() })
}

/// A thread that computes for `ms`, with a hit there or none.
fn ended(ms: u64, hit: Option<&Arc<RawStack>>) -> Account {
    let mut account = Account::of_new_thread(moment(0, 0));
    if let Some(stack) = hit {
        account.ran(stack, ms * MS, ms * MS / TICK_NS);
    }
    account.observe(moment(ms, ms / 10), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account
}

/// Regression: of threads that live for 6 ms, 82 % of the CPU time had no stack.
#[test]
fn those_with_a_hit_stand_for_those_without() {
    let (parse, mut threads) = (stack(), Undersampled::default());
    for tid in 0..100 {
        threads.add_ended(&thread(tid), ended(6, (tid % 5 == 0).then_some(&parse)), tid.into());
    }
    assert!(!threads.is_full(Mode::Cpu, 100 * MS) && threads.is_full(Mode::Cpu, 300 * MS));
    assert_eq!(threads.add_unseen(Some(400 * MS), Mode::Cpu, 10 * MS), 400 * MS);
    let samples = threads.close(Mode::Cpu, 10 * MS, 300 * MS, false);
    let hit = samples.iter().filter(|sample| sample.cpu_ns > 0).collect::<Vec<_>>();
    assert!(hit.iter().all(|sample| Arc::ptr_eq(&sample.stack, &parse) && sample.cpu_ns == 50 * MS));
    let tids = hit.iter().map(|sample| sample.thread.as_ref().unwrap().tid).collect::<Vec<_>>();
    assert_eq!(tids, (0..100).step_by(5).collect::<Vec<u32>>(), "each hit is its own thread's");
}

/// Regression: the last moments of a long thread were shown at the functions of short ones.
#[test]
fn the_last_moments_of_a_thread_with_samples_are_its_own() {
    let (long_stack, parse, mut threads) = (stack(), stack(), Undersampled::default());
    // It ran all the time, and is gone 10 ms after its last observation.
    let mut long = Account::new(moment(0, 0));
    long.ran(&long_stack, 200 * MS, 50);
    long.observe(moment(330, 33), Found::Elsewhere, TimerState::Yes(TICK_NS));
    long.end(Moment { cpu_ns: 330 * MS, ..moment(340, 33) }, Mode::Cpu);
    long.close(Mode::Cpu, 10 * MS, true);
    threads.add_tail(&thread(7), &long);
    threads.add_ended(&thread(1), ended(6, Some(&parse)), 0);
    assert_eq!(threads.add_unseen(Some(0), Mode::Cpu, 10 * MS), 0, "the clocks differ too little");
    assert_eq!(threads.add_unseen(Some(8 * MS), Mode::Cpu, 10 * MS), 8 * MS);
    let samples = threads.close(Mode::Cpu, 10 * MS, 400 * MS, true);
    let of = |stack| {
        samples.iter().filter(|sample| Arc::ptr_eq(&sample.stack, stack)).map(|it| it.cpu_ns).sum::<u64>()
    };
    assert_eq!((of(&long_stack), of(&parse)), (5 * MS, 9 * MS));
}

#[test]
fn time_without_a_hit_waits_for_one_and_has_no_stack_at_the_end() {
    let mut threads = Undersampled::default();
    threads.add_ended(&thread(1), ended(6, None), 0);
    assert!(threads.hits() == 0 && !threads.is_full(Mode::Cpu, u64::MAX));
    assert!(threads.is_full(Mode::Wall, 3000 * MS), "others may have been seen blocked");
    let unsampled = threads.close(Mode::Cpu, 10 * MS, MS, false);
    assert!(unsampled.iter().all(|sample| sample.cpu_ns == 0), "{unsampled:?}");
    let last = threads.close(Mode::Cpu, 10 * MS, 7, true);
    let last = last.iter().filter(|sample| sample.cpu_ns > 0).collect::<Vec<_>>();
    assert!(last.iter().all(|sample| sample.stack.is_none() && sample.ns == 7), "{last:?}");
    assert_eq!(last.iter().map(|sample| sample.cpu_ns).sum::<u64>(), 6 * MS);
}

#[test]
fn what_is_left_at_the_end_has_the_hits_of_the_last_samples() {
    let (parse, mut threads) = (stack(), Undersampled::default());
    threads.add_ended(&thread(1), ended(6, Some(&parse)), 0);
    threads.close(Mode::Cpu, 10 * MS, MS, false);
    threads.add_ended(&thread(2), ended(6, None), 2 * MS);
    threads.add_unseen(Some(4 * MS), Mode::Cpu, 10 * MS);
    let samples = threads.close(Mode::Cpu, 10 * MS, 3 * MS, true);
    let with_time = samples.iter().filter(|sample| sample.cpu_ns > 0).collect::<Vec<_>>();
    assert!(with_time.iter().all(|sample| Arc::ptr_eq(&sample.stack, &parse)), "{with_time:?}");
    assert_eq!(with_time.iter().map(|sample| sample.cpu_ns).sum::<u64>(), 10 * MS);
}

#[test]
fn ticks_are_kept_in_wall_mode() {
    let (parse, mut threads) = (stack(), Undersampled::default());
    (0..50).for_each(|tid| threads.add_ended(&thread(tid), ended(30, (tid % 2 == 0).then_some(&parse)), 0));
    let samples = threads.close(Mode::Wall, 10 * MS, MS, true);
    assert!(samples.iter().all(|sample| sample.state == State::Running), "{samples:?}");
    assert_eq!(samples.iter().map(|sample| u64::from(sample.ticks)).sum::<u64>(), 150);
}

/// Regression: threads that start together and compute for less than a tick had 4 times their
/// running time: the clocks of those that wait for a CPU do not tell how long they will.
#[test]
fn threads_that_end_soon_have_the_running_time_of_the_process() {
    let found = |tick: u64| if tick % 10 < 2 { Found::Elsewhere } else { Found::Waiting(None) };
    let running_of = |unseen_ns: Option<u64>| {
        let (place, mut threads) = (stack(), Undersampled::default());
        for tid in 0..100 {
            let mut account = Account::of_new_thread(moment(0, 0));
            let now = Moment { cpu_ns: u64::from(tid % 10 < 2) * MS, ..moment(1, 1) };
            account.observe(now, found(tid), TimerState::Yes(TICK_NS));
            threads.add_ended(&thread(tid as u32), account, tid);
        }
        threads.add_hit(&thread(7), &place, 0);
        let taken_ns = threads.add_unseen(unseen_ns, Mode::Wall, 10 * MS);
        let samples = threads.close(Mode::Wall, 10 * MS, MS, true);
        let ticks = |state: State| {
            let of_state = samples.iter().filter(|sample| sample.state == state);
            of_state.map(|sample| u64::from(sample.ticks)).sum::<u64>()
        };
        (taken_ns / MS, ticks(State::Running), ticks(State::Runnable))
    };
    assert_eq!(running_of(Some(130 * MS)), (130, 15, 85));
    assert_eq!(running_of(Some(2000 * MS)), (980, 100, 0), "the rest waits for others");
    assert_eq!(running_of(None), (180, 20, 80), "as they were found");
}

/// Regression: threads that lived for 25 to 350 ms waited for CPUs for 2.3 s instead of 0.5, and
/// were blocked for 7.8 instead of 9.7: their clocks were thrown away.
#[test]
fn threads_that_end_soon_have_waited_as_their_clocks_say_until_they_were_last_seen() {
    let mut threads = Undersampled::default();
    for tid in 0..10 {
        let mut account = Account::of_new_thread(moment(0, 0));
        let now = |ms, delay_ms| Moment { cpu_ns: 10 * MS, delay_ns: delay_ms * MS, ..moment(ms, ms / 10) };
        account.observe(now(10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
        account.observe(now(20, 1), Found::Waiting(None), TimerState::Yes(TICK_NS));
        let poll = Found::At(State::Blocked(Some(7)), stack());
        account.observe(now(100, 10), poll, TimerState::Yes(TICK_NS));
        account.was_there(now(120, 10));
        threads.add_ended(&thread(tid), account, 0);
    }
    threads.add_unseen(Some(0), Mode::Wall, 10 * MS);
    let samples = threads.close(Mode::Wall, 10 * MS, MS, true);
    let is_waiting = |sample: &&Weighted| sample.state == State::Runnable;
    let waited = samples.iter().filter(is_waiting).map(|it| u64::from(it.ticks)).sum::<u64>();
    // And for one of two looks that found it idle, in the 20 ms after the last one.
    assert_eq!(waited, 20, "{samples:?}");
}

#[test]
fn a_hit_that_few_sweeps_would_have_made_stands_for_more() {
    let (parse, render, mut threads) = (stack(), stack(), Undersampled::default());
    let mut young = ended(2, Some(&parse));
    young.weigh(4.0);
    let older = ended(8, Some(&render));
    assert!(young.is_short_lived() && !Account::new(moment(0, 0)).is_short_lived());
    threads.add_ended(&thread(1), young, 0);
    threads.add_ended(&thread(2), older, 0);
    let samples = threads.close(Mode::Cpu, 10 * MS, MS, true);
    let of = |stack: &Arc<RawStack>| {
        samples.iter().filter(|it| Arc::ptr_eq(&it.stack, stack)).map(|it| it.cpu_ns).sum::<u64>()
    };
    assert_eq!((of(&parse), of(&render)), (8 * MS, 2 * MS));
}

/// Regression: of 400 threads that ran 2 ms each 4 s, 97 % of the CPU time had no stack.
#[test]
fn windows_without_a_hit_get_the_hits_of_windows_that_could_have_had_none() {
    let (rare, often, mut threads) = (stack(), stack(), Undersampled::default());
    let mut window = |used_ms: u64, hits: usize, at: &Arc<RawStack>| {
        let mut account = Account::new(moment(0, 0));
        (0..hits).for_each(|hit| account.ran(at, hit as u64, hit as u64));
        let now = Moment { cpu_ns: used_ms * MS, ..moment(2000, 200) };
        account.observe(now, Found::Elsewhere, TimerState::Yes(TICK_NS));
        let samples = account.close(Mode::Cpu, 10 * MS, false);
        threads.donate(&thread(hits as u32), account.take_donors(), 0);
        let unsampled = samples.iter().filter(|sample| sample.is_unsampled);
        unsampled.for_each(|sample| threads.add_unsampled(&thread(99), sample, Mode::Cpu, 10 * MS));
    };
    // A thread that runs 2 ms is hit in one window of five, one that runs 70 ms in all.
    (0..20).for_each(|turn| window(2, usize::from(turn % 5 == 0), &rare));
    (0..4).for_each(|_| window(70, 7, &often));
    let samples = threads.close(Mode::Cpu, 10 * MS, 3000 * MS, false);
    let of = |stack: &Arc<RawStack>| {
        samples.iter().filter(|it| Arc::ptr_eq(&it.stack, stack)).map(|it| it.cpu_ns).sum::<u64>()
    };
    assert_eq!(of(&rare) + of(&often), 32 * MS);
    assert!(of(&often) < 2 * MS, "{samples:?}");
    let with_time = samples.iter().filter(|sample| sample.cpu_ns > 0).map(|sample| sample.thread.as_ref());
    assert!(with_time.flatten().all(|thread| thread.tid != 99));
}

#[test]
fn time_that_no_hit_stands_for_is_its_threads_without_a_stack() {
    let mut threads = Undersampled::default();
    for tid in [1, 2] {
        let mut account = Account::new(moment(0, 0));
        account.observe(moment(10 * u64::from(tid), 1), Found::Elsewhere, TimerState::Yes(TICK_NS));
        let samples = account.close(Mode::Cpu, 10 * MS, true);
        threads.add_unsampled(&thread(tid), &samples[samples.len() - 1], Mode::Cpu, 10 * MS);
    }
    let samples = threads.close(Mode::Cpu, 10 * MS, 7, true);
    let with_time = samples.iter().filter(|sample| sample.cpu_ns > 0 && sample.ticks == 1);
    let with_time = with_time.map(|sample| (sample.thread.as_ref().unwrap().tid, sample.cpu_ns / MS));
    assert_eq!(with_time.collect::<Vec<_>>(), [(1, 10), (2, 20)]);
}
