//! The profilers whose cost is measured: how each is brought to a running program, switched on and
//! off.

use crate::children::{Directory, Running, agent_library, gperftools};
use crate::outside::{Outside, Paranoid};
use crate::preloaded::{PPROF, PPROF_HZ, library};
use crate::recorder::Recorder;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The signal that switches preloaded peers on and off.
const SWITCH: i32 = libc::SIGUSR2;
/// How long a sampler may take to end.
const TIMEOUT: Duration = Duration::from_secs(10);
/// What a preloaded peer needs to begin or to end.
const SETTLING: Duration = Duration::from_millis(20);

/// A profiler.
#[derive(Debug)]
pub enum Profiler {
    /// Shows how far two units differ by themselves.
    Nobody,
    /// swipr, by its socket.
    Swipr {
        /// The agent.
        library: PathBuf,
        /// Where it listens.
        socket: PathBuf,
    },
    /// A library that a signal switches.
    Preloaded {
        /// What it is called.
        name: &'static str,
        /// The library.
        library: PathBuf,
        /// Environment variables, where the rate goes in for `{hz}`.
        variables: Vec<(&'static str, String)>,
        /// Rates that it is measured at.
        rates: &'static [u32],
    },
    /// A program that attaches.
    Outside {
        /// What it is called.
        name: &'static str,
        /// Its name and arguments, where the rate goes in for `{hz}` and the recorded process for
        /// `{pid}`.
        arguments: Vec<String>,
    },
}

/// A profiler that is ready to record a program.
#[derive(Debug)]
pub enum Attached {
    /// No profiler.
    Nothing,
    /// Where swipr listens, the rate, and the recording.
    Swipr(PathBuf, u32, Option<Recorder>),
    /// The process to send [`SWITCH`] to.
    Switched(u32),
    /// A program that attaches.
    Outside(Outside),
}

/// All that can be measured here.
pub fn all(directory: &Directory) -> io::Result<Vec<Profiler>> {
    let outside = |name, command: &str| {
        let arguments = command.split(' ').map(str::to_string).collect();
        Profiler::Outside { name, arguments }
    };
    let perf = "perf record -q -e cpu-clock -F {hz} -p {pid} -o /dev/null --call-graph";
    let samply = "samply record --save-only -r {hz} -p {pid} -o";
    let samply = format!("{samply} {}", directory.path("samply.json").display());
    let paranoid = Paranoid::for_root(directory)?;
    let mut all = vec![
        Profiler::Nobody,
        Profiler::Swipr { library: agent_library()?, socket: directory.path("busy.sock") },
        outside("perf, stacks copied", &format!("{perf} dwarf")),
        outside("perf, frame pointers", &format!("{perf} fp")),
        match &paranoid {
            Some(paranoid) => {
                println!("samply: {}\n", paranoid.legend());
                Profiler::Outside { name: "samply", arguments: paranoid.hidden_from(&samply) }
            }
            None => outside("samply", &samply),
        },
    ];
    if let Some(library) = gperftools() {
        let variables = vec![
            ("CPUPROFILE", directory.path("gperftools").display().to_string()),
            ("CPUPROFILESIGNAL", SWITCH.to_string()),
            ("CPUPROFILE_FREQUENCY", "{hz}".to_string()),
        ];
        all.push(Profiler::Preloaded { name: "gperftools", library, variables, rates: &[100, 1000] });
    }
    let variables = vec![(PPROF, "-".to_string()), (PPROF_HZ, "{hz}".to_string())];
    all.push(Profiler::Preloaded { name: "pprof-rs", library: library()?, variables, rates: &[100, 1000] });
    match compiled_timers(directory) {
        Ok(library) => {
            for (name, again) in [("per-thread timers", "0"), ("per-thread timers, set again", "1")] {
                let variables =
                    vec![("TIMERS_HZ", "{hz}".to_string()), ("TIMERS_SET_AGAIN", again.to_string())];
                all.push(Profiler::Preloaded { name, library: library.clone(), variables, rates: &[1000] });
            }
        }
        Err(error) => println!("per-thread timers: {error}: left out\n"),
    }
    Ok(all)
}

/// The library of per-thread CPU timers that `benches/accuracy` measures, too.
fn compiled_timers(directory: &Directory) -> io::Result<PathBuf> {
    let library = directory.path("timers.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/accuracy/timers.c");
    let status = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-pthread", source, "-o"])
        .arg(&library)
        .status()?;
    if status.success() { Ok(library) } else { Err(io::Error::other("cc failed")) }
}

impl Profiler {
    /// What it is called in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Profiler::Nobody => "nobody",
            Profiler::Swipr { .. } => "swipr",
            Profiler::Preloaded { name, .. } | Profiler::Outside { name, .. } => name,
        }
    }

    /// Samples a second that it is measured at. Timers of the process or of a thread reach the
    /// kernel's tick at the most, 250 a second here.
    pub fn rates(&self) -> &'static [u32] {
        match self {
            Profiler::Nobody => &[0],
            Profiler::Preloaded { rates, .. } => rates,
            _ => &[100, 1000, 10000],
        }
    }

    /// Recordings that are made of it, of so many that are wanted of swipr: fewer of the peers,
    /// which take longer to begin.
    pub fn recordings(&self, wanted: usize) -> usize {
        match self {
            Profiler::Nobody | Profiler::Swipr { .. } => wanted,
            _ => wanted.div_ceil(2),
        }
    }

    /// What is preloaded into the program.
    pub fn library(&self) -> Option<&Path> {
        match self {
            Profiler::Swipr { library, .. } | Profiler::Preloaded { library, .. } => Some(library),
            _ => None,
        }
    }

    /// Sets the program's environment.
    pub fn prepare(&self, command: &mut Command, hz: u32) {
        match self {
            Profiler::Swipr { socket, .. } => _ = command.env("SWIPR_SOCKET", socket),
            Profiler::Preloaded { variables, .. } => {
                let variables =
                    variables.iter().map(|(name, value)| (name, value.replace("{hz}", &hz.to_string())));
                command.envs(variables);
            }
            _ => {}
        }
    }

    /// Gets ready to record a program that runs.
    pub fn attach(&self, program: &Running, hz: u32) -> io::Result<Attached> {
        Ok(match self {
            Profiler::Nobody => Attached::Nothing,
            Profiler::Swipr { socket, .. } => Attached::Swipr(socket.clone(), hz, None),
            Profiler::Preloaded { .. } => Attached::Switched(program.pid()),
            Profiler::Outside { arguments, .. } => {
                let (hz, pid) = (hz.to_string(), program.pid().to_string());
                let filled = |word: &String| word.replace("{hz}", &hz).replace("{pid}", &pid);
                Attached::Outside(Outside::new(arguments.iter().map(filled).collect()))
            }
        })
    }
}

impl Attached {
    /// Begins to record.
    pub fn begin(&mut self) -> io::Result<()> {
        match self {
            Attached::Nothing => {}
            Attached::Swipr(socket, hz, recorder) => *recorder = Some(Recorder::start(socket, *hz)?),
            Attached::Switched(pid) => switch(*pid),
            Attached::Outside(outside) => outside.begin()?,
        }
        Ok(())
    }

    /// Ends the recording of `program`, and waits until all of it has ended.
    pub fn end(&mut self, program: &Running) -> io::Result<()> {
        match self {
            Attached::Nothing => {}
            Attached::Swipr(_, _, recorder) => {
                if recorder.take().is_none_or(|recorder| recorder.stop() == 0) {
                    return Err(io::Error::other("the recording was empty"));
                }
                let stopped = Instant::now();
                while program.has_thread("swipr-writer") {
                    if stopped.elapsed() > TIMEOUT {
                        return Err(io::Error::other("the recording did not end"));
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            Attached::Switched(pid) => switch(*pid),
            Attached::Outside(outside) => outside.end()?,
        }
        Ok(())
    }

    /// CPU time of a profiler that is a process of its own, nanoseconds.
    pub fn own_cpu_ns(&self) -> u64 {
        match self {
            Attached::Outside(outside) => outside.cpu_ns(),
            _ => 0,
        }
    }
}

fn switch(pid: u32) {
    // SAFETY: a signal to our own child, which has not been reaped.
    unsafe { libc::kill(pid as i32, SWITCH) };
    std::thread::sleep(SETTLING);
}
