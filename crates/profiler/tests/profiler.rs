//! The profiler as Rust programs use it: linked, without the shared library.

use std::hint::black_box;
use std::time::{Duration, Instant};
use swipr::{Mode, Profiler};

#[inline(never)]
fn is_prime(number: u64) -> bool {
    (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

#[inline(never)]
fn burn(at_least: Duration) -> u64 {
    let started = Instant::now();
    let mut found = 0;
    while started.elapsed() < at_least {
        found += (1_000_000..1_000_300).filter(|&number| is_prime(black_box(number))).count() as u64;
    }
    black_box(found)
}

/// Runs until there are samples of `burn`: a busy machine takes its time.
fn burn_until_seen(profiler: &Profiler) {
    for _ in 0..100 {
        burn(Duration::from_millis(200));
        if format!("{:?}", profiler.report()).contains("burn") {
            return;
        }
    }
    panic!("no sample of burn: {:?}", profiler.report());
}

#[test]
fn a_program_profiles_itself_and_writes_what_it_found() {
    let profiler = Profiler::builder().hz(500).start().expect("a profiler");
    burn_until_seen(&profiler);
    let text = format!("{:?}", profiler.report());
    assert!(text.lines().any(|line| line.contains("is_prime") || line.contains("burn")), "{text}");
    let report = profiler.stop().expect("a report");

    let summary = report.summary().expect("its figures");
    let samples: u64 = report.stacks().values().map(|(samples, _)| samples).sum();
    assert_eq!(samples, summary.samples);
    let has = |report: &swipr::Report, name: &str| {
        let mut folded = vec![];
        report.write("folded", &mut folded).expect("folded");
        String::from_utf8(folded).expect("UTF-8").contains(name)
    };
    assert!(has(&report, "burn"));

    let renamed = report.clone().frames_post_processor(|stack| {
        let frames = &mut stack.frames;
        for function in frames.iter_mut().flat_map(|frame| frame.functions.iter()) {
            assert!(!function.name.is_empty());
        }
        frames.retain(|frame| !frame.functions.iter().any(|function| function.name.contains("burn")));
    });
    assert!(!has(&renamed, "::burn"), "{renamed:?}");
    let own = std::env::current_exe().expect("a path");
    let own = own.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(!has(&report.clone().blocklist(&[&own]), "burn"));

    let mut profile = vec![];
    report.pprof(&mut profile).expect("pprof");
    assert!(profile.starts_with(&[0x1f, 0x8b]), "gzip");
    let error = report.write("picture", &mut vec![]).expect_err("no such format");
    assert!(error.to_string().contains("there is no format \"picture\"; there are"), "{error}");

    // Another one, of threads that wait, while the first is over.
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let waiter = std::thread::Builder::new().name("waiter".into());
    let waiter = waiter.spawn(move || ended.recv().is_ok()).expect("a thread");
    let profiler =
        Profiler::builder().hz(200).mode(Mode::Wall).threads("^waiter$").start().expect("a profiler");
    let timeout = Instant::now() + Duration::from_secs(60);
    while profiler.report().stacks().is_empty() && Instant::now() < timeout {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(end);
    waiter.join().expect("its end");
    let report = profiler.stop().expect("a report");
    assert!(report.stacks().keys().all(|(thread, ..)| thread.name == "waiter"));
    assert!(!report.stacks().is_empty());
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    for hz in [0, 10_001, u32::MAX] {
        let error = Profiler::builder().hz(hz).start().expect_err("no such rate");
        assert_eq!(error.to_string(), "hz must be from 1 to 10000");
    }
    let error = Profiler::builder().threads("(").start().expect_err("no expression");
    assert!(error.to_string().starts_with("threads is no regular expression: "), "{error}");
}

/// Runs an example, which `cargo test` builds beside the tests; `read` checks the folder that it
/// wrote into.
fn example<T>(name: &str, argument: &str, read: impl FnOnce(&std::path::Path) -> T) -> (T, String) {
    let own = std::env::current_exe().expect("a path");
    let program = own.ancestors().nth(2).expect("the target folder").join("examples").join(name);
    let folder = std::env::temp_dir().join(format!("swipr-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let done =
        std::process::Command::new(program).arg(folder.join(argument)).output().expect("it can be started");
    let found = read(&folder);
    std::fs::remove_dir_all(&folder).expect("to clean up");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    (found, String::from_utf8_lossy(&done.stdout).into_owned())
}

#[test]
fn the_example_writes_a_profile_of_its_middle_part_only() {
    let ((folded, profile), _) = example("profile_part", "part", |folder| {
        (std::fs::read_to_string(folder.join("part.folded")), std::fs::read(folder.join("part.pb.gz")))
    });
    assert!(folded.expect("the folded file").contains("count_words"));
    assert!(profile.expect("the pprof file").starts_with(&[0x1f, 0x8b]));
}

#[test]
fn what_pprof_rs_shows_in_its_readme_works_here() {
    let ((renamed, picture, profile), printed) = example("from_pprof_rs", "", |folder| {
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
        (text("renamed.folded"), text("flamegraph.svg"), std::fs::read(folder.join("profile.pb.gz")))
    });
    assert!(printed.starts_with("report: ") && printed.contains("grpc-server-1"), "{printed}");
    assert!(picture.contains("is_prime") && picture.contains("primes"), "{picture}");
    // Threads of the pool are one, and what is blocked is not there.
    assert!(renamed.contains("grpc-server;") && !renamed.contains("grpc-server-"), "{renamed}");
    assert!(!renamed.contains("start_thread"), "{renamed}");
    assert!(profile.expect("the pprof file").starts_with(&[0x1f, 0x8b]));
}
