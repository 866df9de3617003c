//! A benchmark of criterion's is recorded where its profiles are. `cargo test -p swipr --features
//! criterion` has it.

#![cfg(feature = "criterion")]

use criterion::Criterion;
use std::hint::black_box;
use std::time::Duration;
use swipr::{BenchProfiler, Profiler};

#[inline(never)]
fn summed(numbers: u64) -> u64 {
    (0..numbers).fold(0, |sum, number| black_box(sum ^ number))
}

#[test]
fn each_benchmark_has_its_profile_beside_its_figures() {
    let folder = std::env::temp_dir().join(format!("swipr-criterion-{}", std::process::id()));
    let profiler = BenchProfiler::new(Profiler::builder().hz(500)).format("folded");
    let mut criterion = Criterion::default()
        .with_profiler(profiler)
        .profile_time(Some(Duration::from_secs(1)))
        .output_directory(&folder);
    criterion.bench_function("summed", |bench| bench.iter(|| summed(black_box(1_000_000))));
    // Regression: a format that does not exist left an empty file of that name.
    let mut wrong = Criterion::default()
        .with_profiler(BenchProfiler::new(Profiler::builder()).format("flamegraf"))
        .profile_time(Some(Duration::from_millis(10)))
        .output_directory(&folder);
    wrong.bench_function("wrong", |bench| bench.iter(|| summed(black_box(1000))));
    let left = folder.join("wrong/profile/profile.flamegraf").exists();
    let folded = std::fs::read_to_string(folder.join("summed/profile/profile.folded"));
    std::fs::remove_dir_all(&folder).expect("to clean up");
    assert!(!left);
    assert!(folded.expect("a profile").contains("summed"));
}
