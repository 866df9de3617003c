//! What a recording costs the program that is recorded: CPU time of two busy threads for the same
//! work, with and without.
//!
//! `cargo build --release -p libswipr`, then
//! `cargo run --release -p swipr-benches --bin overhead -- [RECORDINGS [HZ...]]`

use std::error::Error;
use swipr_benches::bars::figure;
use swipr_benches::children::Directory;
use swipr_benches::figures::Table;
use swipr_benches::overhead::{self, Overhead};
use swipr_benches::recorded_by::{self, Profiler};
use swipr_benches::{busy, machine};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let argument = arguments.next();
    if argument.as_deref() == Some(overhead::BUSY) {
        return Ok(busy::main()?);
    }
    let recordings: usize = argument.map_or(Ok(9), |text| text.parse())?;
    let wanted = arguments.map(|text| text.parse()).collect::<Result<Vec<u32>, _>>()?;
    let directory = Directory::new()?;
    println!("{}\n", machine::description());
    let mut table = Table::new(&[
        "Hz",
        "recorded by",
        "the threads' own CPU, with / without",
        "95 % interval",
        "with the profiler's threads",
        "95 % interval",
        "the profiler's threads alone",
        "95 % interval",
        "pairs",
    ]);
    let mut starts =
        Table::new(&["CPU time to begin, ms", "Hz", "first", "later, p50", "min–max", "recordings"]);
    let mut agent = Table::new(&["the agent's threads, CPU ms a second", "Hz", "p50", "min–max"]);
    for profiler in recorded_by::all(&directory)? {
        let rates =
            profiler.rates().iter().filter(|hz| **hz == 0 || wanted.is_empty() || wanted.contains(hz));
        for &hz in rates {
            match overhead::measure(&profiler, hz, profiler.recordings(recordings)) {
                Ok(overhead) => {
                    table.row(row(&profiler, hz, &overhead));
                    starts.row(start(&profiler, hz, &overhead));
                    if matches!(profiler, Profiler::Swipr { .. }) {
                        for (name, series) in overhead::AGENT.iter().zip(&overhead.agent) {
                            let (hz, p50) = (hz.to_string(), format!("{:.1}", series.median()));
                            agent.row(vec![name.to_string(), hz, p50, series.spread(1)]);
                        }
                    }
                }
                Err(error) => println!("{} at {hz} Hz: {error}: left out\n", profiler.name()),
            }
        }
    }
    println!("{}\n{}\n{}", table.text(), starts.text(), agent.text());
    Ok(())
}

fn row(profiler: &Profiler, hz: u32, overhead: &Overhead) -> Vec<String> {
    let name = profiler.name();
    let mut row = vec![hz.to_string(), name.into()];
    for (kind, series) in [("overhead", &overhead.threads), ("overhead with threads", &overhead.whole)] {
        figure(&format!("{kind} {name} {hz}"), series.median(), &series.interval(4));
        row.extend([format!("{:.4}", series.median()), series.interval(4)]);
    }
    row.extend([format!("{:.4}", overhead.profiler.median()), overhead.profiler.interval(4)]);
    row.push(overhead.threads.len().to_string());
    row
}

fn start(profiler: &Profiler, hz: u32, overhead: &Overhead) -> Vec<String> {
    let later = &overhead.later_starts_ms;
    vec![
        profiler.name().into(),
        hz.to_string(),
        format!("{:.1}", overhead.first_start_ms),
        format!("{:.1}", later.median()),
        later.spread(1),
        (1 + later.len()).to_string(),
    ]
}
