//! Whether samples come as often as was asked: 100 threads, 10 ms, through the socket.
//!
//! `cargo build --release -p libswipr`, then
//! `cargo run --release -p swipr-benches --bin period -- [SECONDS]`

use serde_json::Value;
use std::collections::HashMap;
use std::error::Error;
use swipr_benches::bars::figure;
use swipr_benches::children::{self, Conversation, Directory, agent_library};
use swipr_benches::figures::{Series, Table};
use swipr_benches::{client, crowd, machine};

/// The argument that makes this program the one that is recorded.
const CROWD: &str = "--crowd";
const THREADS: usize = 100;
const PERIOD_NS: f64 = 10e6;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(busy) = arguments.get(1).filter(|_| arguments.first().is_some_and(|word| word == CROWD)) {
        let busy: usize = busy.parse()?;
        return Ok(crowd::main(THREADS - busy, busy)?);
    }
    let seconds: u64 = arguments.first().map_or(Ok(20), |text| text.parse())?;
    println!("{}\n", machine::description());
    let mut table = Table::new(&[
        "threads",
        "of them busy",
        "mean period, ms",
        "error",
        "worst thread",
        "samples",
        "of all threads at all ticks",
        "late",
    ]);
    let mut largest: f64 = 0.0;
    for busy in [0, 2, 10] {
        largest = largest.max(measure(busy, seconds, &mut table)?);
    }
    figure("period error", largest * 100.0, "largest of the mixes");
    println!("{}", table.text());
    Ok(())
}

/// Records once; returns the error of the mean period, as a part of it.
fn measure(busy: usize, seconds: u64, table: &mut Table) -> Result<f64, Box<dyn Error>> {
    let directory = Directory::new()?;
    let socket = directory.path("period.sock");
    let program = std::env::current_exe()?;
    let mut command = children::command(&program.to_string_lossy(), Some(&agent_library()?));
    let command = command.env("SWIPR_SOCKET", &socket).args([CROWD, &busy.to_string()]);
    let mut crowd = Conversation::start(command)?;
    crowd.hear()?;
    let target =
        format!("/profile?seconds={seconds}&interval=10ms&mode=wall&format=raw&threads=^(waiting|busy)$");
    let answer = client::get(&socket, &target)?;
    let mut times: HashMap<u64, Vec<f64>> = HashMap::new();
    for line in answer.body.lines().filter(|line| line.contains(r#""type":"sample""#)) {
        let sample: Value = serde_json::from_str(line)?;
        let number = |name: &str| sample.get(name).and_then(Value::as_u64).unwrap_or(0);
        times.entry(number("thread")).or_default().push(number("time_ns") as f64);
    }
    let errors: Series =
        times.values().filter_map(|times| period_of(times)).map(|period| period / PERIOD_NS - 1.0).collect();
    let samples: usize = times.values().map(Vec::len).sum();
    let mean: f64 = times.values().filter_map(|times| period_of(times)).sum::<f64>() / times.len() as f64;
    let error = (mean / PERIOD_NS - 1.0).abs();
    let worst = errors.percentile(0.0).abs().max(errors.percentile(1.0).abs());
    let expected = seconds as f64 * 1e9 / PERIOD_NS * THREADS as f64;
    table.row(vec![
        times.len().to_string(),
        busy.to_string(),
        format!("{:.4}", mean / 1e6),
        format!("{:.3} %", error * 100.0),
        format!("{:.3} %", worst * 100.0),
        samples.to_string(),
        format!("{:.2} %", samples as f64 / expected * 100.0),
        answer.stat("late").to_string(),
    ]);
    Ok(error)
}

/// The mean time between a thread's samples.
fn period_of(times: &[f64]) -> Option<f64> {
    let (first, last) = times.first().zip(times.last())?;
    (times.len() > 1).then(|| (last - first) / (times.len() - 1) as f64)
}
