//! Profilers that are programs of their own: they attach to a running program and record until they are interrupted.

use crate::children::{self, Running};
use std::io;
use std::time::{Duration, Instant};

/// What one needs until it samples; they do not say when they begin.
const BEGINNING: Duration = Duration::from_millis(1500);
/// How long one may take to write what it recorded.
const PATIENCE: Duration = Duration::from_secs(60);

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
