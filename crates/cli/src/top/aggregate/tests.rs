use super::*;
use swipr_formats::model::{Function, Thread};

fn stack(names: &[&str]) -> Arc<Stack> {
    let frame = |name: &&str| {
        let function = Function { name: (*name).into(), mangled: None, offset: 0, file: None, line: None };
        Frame { address: 1, kind: FrameKind::Native, module: None, functions: Arc::from([function]) }
    };
    Arc::new(Stack { frames: names.iter().map(frame).collect() })
}

fn sample(time_ms: u64, state: State, stack: &Arc<Stack>) -> OwnedSample {
    let thread = Arc::new(Thread { tid: 1, name: "t".into() });
    let stack = Arc::clone(stack);
    OwnedSample { time_ns: time_ms * 1_000_000, ticks: 1, thread, state, weight_ns: 10_000_000, stack }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn aggregate(interval_ms: u64, delay: Duration) -> Aggregate {
    Aggregate::new(Duration::from_millis(interval_ms), delay)
}

fn row(aggregate: &Aggregate, name: &str) -> Row {
    aggregate.functions.rows.iter().find(|row| row.name == name).expect(name).clone()
}

fn times(time: Time) -> [u64; 3] {
    [StateFilter::Cpu, StateFilter::Waits, StateFilter::Blocked].map(|doing| time.ns(doing) / 1_000_000)
}

/// A thread that slept most of the time was `133 % clock_nanosleep`.
#[test]
fn cpu_time_is_that_of_the_clocks_and_waits_are_told_apart() {
    let mut aggregate = aggregate(10, seconds(1.0));
    let (deep, sleep) = (stack(&["leaf", "again", "again", "main"]), stack(&["nanosleep", "main"]));
    let (on, now) = (Counting::On, seconds(0.2));
    // Two looks at the thread met it running, and it has used 15 of 100 ms.
    for (time_ms, state, stack) in
        [(1000, State::Running, &deep), (1050, State::Blocked(None), &sleep), (1100, State::Running, &deep)]
    {
        aggregate.take_wall(sample(time_ms, state, stack), now, on);
    }
    aggregate.take_wall(sample(1100, State::Runnable, &deep), now, on);
    let cpu = OwnedSample { weight_ns: 15_000_000, ..sample(1060, State::Running, &deep) };
    aggregate.take_cpu(cpu, now, on);
    aggregate.take_cpu(sample(1200, State::Running, &deep), now, on);
    aggregate.turn(now);
    assert_eq!(times(row(&aggregate, "leaf").own), [25, 10, 0]);
    assert_eq!(times(row(&aggregate, "nanosleep").own_now), [0, 0, 10]);
    let again = row(&aggregate, "again");
    assert_eq!((times(again.own), times(again.total)), ([0; 3], [25, 10, 0]), "once");
    assert_eq!(times(row(&aggregate, "main").total_now), [15, 10, 10]);
    assert_eq!(times(aggregate.threads[&1].now), [15, 10, 10]);
    assert_eq!((aggregate.cpu_ns, aggregate.period_ns), (15_000_000, 100_000_000));
}

/// Threads whose samples come in windows, as an agent sends them: each with when it is closed. The
/// first thread is closed four times a second, the second one every two seconds; both are blocked.
/// A third one ends, a fourth one begins after 6 s.
fn windows() -> Vec<(f64, Vec<OwnedSample>)> {
    let stacks = [stack(&["read"]), stack(&["write"]), stack(&["ended"]), stack(&["new"])];
    let mut all: Vec<(f64, Vec<OwnedSample>)> = Vec::new();
    for (tid, step, from, to) in
        [(1, 0.25, 0.0, 12.0), (2, 2.0, 0.0, 12.0), (3, 2.0, 0.0, 6.0), (4, 0.5, 6.0, 12.0)]
    {
        let thread = Arc::new(Thread { tid, name: "t".into() });
        let stack = &stacks[tid as usize - 1];
        let mut start = from;
        while start < to {
            let ticks = (step * 100.0) as u64;
            let first = (start * 1000.0) as u64;
            let at = |tick: u64| OwnedSample {
                thread: Arc::clone(&thread),
                ..sample(1_000_000 + first + 10 * (tick + 1), State::Blocked(None), stack)
            };
            all.push((start + step, (0..ticks).map(at).collect()));
            start += step;
        }
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Regression: a thread's share was 0 % in one second and 200 % in the next, as a window of 2 s
/// counted in the second in which it came.
#[test]
fn a_blocked_thread_is_blocked_all_the_time_however_its_samples_come() {
    for delay in [0.1, 0.3, 1.0, 3.0] {
        let mut aggregate = aggregate(10, seconds(delay));
        let mut windows = windows().into_iter().peekable();
        let mut now = 0.0;
        let mut pictures = 0;
        while now < 12.0 {
            now += delay;
            while let Some((_, samples)) = windows.next_if(|(closed, _)| *closed <= now) {
                samples
                    .into_iter()
                    .for_each(|sample| aggregate.take_wall(sample, seconds(now), Counting::On));
            }
            aggregate.turn(seconds(now));
            let period_ms = aggregate.period_ns / 1_000_000;
            if now < 4.5 {
                continue;
            }
            pictures += 1;
            for function in ["read", "write"] {
                let blocked = times(row(&aggregate, function).own_now)[2];
                assert_eq!(blocked, period_ms, "{function} at {now} s of a picture each {delay} s");
            }
            let (ended, new) = (aggregate.threads.contains_key(&3), aggregate.threads.contains_key(&4));
            assert_eq!((ended, new), (now < 8.4, now > 8.26), "at {now}");
        }
        assert!(pictures > 2);
    }
}

/// Windows of the two recordings end at different times.
#[test]
fn a_thread_has_no_more_time_than_there_is() {
    let mut aggregate = aggregate(20, seconds(1.0));
    let (burn, sleep) = (stack(&["burn"]), stack(&["sleep"]));
    let now = seconds(6.0);
    for tick in 0..300 {
        aggregate.take_wall(sample(20 * tick, State::Blocked(None), &sleep), now, Counting::On);
        let cpu = OwnedSample { weight_ns: 20_000_000, ..sample(20 * tick, State::Running, &burn) };
        aggregate.take_cpu(cpu, now, Counting::On);
    }
    aggregate.turn(now);
    let [cpu, _, blocked] = times(aggregate.threads[&1].now);
    assert!((1990..=2000).contains(&(cpu + blocked)), "{cpu} + {blocked}");
    assert_eq!([times(row(&aggregate, "burn").own_now)[0], aggregate.cpu_ns / 1_000_000], [cpu, cpu]);
    assert_eq!(times(row(&aggregate, "sleep").own_now)[2], blocked);
}

#[test]
fn a_period_forgets_what_was_before_and_threads_that_are_gone() {
    let mut aggregate = aggregate(10, seconds(1.0));
    aggregate.take_wall(sample(1000, State::Blocked(None), &stack(&["a"])), seconds(1.0), Counting::On);
    aggregate.take_wall(sample(1050, State::Blocked(None), &stack(&["a"])), seconds(1.0), Counting::On);
    aggregate.turn(seconds(1.1));
    assert_eq!(aggregate.threads.len(), 1);
    assert!(row(&aggregate, "a").own_now.is_some());
    aggregate.turn(seconds(9.0));
    assert!(!row(&aggregate, "a").own_now.is_some());
    assert_eq!(times(row(&aggregate, "a").own)[2], 20);
    assert!(aggregate.threads.is_empty() && aggregate.recent.is_empty());
}

#[test]
fn a_pause_counts_nothing_and_what_comes_after_it_is_whole() {
    let mut aggregate = aggregate(20, seconds(1.0));
    let sleep = stack(&["sleep"]);
    for tick in 0..400_u32 {
        let (now, is_paused) = (Duration::from_millis(20) * tick, (200..390).contains(&tick));
        let counting = if is_paused { Counting::Paused } else { Counting::On };
        let taken = OwnedSample {
            weight_ns: 20_000_000,
            ..sample(1000 + 20 * u64::from(tick), State::Blocked(None), &sleep)
        };
        aggregate.take_wall(taken, now, counting);
        match counting {
            Counting::Paused => aggregate.forget(now),
            Counting::On => aggregate.turn(now),
        }
    }
    aggregate.turn(seconds(8.0));
    assert_eq!(times(row(&aggregate, "sleep").own_now)[2], 2000);
    assert_eq!(aggregate.samples, 210);
    assert_eq!(aggregate.counted, Duration::from_millis(20 * 210));
}

/// Names come from the program: nothing in them may move the cursor or turn the text.
#[test]
fn names_of_files_have_nothing_that_a_terminal_obeys() {
    let function = Function {
        name: "f".into(),
        mangled: None,
        offset: 0,
        file: Some("a\u{1b}[2J\u{202e}.c".into()),
        line: None,
    };
    let frame = Frame { address: 1, kind: FrameKind::Native, module: None, functions: Arc::from([function]) };
    assert_eq!(names(&frame, false), [("f".to_owned(), "a_[2J_.c".to_owned())]);
}
