//! `perf record` of one program's CPU clock, switched on and off by its control pipe.

use crate::children::{self, Running};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A perf that is attached to a program.
#[derive(Debug)]
pub struct Perf {
    /// perf itself.
    pub process: Running,
    control: File,
    answers: File,
}

impl Perf {
    /// Attaches it; it does not record yet. What it records goes nowhere.
    pub fn attach(pid: u32, hz: u32, call_graph: &str, folder: &Path) -> io::Result<Perf> {
        let (control, answers) =
            (folder.join(format!("perf-{pid}-control")), folder.join(format!("perf-{pid}-answers")));
        make_pipe(&control)?;
        make_pipe(&answers)?;
        let mut command = children::command("perf", None);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.args(["record", "-q", "-e", "cpu-clock", "-F", &hz.to_string(), "--call-graph", call_graph]);
        command.args(["-p", &pid.to_string(), "-o", "/dev/null", "-D", "-1"]);
        command.arg(format!("--control=fifo:{},{}", control.display(), answers.display()));
        let process = Running::start(&mut command)?;
        // Both ends at once, so that no opening waits for a perf that could not start.
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let mut perf = Perf { process, control: open(&control)?, answers: open(&answers)? };
        perf.tell("ping").map(|()| perf)
    }

    /// Says a word and waits until it was done.
    pub fn tell(&mut self, word: &str) -> io::Result<()> {
        self.control.write_all(format!("{word}\n").as_bytes())?;
        while !self.answered()? {
            if self.process.child().try_wait()?.is_some() {
                return Err(io::Error::other("perf ended: is it installed and allowed?"));
            }
        }
        Ok(())
    }

    /// Whether an answer came in a tenth of a second.
    fn answered(&mut self) -> io::Result<bool> {
        use std::os::fd::AsRawFd;
        let mut poll = libc::pollfd { fd: self.answers.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, ours.
        if unsafe { libc::poll(&mut poll, 1, 100) } <= 0 {
            return Ok(false);
        }
        self.answers.read(&mut [0; 64]).map(|length| length > 0)
    }
}

fn make_pipe(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let _ = std::fs::remove_file(path);
    // SAFETY: a C string.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
