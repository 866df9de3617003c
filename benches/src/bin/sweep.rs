//! One pass over many waiting threads, 36 frames each: swipr in wall mode at 100 Hz, through its
//! socket, beside a signal to every thread and a wait for all answers, which is what wall-clock
//! profilers do.
//!
//! `cargo build --release -p libswipr`, then
//! `cargo run --release -p swipr-benches --bin sweep -- [SECONDS [THREADS...]]`

use std::error::Error;
use std::path::Path;
use swipr_benches::bars::figure;
use swipr_benches::children::{self, Conversation, Directory, agent_library};
use swipr_benches::client;
use swipr_benches::crowd::{self, ASK_ALL, REPORT, Report};
use swipr_benches::figures::{Series, Table};
use swipr_benches::machine;

/// The argument that makes this program the one that is recorded.
const CROWD: &str = "--crowd";
/// Passes by signals.
const PASSES: usize = 100;
const HZ: u64 = 100;
const SAMPLER: &str = "swipr-sampler";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == CROWD) {
        let threads = arguments.get(1).ok_or("how many threads?")?.parse()?;
        return Ok(crowd::main(threads, 0)?);
    }
    let threads: Vec<String> = arguments.drain(1.min(arguments.len())..).collect();
    let threads = threads.iter().map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?;
    let threads = if threads.is_empty() { vec![100, 1000, 5000] } else { threads };
    let seconds: u64 = arguments.first().map_or(Ok(10), |text| text.parse())?;
    let library = agent_library()?;
    let directory = Directory::new()?;
    println!("{}\n", machine::description());
    let mut ours = Table::new(&[
        "threads",
        "first pass, ms",
        "later: p50 below, ms",
        "p99 below, ms",
        "sampler's CPU, ms a pass",
        "agent's CPU, ms a second",
        "samples",
        "ticks late",
        "dropped",
        "EINTR seen",
        "time stolen from the threads, ns",
    ]);
    let mut theirs = Table::new(&[
        "threads",
        "p50, ms",
        "p99, ms",
        "CPU, ms a pass",
        "EINTR seen a pass",
        "time stolen a pass, ns a thread",
    ]);
    for count in threads {
        by_swipr(count, seconds, &library, &directory, &mut ours)?;
        by_signals(count, &mut theirs)?;
    }
    println!("swipr, wall mode, {HZ} Hz, {seconds} s:\n\n{}", ours.text());
    println!(
        "A signal to every thread, and a wait until all handlers ran (empty ones: a walk would come on top):\n"
    );
    println!("{}", theirs.text());
    Ok(())
}

fn start(count: usize, library: Option<(&Path, &Path)>) -> Result<Conversation, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut command = children::command(&program.to_string_lossy(), library.map(|(library, _)| library));
    if let Some((_, socket)) = library {
        command.env("SWIPR_SOCKET", socket);
    }
    let mut crowd = Conversation::start(command.args([CROWD, &count.to_string()]))?;
    crowd.hear()?;
    Ok(crowd)
}

fn report(crowd: &mut Conversation) -> Result<Report, Box<dyn Error>> {
    Ok(Report::parse(&crowd.ask(REPORT)?).ok_or("not a report")?)
}

fn by_swipr(
    count: usize,
    seconds: u64,
    library: &Path,
    directory: &Directory,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let socket = directory.path(&format!("crowd-{count}.sock"));
    let mut crowd = start(count, Some((library, &socket)))?;
    let profile = format!("/profile?hz={HZ}&mode=wall&format=folded");
    let threads_before = report(&mut crowd)?;
    client::get(&socket, &format!("{profile}&samples=1"))?;
    let number = |status: &serde_json::Value, path: &str| {
        status.pointer(path).and_then(|it| it.as_f64()).unwrap_or(0.0)
    };
    let before = client::status(&socket)?;
    let first_ms = number(&before, "/sweep/largest_ns") / 1e6;
    let recording = std::thread::spawn({
        let (socket, target) = (socket.clone(), format!("{profile}&seconds={seconds}"));
        move || client::get(&socket, &target).map_err(|error| error.to_string())
    });
    // The sampler's thread ends with its recording: its CPU time is read while it runs, between two
    // later moments.
    let mut readings = vec![];
    while !recording.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let (cpu, state) = (crowd.process.cpu_ns_of(SAMPLER), client::status(&socket)?);
        if cpu != 0 {
            readings.push((cpu as f64, number(&state, "/sweeps")));
        }
    }
    let answer = recording.join().map_err(|_| "the recording's thread")??;
    let after = client::status(&socket)?;
    let noticed = report(&mut crowd)?.since(threads_before);
    let settled = readings.len() / 4;
    let span = readings.get(settled).zip(readings.last()).filter(|((_, sweeps), (_, last))| last > sweeps);
    let per_pass = span.map_or(f64::NAN, |((cpu, sweeps), (cpu_end, sweeps_end))| {
        (cpu_end - cpu) / (sweeps_end - sweeps) / 1e6
    });
    let (p50, p99) = (number(&after, "/sweep/p50_ns") / 1e6, number(&after, "/sweep/p99_ns") / 1e6);
    let agent_ms =
        (number(&after, "/agent_cpu_ns") - number(&before, "/agent_cpu_ns")) / 1e6 / seconds as f64;
    let samples = answer.stat("samples");
    table.row(vec![
        count.to_string(),
        format!("{first_ms:.2}"),
        format!("{p50:.2}"),
        format!("{p99:.2}"),
        format!("{per_pass:.3}"),
        format!("{agent_ms:.0}"),
        samples.to_string(),
        answer.stat("late").to_string(),
        answer.stat("dropped").to_string(),
        noticed.interrupted.to_string(),
        noticed.stolen_ns.to_string(),
    ]);
    figure(&format!("sweep first {count}"), first_ms, "one pass");
    figure(&format!("sweep p99 {count}"), p99, "upper end of a bucket");
    figure(&format!("sweep mean {count}"), per_pass, &format!("p50 below {p50:.2}, p99 below {p99:.2}"));
    figure(&format!("sweep eintr {count}"), noticed.interrupted as f64, "sum");
    figure(&format!("sweep stolen {count}"), noticed.stolen_ns as f64, "sum");
    Ok(())
}

fn by_signals(count: usize, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let mut crowd = start(count, None)?;
    crowd.ask(ASK_ALL)?;
    let before = report(&mut crowd)?;
    let mut passes = Series::default();
    for _ in 0..PASSES {
        passes.push(crowd.ask(ASK_ALL)?.trim().parse::<f64>()? / 1e6);
    }
    let noticed = report(&mut crowd)?.since(before);
    let each = |value: u64| value as f64 / PASSES as f64;
    table.row(vec![
        count.to_string(),
        format!("{:.2}", passes.median()),
        format!("{:.2}", passes.percentile(0.99)),
        format!("{:.2}", each(noticed.process_ns) / 1e6),
        format!("{:.0}", each(noticed.interrupted)),
        format!("{:.0}", each(noticed.stolen_ns) / count as f64),
    ]);
    figure(&format!("signals p50 {count}"), passes.median(), &passes.interval(2));
    Ok(())
}
