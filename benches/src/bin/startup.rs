//! What it costs to have the agent loaded while nobody records: start-up time, memory, wake-ups.
//!
//! `cargo build --release -p libswipr`, then
//! `cargo run --release -p swipr-benches --bin startup -- [ROUNDS]`

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use swipr_benches::bars::figure;
use swipr_benches::children::{self, Directory, Running, agent_library, gperftools};
use swipr_benches::figures::{Series, Table};
use swipr_benches::machine;

/// Pairs of processes whose memory is compared.
const MEMORY_PAIRS: usize = 5;
/// How long the idle agent is watched.
const WATCHED: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(400), |text| text.parse())?;
    let library = agent_library()?;
    let directory = Directory::new()?;
    println!("{}\n", machine::description());
    idle(&library, &directory)?;
    start_up(&library, &directory, rounds)
}

fn with_agent(program: &str, library: &Path, socket: &Path) -> Command {
    let mut command = children::command(program, Some(library));
    command.env("SWIPR_SOCKET", socket);
    command
}

fn start_up(library: &Path, directory: &Directory, rounds: usize) -> Result<(), Box<dyn Error>> {
    let program = "/bin/true";
    let mut variants = vec![
        ("nothing preloaded", children::command(program, None)),
        ("libgcc_s.so.1 preloaded", children::command(program, Some(Path::new("libgcc_s.so.1")))),
        ("**libswipr.so preloaded**", with_agent(program, library, &directory.path("{PID}.sock"))),
    ];
    if let Some(peer) = gperftools() {
        variants.push(("gperftools preloaded", children::command(program, Some(&peer))));
        let mut profiling = children::command(program, Some(&peer));
        profiling.env("CPUPROFILE", directory.path("gperftools"));
        variants.push(("gperftools, profiling to a file", profiling));
    }
    let mut wall: Vec<Series> = variants.iter().map(|_| Series::default()).collect();
    let mut cpu = wall.clone();
    for round in 0..rounds + 20 {
        for ((_, command), (wall, cpu)) in variants.iter_mut().zip(wall.iter_mut().zip(&mut cpu)) {
            let cost = children::run(command)?;
            if round >= 20 {
                wall.push(cost.wall_us);
                cpu.push(cost.cpu_us);
            }
        }
    }
    let mut table = Table::new(&[
        "/bin/true with",
        "wall us: min",
        "p50",
        "p90",
        "added, min",
        "added, p50",
        "CPU us: min",
        "p50",
        "p90",
        "added, min",
        "added, p50",
    ]);
    for ((name, _), (wall_of, cpu_of)) in variants.iter().zip(wall.iter().zip(&cpu)) {
        let mut row = vec![name.to_string()];
        for (series, base) in [(wall_of, wall.first()), (cpu_of, cpu.first())] {
            row.extend([0.0, 0.5, 0.9].map(|part| format!("{:.0}", series.percentile(part))));
            let added = |part| base.map_or(0.0, |base| series.percentile(part) - base.percentile(part));
            row.extend([0.0, 0.5].map(|part| format!("{:.0}", added(part))));
            if std::ptr::eq(series, wall_of) {
                let spread = format!("{:.0} by the fastest", added(0.0));
                figure(&format!("start-up {}", name.trim_matches('*')), added(0.5), &spread);
            }
        }
        table.row(row);
    }
    println!("{rounds} rounds, interleaved:\n\n{}", table.text());
    Ok(())
}

/// Written pages, and pages of files that only this process maps, KiB.
#[derive(Default)]
struct Memory {
    dirty: Series,
    clean: Series,
}

impl Memory {
    fn add(&mut self, process: &Running) -> std::io::Result<()> {
        let (dirty, clean) = process.private_kib()?;
        self.dirty.push(dirty as f64);
        self.clean.push(clean as f64);
        Ok(())
    }
}

fn idle(library: &Path, directory: &Directory) -> Result<(), Box<dyn Error>> {
    let (mut without, mut with) = (Memory::default(), Memory::default());
    let mut wake_ups = Series::default();
    for pair in 0..MEMORY_PAIRS {
        let plain = Running::start(children::command("/bin/sleep", None).arg("120"))?;
        plain.wait_until_idle(None)?;
        without.add(&plain)?;
        drop(plain);
        let socket = directory.path(&format!("idle-{pair}.sock"));
        let profiled = Running::start(with_agent("/bin/sleep", library, &socket).arg("120"))?;
        // The socket is there only if the library is the agent and could start.
        profiled.wait_until_idle(Some(&socket))?;
        with.add(&profiled)?;
        if pair + 1 == MEMORY_PAIRS {
            let (before, _) = profiled.switches_of_others();
            std::thread::sleep(WATCHED);
            let (after, threads) = profiled.switches_of_others();
            println!("threads of the idle agent: {threads}");
            wake_ups.push(after.saturating_sub(before) as f64 * 60.0 / WATCHED.as_secs_f64());
        }
    }
    let mut table = Table::new(&["idle /bin/sleep", "without", "with", "added", "min–max with"]);
    for (name, without, with) in [
        ("written pages, KiB", &without.dirty, &with.dirty),
        ("pages of files only this process maps, KiB", &without.clean, &with.clean),
    ] {
        let figure = |value: f64| format!("{value:.0}");
        let (before, after) = (without.median(), with.median());
        table.row(vec![name.into(), figure(before), figure(after), figure(after - before), with.spread(0)]);
    }
    let watched = WATCHED.as_secs();
    println!("wake-ups of the agent: {} a minute (watched for {watched} s)\n", wake_ups.median());
    figure("idle wake-ups", wake_ups.median(), &format!("watched for {watched} s"));
    let private = with.dirty.median() - without.dirty.median();
    figure("idle memory", private, &format!("{} in all", with.dirty.spread(0)));
    println!("{}", table.text());
    Ok(())
}
