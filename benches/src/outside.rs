//! Profilers that are programs of their own: they attach to a running program and record until they
//! are interrupted.

use crate::children::{self, Directory, Running};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What one needs until it samples; they do not say when they begin.
const BEGINNING: Duration = Duration::from_millis(1500);
/// How long one may take to write what it recorded.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the kernel lets everybody record.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
/// What samply wants there. The kernel would let root record anyway; samply reads the file and
/// refuses.
const WANTED: i32 = 1;

/// A setting of this system that a profiler refuses, though it may record.
#[derive(Debug)]
pub struct Paranoid {
    setting: i32,
    instead: PathBuf,
}

impl Paranoid {
    /// `None`: it is as wanted, or we are not root.
    pub fn for_root(directory: &Directory) -> io::Result<Option<Paranoid>> {
        let setting = std::fs::read_to_string(PARANOID).ok().and_then(|text| text.trim().parse().ok());
        let Some(setting) = setting.filter(|&setting| setting > WANTED && is_root()) else {
            return Ok(None);
        };
        let instead = directory.path("perf_event_paranoid");
        std::fs::write(&instead, format!("{WANTED}\n"))?;
        Ok(Some(Paranoid { setting, instead }))
    }

    /// The command in a mount namespace of its own, where it reads [`WANTED`].
    pub fn hidden_from(&self, command: &str) -> Vec<String> {
        let mounted = format!("mount --bind {} {PARANOID} && exec {command}", self.instead.display());
        ["unshare", "-m", "sh", "-c", &mounted].map(str::to_string).to_vec()
    }

    /// What is to be said of it.
    pub fn legend(&self) -> String {
        format!(
            "kernel.perf_event_paranoid is {}; it reads {WANTED} in a mount namespace of its own, and is root",
            self.setting
        )
    }
}

fn is_root() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// How to start it, and the one that runs.
#[derive(Debug)]
pub struct Outside {
    arguments: Vec<String>,
    running: Option<Running>,
}

impl Outside {
    /// One that does not run yet: the program's name and its arguments.
    pub fn new(arguments: Vec<String>) -> Outside {
        Outside { arguments, running: None }
    }

    /// Starts it.
    pub fn begin(&mut self) -> io::Result<()> {
        let (name, arguments) = self.arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = children::command(name, None);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).args(arguments);
        let mut running = Running::start(&mut command)?;
        std::thread::sleep(BEGINNING);
        if running.child().try_wait()?.is_some() {
            return Err(io::Error::other(
                "it ended at once; kernel.perf_event_paranoid may be too high for it",
            ));
        }
        self.running = Some(running);
        Ok(())
    }

    /// Interrupts it and waits until it has written what it recorded.
    pub fn end(&mut self) -> io::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        // SAFETY: a signal to our own child, which has not been reaped.
        unsafe { libc::kill(running.pid() as i32, libc::SIGINT) };
        let stopped = Instant::now();
        while running.child().try_wait()?.is_none() && stopped.elapsed() < TIMEOUT {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Its CPU time, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.running.as_ref().map_or(0, Running::cpu_ns)
    }
}
