//! samply, which attaches to a running program and records it until it is interrupted.

use crate::children::{self, Running};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What it needs until it samples; it does not say when it begins.
const BEGINNING: Duration = Duration::from_millis(1500);
/// How long it may take to write its profile.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start it, and the one that runs.
#[derive(Debug)]
pub struct Samply {
    pid: u32,
    hz: u32,
    output: PathBuf,
    running: Option<Running>,
}

impl Samply {
    /// One that does not run yet.
    pub fn new(pid: u32, hz: u32, folder: &Path) -> Samply {
        Samply { pid, hz, output: folder.join("samply.json"), running: None }
    }

    /// Starts it.
    pub fn begin(&mut self) -> io::Result<()> {
        let mut command = children::command("samply", None);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.args([
            "record",
            "--save-only",
            "-r",
            &self.hz.to_string(),
            "-p",
            &self.pid.to_string(),
            "-o",
        ]);
        let mut running = Running::start(command.arg(&self.output))?;
        std::thread::sleep(BEGINNING);
        if running.child().try_wait()?.is_some() {
            return Err(io::Error::other(
                "samply ended: it wants kernel.perf_event_paranoid to be 1 or lower",
            ));
        }
        self.running = Some(running);
        Ok(())
    }

    /// Interrupts it and waits until it has written its profile.
    pub fn end(&mut self) -> io::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        // SAFETY: a signal to our own child, which has not been reaped.
        unsafe { libc::kill(running.pid() as i32, libc::SIGINT) };
        let stopped = Instant::now();
        while running.child().try_wait()?.is_none() && stopped.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Its CPU time, nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        self.running.as_ref().map_or(0, Running::cpu_ns)
    }
}
