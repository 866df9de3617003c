//! Profiles one part of a program and writes what it found.
//!
//!     cargo run -p swipr --release --example profile_part -- part

use std::collections::BTreeMap;
use std::fs::File;

/// How often each word of so many made-up texts occurs.
#[inline(never)]
fn count_words(texts: u64) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for text in 0..texts {
        for word in 0..40 {
            *counts.entry(format!("word-{}", (text * 7919 + word * word) % 5003)).or_insert(0) += 1;
        }
    }
    counts
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or("part".into());
    let not_profiled = count_words(1_000).len();

    let profiler = swipr::Profiler::builder().hz(1000).start()?;
    let profiled = count_words(100_000).len();
    let report = profiler.stop()?;

    report.write("folded", &mut File::create(format!("{name}.folded"))?)?;
    report.pprof(&mut File::create(format!("{name}.pb.gz"))?)?;
    println!("{not_profiled} and {profiled} words; {name}.folded, {name}.pb.gz");
    Ok(())
}
