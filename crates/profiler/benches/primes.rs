//! A benchmark of criterion's that can be profiled:
//!
//!     cargo bench -p swipr --features criterion --bench primes -- --profile-time 10

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use swipr::{BenchProfiler, Profiler};

fn is_prime(number: u64) -> bool {
    (2..).take_while(|divisor| divisor * divisor <= number).all(|divisor| !number.is_multiple_of(divisor))
}

fn primes(criterion: &mut Criterion) {
    criterion.bench_function("primes", |bench| {
        bench.iter(|| (1..black_box(10_000)).filter(|&n| is_prime(n)).count())
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_profiler(BenchProfiler::new(Profiler::builder().hz(1000)));
    targets = primes
}
criterion_main!(benches);
