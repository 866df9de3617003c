//! The recordings that golden files are made of.

use swipr_formats::model::{Cost, FrameKind, Mode, State};

use swipr_properties::recording::{Recording, at, bare, function, module, native, stack, thread};

/// Two threads, one of them blocked, with all kinds of frames.
pub fn everything() -> Recording {
    let mut recording = Recording::new(Mode::Wall);
    let app = module("/usr/bin/app", 0x1000);
    let libc = module("/lib/libc.so.6 (deleted)", 0x7000_0000);
    let main = native(0x1010, &app, vec![at(function("main", 0x10), "src/main.c", 12)]);
    let inlined = native(
        0x1234,
        &app,
        vec![
            at(function("(anonymous namespace)::inner(int)", 0), "src/a b.h", 3),
            at(function("outer(int, char)", 0x34), "src/a.cc", 40),
        ],
    );
    let jit = bare(0x9000, FrameKind::Jit, vec![function("JS:*run /srv/app.js:7:13", 8)]);
    let nowhere = bare(0x5, FrameKind::Native, vec![]);
    let note = bare(0, FrameKind::Note, vec![function("[truncated: stack too deep]", 0)]);
    let busy = stack(vec![inlined, jit, main.clone()]);
    let waiting = stack(vec![
        native(0x7000_0020, &libc, vec![]),
        native(0x7000_0040, &libc, vec![function("pthread_cond_wait", 4)]),
        main,
    ]);
    let lost = stack(vec![nowhere, note]);
    let first = thread(77, "app");
    let second = thread(78, "my worker;1");
    recording.add(&first, State::Running, 10_000_000, &busy);
    recording.add(&second, State::Blocked(Some(9999)), 10_000_000, &waiting);
    recording.add(&first, State::Running, 10_000_000, &busy);
    recording.add(&second, State::Blocked(None), 10_000_000, &waiting);
    recording.add(&second, State::Runnable, 10_000_000, &lost);
    recording.add(&first, State::Running, 10_000_000, &stack(vec![]));
    recording.summary.threads = 2;
    recording.summary.truncated = 1;
    recording.summary.truncated_by = vec![("no unwind information".into(), 1)];
    recording.summary.cost = Some(Cost {
        held_p50_ns: 1023,
        held_p99_ns: 4095,
        sweep_p50_ns: 16_383,
        sweep_p99_ns: 65_535,
        agent_cpu_ns: 5_000_000,
    });
    recording
}

/// CPU time, whose weights differ, and nothing lost.
pub fn cpu() -> Recording {
    let mut recording = Recording::new(Mode::Cpu);
    let app = module("/usr/bin/app", 0x1000);
    let frame = |name: &str, address| native(address, &app, vec![function(name, 1)]);
    let hot = stack(vec![frame("hot", 0x1100), frame("main", 0x1200)]);
    let cold = stack(vec![frame("cold", 0x1300), frame("main", 0x1200)]);
    let only = thread(77, "app");
    recording.add(&only, State::Running, 9_999_999, &hot);
    recording.add(&only, State::Running, 1, &cold);
    recording.add(&only, State::Running, 10_000_123, &hot);
    recording.summary.threads = 1;
    recording
}

/// A function that calls itself 100 times.
pub fn deep() -> Recording {
    let mut recording = Recording::new(Mode::Wall);
    let app = module("/usr/bin/app", 0x1000);
    let mut frames: Vec<_> =
        (0..100).map(|level| native(0x1100 + level, &app, vec![function("again", level)])).collect();
    frames.push(native(0x1200, &app, vec![function("main", 0)]));
    recording.add(&thread(77, "app"), State::Running, 10_000_000, &stack(frames));
    recording.summary.threads = 1;
    recording
}

/// Nothing was sampled.
pub fn empty() -> Recording {
    let mut recording = Recording::new(Mode::Wall);
    recording.summary.threads = 3;
    recording.summary.ticks = 100;
    recording.summary.late = 300;
    recording
}
