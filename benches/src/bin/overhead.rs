//! What a recording costs the program that is recorded: CPU time of two busy threads for the same work, with and without.
//!
//! `cargo build --release -p swipr --features preload`, then
//! `cargo run --release -p swipr-benches --bin overhead -- [PAIRS [HZ...]]`

use std::error::Error;
use swipr_benches::bars::figure;
use swipr_benches::busy::{self, Unit};
use swipr_benches::children::{self, Conversation, Directory};
use swipr_benches::figures::{Series, Table};
use swipr_benches::machine;
use swipr_benches::recorded_by::{self, Profiler};

/// The argument that makes this program the one that is recorded.
const BUSY: &str = "--busy";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let argument = arguments.next();
    if argument.as_deref() == Some(BUSY) {
        return Ok(busy::main()?);
    }
    let pairs: usize = argument.map_or(Ok(60), |text| text.parse())?;
    let wanted = arguments.map(|text| text.parse()).collect::<Result<Vec<u32>, _>>()?;
    let directory = Directory::new()?;
    println!("{}\n{pairs} pairs of units with and without, interleaved\n", machine::description());
    let mut table = Table::new(&[
        "Hz",
        "recorded by",
        "the threads' own CPU, with / without",
        "95 % interval",
        "with the profiler's threads",
        "95 % interval",
        "pairs",
    ]);
    for profiler in recorded_by::all(&directory)? {
        let rates =
            profiler.rates().iter().filter(|hz| **hz == 0 || wanted.is_empty() || wanted.contains(hz));
        for &hz in rates {
            match measure(&profiler, hz, pairs) {
                Ok(ratios) => table.row(row(&profiler, hz, &ratios)),
                Err(error) => println!("{} at {hz} Hz: {error}: left out\n", profiler.name()),
            }
        }
    }
    println!("{}", table.text());
    Ok(())
}

/// CPU time with a recording against the same without, for each pair.
#[derive(Default)]
struct Ratios {
    threads: Series,
    process: Series,
}

fn row(profiler: &Profiler, hz: u32, ratios: &Ratios) -> Vec<String> {
    let name = profiler.name();
    figure(&format!("overhead {name} {hz}"), ratios.threads.median(), &ratios.threads.interval(4));
    figure(
        &format!("overhead with threads {name} {hz}"),
        ratios.process.median(),
        &ratios.process.interval(4),
    );
    let mut row = vec![hz.to_string(), name.into()];
    for series in [&ratios.threads, &ratios.process] {
        row.extend([format!("{:.4}", series.median()), series.interval(4)]);
    }
    row.push(ratios.threads.len().to_string());
    row
}

/// Every second pair the other way around, so that a drift falls on both. A profiler that takes long to begin and
/// end keeps recording for some units, which are compared with as many after it.
fn measure(profiler: &Profiler, hz: u32, pairs: usize) -> Result<Ratios, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut command = children::command(&program.to_string_lossy(), profiler.library());
    profiler.prepare(&mut command, hz);
    let mut busy = Conversation::start(command.arg(BUSY))?;
    // When the first unit is done all threads have begun.
    unit(&mut busy)?;
    let mut attached = profiler.attach(&busy.process, hz)?;
    let units = profiler.units_at_once(pairs);
    let mut ratios = Ratios::default();
    for pair in 0..=pairs.div_ceil(units) {
        let (mut with, mut without) = (vec![], vec![]);
        for recorded in if pair % 2 == 0 { [false, true] } else { [true, false] } {
            if recorded {
                attached.begin()?;
            }
            for _ in 0..units {
                let before = attached.own_cpu_ns();
                let mut taken = unit(&mut busy)?;
                taken.process_ns += attached.own_cpu_ns() - before;
                if recorded { &mut with } else { &mut without }.push(taken);
            }
            if recorded {
                attached.end(&busy.process)?;
            }
        }
        // The first one warms up.
        for (with, without) in with.iter().zip(&without).filter(|_| pair > 0) {
            ratios.threads.push(with.threads_ns as f64 / without.threads_ns as f64);
            ratios.process.push(with.process_ns as f64 / without.process_ns as f64);
        }
    }
    Ok(ratios)
}

fn unit(busy: &mut Conversation) -> Result<Unit, Box<dyn Error>> {
    Ok(Unit::parse(&busy.ask("")?).ok_or("not a unit")?)
}
