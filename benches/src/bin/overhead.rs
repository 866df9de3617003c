//! What a recording costs the program that is recorded: CPU time of two busy threads, with and without.
//!
//! `cargo build --release -p swipr --features preload`, then
//! `cargo run --release -p swipr-benches --bin overhead -- [PAIRS]`

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};
use swipr_benches::busy::{self, Unit};
use swipr_benches::children::{self, Directory, Running, agent_library, gperftools};
use swipr_benches::figures::{Series, Table};
use swipr_benches::machine;
use swipr_benches::recorder::Recorder;

/// The argument that makes this program the one that is recorded.
const BUSY: &str = "--busy";
/// The signal that switches gperftools on and off.
const SWITCH: i32 = libc::SIGUSR2;
/// How long the sampler may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let argument = std::env::args().nth(1);
    if argument.as_deref() == Some(BUSY) {
        return Ok(busy::main()?);
    }
    let pairs: usize = argument.map_or(Ok(20), |text| text.parse())?;
    let library = agent_library()?;
    let directory = Directory::new()?;
    println!("{}\n{pairs} pairs with and without, interleaved\n", machine::description());
    let mut table = Table::new(&[
        "recorded by",
        "CPU of the busy threads, with / without",
        "quartiles of the pairs",
        "CPU of the process, with / without",
        "quartiles of the pairs",
    ]);
    for hz in [100, 1000] {
        let mut measured =
            vec![("nobody", Profiler::Nobody), ("swipr", Profiler::Swipr(directory.path("busy.sock")))];
        if let Some(peer) = gperftools() {
            measured.push(("gperftools", Profiler::Gperftools(peer, directory.path("gperftools"))));
        }
        for (name, profiler) in measured {
            let (threads, process) = measure(&profiler, &library, hz, pairs)?;
            let mut row = vec![format!("{name}, {hz} Hz")];
            for ratios in [threads, process] {
                row.push(format!("{:.4}", ratios.median()));
                row.push(format!("{:.4}–{:.4}", ratios.percentile(0.25), ratios.percentile(0.75)));
            }
            table.row(row);
        }
    }
    println!("{}", table.text());
    Ok(())
}

enum Profiler {
    /// Shows how far two units differ by themselves.
    Nobody,
    Swipr(PathBuf),
    Gperftools(PathBuf, PathBuf),
}

/// The program that is recorded.
struct Busy {
    process: Running,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Busy {
    fn start(profiler: &Profiler, library: &Path, hz: u32) -> Result<Busy, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        let preloaded = match profiler {
            Profiler::Nobody => None,
            Profiler::Swipr(_) => Some(library),
            Profiler::Gperftools(peer, _) => Some(peer.as_path()),
        };
        let mut command = children::command(&program.to_string_lossy(), preloaded);
        match profiler {
            Profiler::Nobody => {}
            Profiler::Swipr(socket) => _ = command.env("SWIPR_SOCKET", socket),
            Profiler::Gperftools(_, file) => {
                command.env("CPUPROFILE", file).env("CPUPROFILESIGNAL", SWITCH.to_string());
                command.env("CPUPROFILE_FREQUENCY", hz.to_string());
            }
        }
        command.arg(BUSY).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Running::start(&mut command)?;
        let pipes = process.child().stdin.take().zip(process.child().stdout.take());
        let (input, output) = pipes.ok_or("no pipes to the busy program")?;
        Ok(Busy { process, input, output: BufReader::new(output) })
    }

    fn unit(&mut self) -> Result<Unit, Box<dyn Error>> {
        self.input.write_all(b"\n")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(Unit::parse(&line).ok_or("the busy program ended")?)
    }

    /// A unit of work while it is being recorded.
    fn recorded_unit(&mut self, profiler: &Profiler, hz: u32) -> Result<Unit, Box<dyn Error>> {
        match profiler {
            Profiler::Nobody => self.unit(),
            Profiler::Swipr(socket) => {
                let recorder = Recorder::start(socket, hz)?;
                let unit = self.unit();
                if recorder.stop() == 0 {
                    return Err("the recording was empty".into());
                }
                let stopped = Instant::now();
                while self.process.has_thread("swipr-writer") {
                    if stopped.elapsed() > PATIENCE {
                        return Err("the recording did not end".into());
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                unit
            }
            Profiler::Gperftools(..) => {
                self.switch();
                let unit = self.unit();
                self.switch();
                unit
            }
        }
    }

    fn switch(&mut self) {
        // SAFETY: a signal to our own child, which has not been reaped.
        unsafe { libc::kill(self.process.child().id() as i32, SWITCH) };
    }
}

/// Ratios of the busy threads' CPU time, and of the process's, with and without a recording.
fn measure(
    profiler: &Profiler,
    library: &Path,
    hz: u32,
    pairs: usize,
) -> Result<(Series, Series), Box<dyn Error>> {
    let mut busy = Busy::start(profiler, library, hz)?;
    let (mut threads, mut process) = (Series::default(), Series::default());
    busy.unit()?;
    busy.recorded_unit(profiler, hz)?;
    for pair in 0..pairs {
        // Every second pair the other way around, so that a drift falls on both.
        let (without, with) = if pair % 2 == 0 {
            let without = busy.unit()?;
            (without, busy.recorded_unit(profiler, hz)?)
        } else {
            let with = busy.recorded_unit(profiler, hz)?;
            (busy.unit()?, with)
        };
        threads.push(with.threads_ns as f64 / without.threads_ns as f64);
        process.push(with.process_ns as f64 / without.process_ns as f64);
    }
    Ok((threads, process))
}
