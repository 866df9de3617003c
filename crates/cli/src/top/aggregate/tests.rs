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

/// A thread that slept most of the time was `133 % clock_nanosleep`.
#[test]
fn cpu_time_is_that_of_the_clocks_and_waits_are_told_apart() {
    let mut aggregate = Aggregate::new(Duration::from_millis(10));
    let (deep, sleep) = (stack(&["leaf", "again", "again", "main"]), stack(&["nanosleep", "main"]));
    // Two looks at the thread met it running, and it has used 15 of 100 ms.
    for (time_ms, state, stack) in
        [(1000, State::Running, &deep), (1050, State::Blocked(None), &sleep), (1100, State::Running, &deep)]
    {
        aggregate.count_wall(&sample(time_ms, state, stack));
    }
    aggregate.count_wall(&sample(1100, State::Runnable, &deep));
    aggregate.count_cpu(OwnedSample { weight_ns: 15_000_000, ..sample(1060, State::Running, &deep) });
    aggregate.count_cpu(sample(1110, State::Running, &deep));
    aggregate.turn();
    let row = |name: &str| aggregate.functions.rows.iter().find(|row| row.name == name).expect(name).clone();
    let times = |time: Time| {
        [StateFilter::Cpu, StateFilter::Waits, StateFilter::Blocked].map(|doing| time.ns(doing) / 1_000_000)
    };
    assert_eq!(times(row("leaf").own), [15, 10, 0]);
    assert_eq!(times(row("nanosleep").own_now), [0, 0, 10]);
    assert_eq!((times(row("again").own), times(row("again").total)), ([0; 3], [15, 10, 0]), "once");
    assert_eq!(times(row("main").total_now), [15, 10, 10]);
    assert_eq!(times(aggregate.threads[&1].now), [15, 10, 10]);
    assert_eq!((aggregate.cpu_ns, aggregate.turn_ns), (15_000_000, 100_000_000));
    aggregate.turn();
    assert_eq!(aggregate.cpu_ns, 0, "what is later than the last look is of a later turn");
}

#[test]
fn a_turn_forgets_what_was_before_and_threads_that_are_gone() {
    let mut aggregate = Aggregate::new(Duration::from_millis(10));
    aggregate.count_wall(&sample(1000, State::Blocked(None), &stack(&["a"])));
    aggregate.turn();
    assert_eq!(aggregate.threads.len(), 1);
    aggregate.turn();
    assert!(!aggregate.functions.rows[0].own_now.is_some());
    assert_eq!(aggregate.functions.rows[0].own.ns(StateFilter::Blocked), 10_000_000);
    assert!(aggregate.threads.is_empty());
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
