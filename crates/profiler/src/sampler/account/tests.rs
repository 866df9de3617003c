use super::*;
use crate::sampler::ticks::mixed;
use std::sync::atomic::AtomicU64;
use swipr_unwind::frames::{CAPACITY, Storage};
use swipr_unwind::walk::Stop;

const MS: u64 = 1_000_000;
const TICK_NS: u64 = 4 * MS;

/// A tick of the kernel at any time.
fn any_tick(at: u64) -> u64 {
    (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}
const FUTEX: State = State::Blocked(Some(202));
const READ: State = State::Blocked(Some(0));

fn stack() -> Arc<RawStack> {
    let storage: Box<Storage> = Box::new([const { AtomicU64::new(0) }; CAPACITY]);
    Arc::new(RawStack::new(&storage, 1, Stop::Root, &Arc::default(), Default::default()))
}

fn moment(ms: u64, cpu_ms: u64, delay_ms: u64) -> Moment {
    let (ns, cpu_ns, delay_ns) = (ms * MS, cpu_ms * MS, delay_ms * MS);
    Moment { ns, cpu_ns, kernel_ns: None, delay_ns, turns: 0, ticks: ms / 10, late: 0 }
}

fn ticks(samples: &[Weighted], state: State) -> u32 {
    samples.iter().filter(|sample| sample.state == state).map(|sample| sample.ticks).sum()
}

fn cpu(account: &mut Account, ends: bool) -> Vec<Weighted> {
    let mut samples = account.close(Mode::Cpu, 10 * MS, ends);
    samples.retain(|sample| sample.cpu_ns > 0);
    samples
}

fn wall(account: &mut Account) -> Vec<Weighted> {
    let mut samples = account.close(Mode::Wall, 10 * MS, true);
    samples.retain(|sample| sample.ticks > 0);
    samples
}

#[test]
fn a_thread_whose_clock_stood_still_was_where_it_is_however_seldom_it_was_observed() {
    let mut account = Account::new(moment(0, 5, 0));
    let place = stack();
    account.observe(moment(10, 5, 0), Found::At(FUTEX, place.clone()), TimerState::No);
    account.observe(moment(1000, 5, 0), Found::At(FUTEX, place.clone()), TimerState::No);
    let samples = wall(&mut account);
    assert_eq!((samples.len(), ticks(&samples, FUTEX)), (1, 100));
    assert!(Arc::ptr_eq(&samples[0].stack, &place));
}

/// Regression: of the time since its last observation, half was that of the next place: 1 s in a
/// call, then 2 s in another, were 0.5 and 2.5 s.
#[test]
fn a_thread_whose_clock_alone_was_read_was_where_it_was_seen_until_then() {
    let mut account = Account::new(moment(0, 5, 0));
    let (first, second) = (stack(), stack());
    account.observe(moment(10, 5, 0), Found::At(FUTEX, first), TimerState::No);
    let woken = moment(1000, 6, 0);
    account.stood_still(990 * MS, woken);
    account.observe(woken, Found::At(READ, second.clone()), TimerState::No);
    account.stood_still(1990 * MS, moment(2000, 6, 0));
    account.end(moment(2000, 6, 0), Mode::Wall);
    let samples = wall(&mut account);
    assert_eq!((ticks(&samples, FUTEX), ticks(&samples, READ)), (99, 101));
    // A stop of the clock that is not after the last observation says nothing.
    account.stood_still(1990 * MS, moment(2010, 6, 0));
    assert!(account.is_empty());
}

/// A call of 900 ms behind 100 ms of computing: its one hit comes at its end, after the window
/// would have been closed with the other hits alone.
#[test]
fn a_window_waits_for_the_hit_at_the_end_of_a_long_system_call() {
    let mut account = Account::new(moment(0, 0, 0));
    let (computing, call) = (stack(), stack());
    for ms in (10..=100).step_by(10) {
        account.ran(&computing, ms * MS, any_tick(ms));
        account.observe(moment(ms, ms, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    }
    for ms in (110..=990).step_by(10) {
        account.observe(moment(ms, ms, 0), Found::Elsewhere, TimerState::Overdue);
        assert!(!account.is_full(ms * MS), "{ms}");
    }
    account.returned(&call, 1000 * MS, 90, true);
    account.observe(moment(1000, 1000, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    assert!(account.is_full(1000 * MS));
    let samples = cpu(&mut account, true);
    let of_call = samples.iter().filter(|sample| Arc::ptr_eq(&sample.stack, &call));
    assert_eq!(of_call.map(|sample| sample.cpu_ns).sum::<u64>(), 900 * MS);
    assert!(!account.was_in_step());
}

/// The thread runs 3 of each 10 ms, half of that in each of two stacks, and sleeps in a third.
#[test]
fn run_and_sleep_have_their_time_by_the_clocks_and_places_their_share_by_hits() {
    let mut account = Account::new(moment(0, 0, 0));
    let (parse, render, sleep) = (stack(), stack(), stack());
    for tick in 1..=100 {
        account.observe(
            moment(tick * 10, tick * 3, 0),
            Found::At(READ, sleep.clone()),
            TimerState::Yes(TICK_NS),
        );
        if tick % 4 < 2 {
            account.ran(if tick % 4 == 0 { &parse } else { &render }, tick * 10 * MS, any_tick(tick));
        }
    }
    let samples = wall(&mut account);
    assert_eq!((ticks(&samples, State::Running), ticks(&samples, READ)), (30, 70));
    let at = |stack: &Arc<RawStack>| -> u32 {
        samples.iter().filter(|sample| Arc::ptr_eq(&sample.stack, stack)).map(|sample| sample.ticks).sum()
    };
    assert_eq!((at(&parse), at(&render), at(&sleep)), (15, 15, 70));
}

/// Regression: the first hit after a pause got the time of the whole pause.
#[test]
fn hits_weigh_alike_and_sum_to_the_cpu_clock() {
    let mut account = Account::new(moment(0, 0, 0));
    account.ran(&stack(), MS, MS / TICK_NS);
    account.observe(moment(10, 10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.ran(&stack(), 400 * MS, 400 * MS / TICK_NS);
    account.observe(moment(400, 100, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    let samples = cpu(&mut account, true);
    assert_eq!(samples.iter().map(|sample| sample.cpu_ns).collect::<Vec<u64>>(), [50 * MS, 50 * MS]);
}

/// Of 3 ms in each 10 ms, 1 is in the kernel, where no timer hits the thread. The clock of that
/// time moves in ticks.
#[test]
fn time_in_which_timers_cannot_hit_is_no_other_stacks_however_coarse_its_clock_is() {
    let mut account = Account::new(Moment { kernel_ns: Some(0), ..moment(0, 0, 0) });
    let (place, mut hits, mut in_kernel) = (stack(), 0, 0);
    for step in 1..=1000 {
        let kernel_ns = Some(step * MS / TICK_NS * TICK_NS);
        let now = Moment { kernel_ns, ..moment(step * 10, step * 3, 0) };
        if step % 5 == 0 {
            account.ran(&place, step * 10 * MS, any_tick(step));
        }
        account.observe(now, Found::Elsewhere, TimerState::Yes(TICK_NS));
        for sample in cpu(&mut account, step == 1000) {
            let sum = if Arc::ptr_eq(&sample.stack, &place) { &mut hits } else { &mut in_kernel };
            *sum += sample.cpu_ns;
        }
    }
    assert_eq!(hits + in_kernel, 3000 * MS);
    assert!(in_kernel.abs_diff(1000 * MS) <= TICK_NS, "{in_kernel}");
}

/// Regression: where the timers' clock was changed in the middle of a recording, all time that the
/// thread had ever been in the kernel was the recording's.
#[test]
fn time_in_the_kernel_counts_from_when_it_is_first_known() {
    let mut account = Account::new(moment(0, 0, 0));
    account.ran(&stack(), MS, any_tick(0));
    let now = |ms, kernel_ns| Moment { kernel_ns, ..moment(ms, ms, 0) };
    account.observe(now(10, None), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.observe(now(20, Some(5000 * MS)), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.observe(now(30, Some(5004 * MS)), Found::Elsewhere, TimerState::Yes(TICK_NS));
    let samples = cpu(&mut account, true);
    let mut weights: Vec<u64> = samples.iter().map(|sample| sample.cpu_ns / MS).collect();
    weights.sort_unstable();
    assert_eq!(weights, [4, 26]);
    // The clock is changed back, and again.
    account.observe(now(40, None), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.observe(now(50, Some(5500 * MS)), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.ran(&stack(), 50 * MS, any_tick(50));
    assert_eq!(cpu(&mut account, true).iter().map(|sample| sample.cpu_ns / MS).collect::<Vec<_>>(), [20]);
}

#[test]
fn cpu_time_without_a_hit_waits_for_one_but_not_for_longer_than_two_seconds() {
    let mut account = Account::new(moment(0, 0, 0));
    account.observe(moment(1000, 7, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    assert!(cpu(&mut account, false).is_empty());
    account.ran(&stack(), 1500 * MS, 1500 * MS / TICK_NS);
    account.observe(moment(2000, 10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    let samples = cpu(&mut account, false);
    assert_eq!((samples.len(), samples[0].cpu_ns, samples[0].is_unsampled), (1, 10 * MS, false));
    account.observe(moment(4000, 12, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    let samples = cpu(&mut account, false);
    assert!(samples.len() == 1 && samples[0].cpu_ns == 2 * MS && samples[0].is_unsampled);
}

/// Regression: a thread's sum was 2.5 % off its clock in 20 s, for one such window.
#[test]
fn a_thread_that_is_hit_every_now_and_then_keeps_its_time() {
    let (mut account, before, after) = (Account::new(moment(0, 0, 0)), stack(), stack());
    account.ran(&before, 0, any_tick(0));
    let mut window = |at_ms: u64, cpu_ms: u64, hit: Option<&Arc<RawStack>>, ends| {
        hit.into_iter().for_each(|stack| account.ran(stack, at_ms * MS, any_tick(at_ms)));
        account.observe(moment(at_ms, cpu_ms, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
        let samples = cpu(&mut account, ends);
        assert!(samples.iter().all(|sample| !sample.is_unsampled), "{samples:?}");
        let of = |sample: &Weighted| (Arc::as_ptr(&sample.stack), sample.cpu_ns / MS);
        (samples.iter().map(of).collect::<Vec<_>>(), account.take_donors().len())
    };
    assert_eq!(window(2000, 20, None, false), (vec![(Arc::as_ptr(&before), 20)], 0));
    assert_eq!(window(4000, 40, None, false), (vec![], 0), "it waits");
    assert_eq!(window(6000, 60, Some(&after), false), (vec![(Arc::as_ptr(&after), 40)], 0));
    assert_eq!(window(7000, 70, None, true), (vec![(Arc::as_ptr(&after), 10)], 0), "the end");
}

#[test]
fn a_wait_for_a_cpu_is_where_the_thread_was_seen_last_and_counts_once() {
    let mut account = Account::new(moment(0, 0, 0));
    let place = stack();
    account.ran(&place, MS, MS / TICK_NS);
    account.observe(moment(10, 10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.observe(moment(1000, 10, 0), Found::Waiting(Some(0.0)), TimerState::Yes(TICK_NS));
    let first = account.close(Mode::Wall, 10 * MS, false);
    // The kernel counts the wait now that it is over.
    account.observe(moment(1010, 20, 980), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.ran(&place, 1010 * MS, 1010 * MS / TICK_NS);
    account.observe(moment(2000, 1010, 980), Found::Elsewhere, TimerState::Yes(TICK_NS));
    let samples: Vec<Weighted> = first.into_iter().chain(wall(&mut account)).collect();
    let waited = ticks(&samples, State::Runnable);
    assert!((95..=100).contains(&waited), "{waited}");
    assert_eq!(samples.iter().map(|sample| sample.ticks).sum::<u32>(), 200);
    assert!(
        samples
            .iter()
            .filter(|sample| sample.state == State::Runnable)
            .all(|sample| Arc::ptr_eq(&sample.stack, &place))
    );
}

/// Regression: a thread that was seen blocked was taken for blocked until it ran, and its wait for
/// a CPU stood where it had run last: at 1,000 Hz functions had 24 s for 18.
#[test]
fn a_woken_thread_waits_for_a_cpu_where_it_was_blocked() {
    let mut account = Account::new(moment(0, 0, 0));
    let (work, sleep) = (stack(), stack());
    account.ran(&work, MS, any_tick(0));
    for ms in (10..=100).step_by(10) {
        account.observe(moment(ms, 0, 0), Found::At(READ, sleep.clone()), TimerState::Yes(TICK_NS));
    }
    // Woken at 60 ms, it gets a CPU at 104 ms, and at 107 ms again, after a wait of another kind.
    let now = Moment { turns: 1, ..moment(110, 4, 44) };
    account.observe(now, Found::Waiting(Some(0.0)), TimerState::Yes(TICK_NS));
    let samples = wall(&mut account);
    let at = |place: &Arc<RawStack>, state| -> u32 {
        let is_there = |sample: &&Weighted| sample.state == state && Arc::ptr_eq(&sample.stack, place);
        samples.iter().filter(is_there).map(|sample| sample.ticks).sum()
    };
    assert_eq!(at(&sleep, READ) + at(&sleep, State::Runnable) + at(&work, State::Runnable), 11);
    assert!(at(&sleep, State::Runnable) >= 3 && at(&work, State::Runnable) <= 1, "{samples:?}");
}

#[test]
fn all_ticks_are_in_samples_whatever_the_clocks_say() {
    for ticks_seen in [1, 2, 7, 1000] {
        for cpu_ms in [0, 1, 50, 1 << 40] {
            for delay_ms in [0, 1, 900, 1 << 40] {
                for found in [Found::At(READ, stack()), Found::Waiting(Some(0.0)), Found::Elsewhere] {
                    let mut account = Account::new(moment(0, 0, 0));
                    account.observe(
                        moment(ticks_seen * 10 / 2, cpu_ms / 2, 0),
                        found.clone(),
                        TimerState::Yes(TICK_NS),
                    );
                    let mut samples = account.close(Mode::Wall, 10 * MS, false);
                    account.observe(
                        moment(ticks_seen * 10, cpu_ms, delay_ms),
                        found,
                        TimerState::Yes(TICK_NS),
                    );
                    samples.extend(wall(&mut account));
                    let sum: u64 = samples.iter().map(|sample| u64::from(sample.ticks)).sum();
                    assert_eq!(sum, ticks_seen, "{cpu_ms} {delay_ms}");
                }
            }
        }
    }
}

/// A snapshot: no time has passed yet that clocks could measure.
#[test]
fn the_first_tick_is_where_the_thread_was_found() {
    for hit in [true, false] {
        let mut account = Account::new(moment(0, 0, 0));
        let now = Moment { ticks: 1, ..moment(0, 0, 0) };
        account.observe(
            now,
            if hit { Found::Elsewhere } else { Found::At(READ, stack()) },
            TimerState::Yes(TICK_NS),
        );
        if hit {
            account.ran(&stack(), 0, 0);
        }
        let samples = wall(&mut account);
        let state = if hit { State::Running } else { READ };
        assert!(
            samples.len() == 1 && samples[0].state == state && !samples[0].stack.is_none(),
            "{samples:?}"
        );
    }
}

#[test]
fn a_thread_that_no_tick_of_the_kernel_ever_hits_is_in_step_with_it_and_one_with_luck_is_not() {
    let of_hits = |hits: u64| {
        let mut account = Account::new(moment(0, 0, 0));
        for tick in 1..=500 {
            account.observe(moment(tick * 10, tick, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
            if tick <= hits {
                account.ran(&stack(), tick * 10 * MS, any_tick(tick));
            }
        }
        let samples = cpu(&mut account, false);
        (account.was_in_step(), samples)
    };
    for (hits, is_in_step) in [(0, true), (40, false), (50, false), (75, false), (100, true)] {
        assert_eq!(of_hits(hits).0, is_in_step, "{hits}");
    }
    let (_, samples) = of_hits(0);
    assert_eq!((samples.len(), samples[0].cpu_ns), (1, 500 * MS));
    assert!(samples[0].stack.remark().is_some_and(|remark| remark.contains("in step")));
}

/// Regression: work that begins at whole milliseconds, as a timer wheel has it, was shown at the
/// wrong functions: its hits are as many as its clock says, at ticks of any number.
#[test]
fn a_thread_that_runs_at_some_phases_of_the_tick_is_in_step_with_it() {
    let is_in_step = |first_half: u64, second_half: u64| {
        let mut account = Account::new(moment(0, 0, 0));
        for tick in 1..=500 {
            let ns = tick * 10 * MS + mixed(tick) % (10 * MS);
            account.observe(moment(tick * 10, tick * 5, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
            let of_ten = if ns % MS < MS / 2 { first_half } else { second_half };
            account.saw(ns, TICK_NS, mixed(ns) % 10 < of_ten);
            if tick % 2 == 0 {
                account.ran(&stack(), ns, any_tick(tick));
            }
        }
        cpu(&mut account, false);
        account.was_in_step()
    };
    assert!(is_in_step(7, 3));
    assert!(!is_in_step(5, 5));
}

/// Regression: busy threads of a loaded machine were shown as in step, because the sampler's own
/// delays go with the tick.
#[test]
fn a_thread_that_never_blocks_is_not_in_step() {
    let in_step_if_used = |cpu_ms: u64| {
        let mut account = Account::new(moment(0, 0, 0));
        for tick in 1..=500 {
            account.observe(moment(tick * 10, tick * cpu_ms, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
            account.ran(&stack(), tick * 10 * MS, tick * 2);
        }
        cpu(&mut account, false);
        account.was_in_step()
    };
    assert!(in_step_if_used(9));
    assert!(!in_step_if_used(10));
}

/// Regression: a loop of 20 ms on a machine with other work was shown at the wrong functions.
#[test]
fn a_thread_that_seldom_waits_for_a_cpu_may_be_in_step() {
    let in_step_if_waited = |waited_ms: u64| {
        let mut account = Account::new(moment(0, 0, 0));
        for turn in 1..=100 {
            let now = moment(turn * 20, turn * 4, turn * waited_ms);
            account.observe(now, Found::Elsewhere, TimerState::Yes(TICK_NS));
            account.ran(&stack(), now.ns, turn * 5);
        }
        cpu(&mut account, false);
        account.was_in_step()
    };
    assert!(in_step_if_waited(0) && in_step_if_waited(1));
    assert!(!in_step_if_waited(4));
}

/// Regression: a flight recorder had no stack of busy threads any more, for ever.
#[test]
fn in_a_recording_without_end_the_last_hits_decide() {
    let mut account = Account::new(moment(0, 0, 0));
    let mut run = |windows: std::ops::Range<u64>, tick_of: fn(u64) -> u64| {
        for turn in windows.start * 25..windows.end * 25 {
            let now = moment((turn + 1) * 10, (turn + 1) * 4, 0);
            account.observe(now, Found::Elsewhere, TimerState::Yes(TICK_NS));
            if turn % 5 < 2 {
                account.ran(&stack(), now.ns, tick_of(turn));
            }
            if turn % 25 == 24 {
                cpu(&mut account, false);
            }
        }
        account.was_in_step()
    };
    assert!(run(0..1000, |turn| turn * 5));
    assert!(!run(1000..1400, mixed), "one that is in step no more");
    // 53 of 100 hits are at odd ticks.
    let uneven = |turn| mixed(turn) | u64::from(mixed(turn + 7) % 100 < 6);
    assert!(!run(1400..11_400, uneven), "a small deviation");
}

/// Regression: a thread that had kept time with the kernel's tick never had stacks again.
#[test]
fn a_thread_that_was_in_step_and_then_computes_has_its_stacks() {
    let mut account = Account::new(moment(0, 0, 0));
    let mut samples_of = |ticks: std::ops::RangeInclusive<u64>, used_ms: u64| {
        for tick in ticks {
            let cpu_ms = tick + tick.saturating_sub(500) * (used_ms - 1);
            account.observe(moment(tick * 10, cpu_ms, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
            if used_ms == 10 {
                account.ran(&stack(), tick * 10 * MS, any_tick(tick));
            }
        }
        (cpu(&mut account, false), account.was_in_step())
    };
    let (in_step, was_in_step) = samples_of(1..=500, 1);
    assert!(was_in_step && in_step.iter().all(|sample| sample.stack.is_none()), "{in_step:?}");
    let (computing, was_in_step) = samples_of(501..=600, 10);
    assert!(!was_in_step, "{computing:?}");
    assert_eq!(computing.iter().map(|sample| sample.cpu_ns).sum::<u64>(), 1000 * MS);
    assert!(computing.iter().all(|sample| !sample.stack.is_none()), "{computing:?}");
}

#[test]
fn windows_are_short_first_and_wait_for_hits_later() {
    let mut account = Account::new(moment(0, 0, 0));
    account.observe(moment(10, 1, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    assert!(!account.is_full(10 * MS));
    assert!(account.is_full(30 * MS));
    account.close(Mode::Cpu, 10 * MS, false);
    account.observe(moment(1500, 10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    assert!(!account.is_full(1500 * MS), "no hits are not many");
    assert!(account.is_full(2100 * MS));
}

/// Many windows, with clocks that do not fit each other.
#[test]
fn no_tick_is_lost_or_made_up_between_windows() {
    let mut account = Account::new(moment(0, 0, 0));
    let (mut ticks, mut cpu_ms, mut delay_ms) = (0, 0, 0);
    for window in 1..=400u64 {
        cpu_ms += window * 7919 % 13;
        delay_ms += window * 104_729 % 7;
        let found = if window % 3 == 0 { Found::At(READ, stack()) } else { Found::Elsewhere };
        account.observe(moment(window * 10, cpu_ms, delay_ms), found, TimerState::Yes(TICK_NS));
        if window % 5 == 0 {
            account.ran(&stack(), window * 10 * MS, window * 10 * MS / TICK_NS);
        }
        let samples = account.close(Mode::Wall, 10 * MS, window == 400);
        ticks += samples.iter().map(|sample| u64::from(sample.ticks)).sum::<u64>();
    }
    assert_eq!(ticks, 400);
}

/// Regression: xz -T2 used 4.4 s of CPU time in threads that block all signals. A handful of
/// earlier samples stood for all of it.
#[test]
fn what_a_thread_uses_while_it_cannot_be_hit_is_not_given_to_its_hits() {
    for mode in [Mode::Cpu, Mode::Wall] {
        let mut account = Account::new(moment(0, 0, 0));
        for tick in 1..=100 {
            let armed = if tick < 20 { TimerState::Yes(TICK_NS) } else { TimerState::Never };
            account.observe(moment(tick * 10, tick * 10, 0), Found::Elsewhere, armed);
            if tick < 20 {
                account.ran(&stack(), tick * 10 * MS, any_tick(tick));
            }
        }
        let (mut hit, mut unsampled) = (0, 0);
        for sample in account.close(mode, 10 * MS, true) {
            let weight = if mode == Mode::Cpu { sample.cpu_ns / (10 * MS) } else { sample.ticks.into() };
            *if sample.stack.is_none() { &mut unsampled } else { &mut hit } += weight;
        }
        assert!((18..=21).contains(&hit) && hit + unsampled >= 99, "{mode:?} {hit} {unsampled}");
    }
}

/// Regression: threads that only computed, and ended between two observations, were shown as
/// blocked.
#[test]
fn a_thread_that_ended_did_what_it_was_seen_doing() {
    let mut account = Account::new(moment(0, 0, 0));
    account.observe(moment(10, 10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.end(moment(20, 10, 0), Mode::Wall);
    assert_eq!(ticks(&wall(&mut account), State::Running), 2);

    let mut account = Account::new(moment(0, 0, 0));
    account.observe(moment(10, 0, 0), Found::At(FUTEX, stack()), TimerState::No);
    account.end(moment(20, 0, 0), Mode::Wall);
    assert_eq!(ticks(&wall(&mut account), FUTEX), 2);

    let mut account = Account::new(moment(0, 0, 0));
    account.observe(moment(10, 0, 0), Found::Waiting(Some(0.0)), TimerState::No);
    account.end(moment(20, 0, 0), Mode::Wall);
    assert_eq!(ticks(&wall(&mut account), State::Runnable), 2);

    let mut account = Account::new(moment(0, 0, 0));
    account.observe(moment(10, 10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.end(moment(20, 10, 0), Mode::Cpu);
    assert_eq!(cpu(&mut account, true).iter().map(|sample| sample.cpu_ns).sum::<u64>(), 10 * MS);

    // It was there at one tick.
    let mut account = Account::new(moment(0, 0, 0));
    account.observe(moment(10, 10, 0), Found::Elsewhere, TimerState::Yes(TICK_NS));
    account.end(Moment { ticks: 1, ..moment(20, 10, 0) }, Mode::Wall);
    assert_eq!(ticks(&wall(&mut account), State::Running), 1);
}

/// Regression: a thread that waited, ran and waited again between two observations was blocked for
/// a while, and one that had waited before the recording ran for hardly any time.
#[test]
fn a_thread_that_runs_between_two_waits_is_never_blocked() {
    let mut account = Account::new(moment(0, 0, 0));
    let (wait, ready) = (Found::Waiting(Some(0.0)), TimerState::Yes(TICK_NS));
    account.ran(&stack(), MS, 0);
    account.observe(moment(10, 0, 0), wait.clone(), ready);
    // It has its CPU from 16 to 18 ms. Before the recording it had waited for 100 ms.
    account.observe(moment(20, 2, 116), wait.clone(), ready);
    assert_eq!(account.times_ns(), [2 * MS, 18 * MS, 0]);
    account.opened = account.last;
    account.observe(moment(40, 2, 116), wait.clone(), ready);
    assert_eq!(account.times_ns(), [0, 20 * MS, 0]);
    account.opened = account.last;
    // From 46 to 48 ms again: the kernel counts the 28 ms before.
    account.observe(moment(50, 4, 144), wait, ready);
    assert_eq!(account.times_ns(), [2 * MS, 8 * MS, 0]);
}

/// Regression: a new thread on a loaded machine had 160 ms of waits without a stack, and then ran.
#[test]
fn the_first_waits_of_a_thread_are_where_it_runs_next() {
    for (state, placed) in [(State::Running, 3), (FUTEX, 0)] {
        let mut account = Account::of_new_thread(moment(0, 0, 0));
        account.observe(moment(10, 0, 0), Found::Waiting(None), TimerState::No);
        for at in [20, 30, 40] {
            account.observe(moment(at, 1, 10), Found::Waiting(None), TimerState::No);
        }
        let stack = stack();
        account.hit(state, &stack, 1, 50 * MS);
        let samples = wall(&mut account);
        let waits = samples.iter().filter(|sample| sample.state == State::Runnable);
        let [mut at_stack, mut not_begun] = [0, 0];
        for sample in waits {
            at_stack += if Arc::ptr_eq(&sample.stack, &stack) { sample.ticks } else { 0 };
            not_begun += if sample.stack.remark() == Some("[not begun]") { sample.ticks } else { 0 };
        }
        assert_eq!([at_stack, not_begun], [placed, 1], "{state:?}");
    }
}
