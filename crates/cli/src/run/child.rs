//! The program that runs: started with the library, sent this command's signals, waited for.

use crate::error::{Error, Exit};
use crate::inherited;
use crate::process::Process;
use crate::signals::Signals;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Has the loader put the library into the program.
fn preload(command: &mut Command, library: &Path, start: &Start<'_>) {
    let others = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    command.env("LD_PRELOAD", in_front_of(library, others.as_bytes()));
    // A shared AddressSanitizer ends a program in which a library comes before it.
    let mut options = std::env::var_os("ASAN_OPTIONS").filter(|given| !given.is_empty()).unwrap_or_default();
    options.push(if options.is_empty() { "" } else { ":" });
    options.push("verify_asan_link_order=0");
    command.env("ASAN_OPTIONS", options);
    // The id shows which process it is. The rest is new after exec(2), also of the same process.
    command.env("SWIPR_SOCKET", start.folder.join("{PID}-{UUID}.sock"));
    let recorder = match start.children {
        Children::AreRecorded => format!("all:{}", std::process::id()),
        Children::AreNot => std::process::id().to_string(),
    };
    command.env("SWIPR_RECORDER", recorder);
}

/// The library and what is to be preloaded besides, without other copies of it (ld.so(8)).
fn in_front_of(library: &Path, others: &[u8]) -> OsString {
    let is_copy = |path: &[u8]| {
        path.rsplit(|&byte| byte == b'/').next().is_some_and(|name| name.starts_with(b"libswipr"))
    };
    let others = others.split(|byte| b": ".contains(byte)).filter(|path| !path.is_empty() && !is_copy(path));
    let mut libraries = library.as_os_str().to_owned();
    for other in others {
        libraries.push(":");
        libraries.push(OsStr::from_bytes(other));
    }
    libraries
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildExit {
    /// By exit, with this status.
    Status(u8),
    /// By this signal.
    Signal(i32),
}

/// Whether the program's children are recorded, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// They are: they wait for that as well.
    AreRecorded,
    /// They are not.
    AreNot,
}

/// What is started, and how.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// The agent's library; `None`: it cannot be loaded into the program, which is started as it
    /// is.
    pub library: Option<&'a Path>,
    /// Where sockets are made.
    pub folder: &'a Path,
    /// Whether children wait, too.
    pub children: Children,
}

/// See the module's text.
#[derive(Debug)]
pub struct Child(std::process::Child);

impl Child {
    /// Starts the program. With the library in it, it waits until it is recorded.
    pub fn start(start: &Start<'_>, signals: &Signals) -> Result<Child, Error> {
        let (program, arguments) =
            start.words.split_first().map_or(("".as_ref(), &[][..]), |(p, a)| (p.as_os_str(), a));
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(library) = start.library {
            preload(&mut command, library, start);
        }
        let started = inherited::handed_on(signals.unblocked(&mut command)).spawn();
        started.map(Child).map_err(|error| {
            let what = format!("cannot start {}: {error}", program.display());
            match error.kind() {
                io::ErrorKind::NotFound => {
                    Error::new(what, "check its name, and the interpreter in its first line")
                        .exit(Exit::NoProgram)
                }
                _ => Error::new(what, "check that it is a program, and that you may execute it")
                    .exit(Exit::CannotStart),
            }
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Stops this command if the program has stopped as at Ctrl-Z, so that a shell has its terminal
    /// back. Not at SIGSTOP: its senders continue the program alone.
    fn stop_with_it(&self) {
        if !self.is_suspended() {
            return;
        }
        // SAFETY: raise(3) and kill(2) take values. The id is the child's: it has not been waited
        // for.
        unsafe {
            libc::raise(libc::SIGSTOP);
            if self.is_suspended() {
                libc::kill(self.pid().cast_signed(), libc::SIGCONT);
            }
        }
    }

    fn is_suspended(&self) -> bool {
        const OF_TERMINALS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        // SAFETY: it is a stop, which has a number.
        self.found(libc::WSTOPPED).is_some_and(|it| OF_TERMINALS.contains(&unsafe { it.si_status() }))
    }

    /// What waitid(2) says of the program, which stays to be waited for.
    fn found(&self, options: i32) -> Option<libc::siginfo_t> {
        // SAFETY: zeros are valid; waitid(2) writes to it.
        unsafe {
            let mut about: libc::siginfo_t = std::mem::zeroed();
            let options = options | libc::WNOHANG | libc::WNOWAIT;
            let found = libc::waitid(libc::P_PID, self.pid(), &mut about, options);
            (found == 0 && about.si_pid() != 0).then_some(about)
        }
    }

    /// Hands it the signals that came. It already has those that the terminal sends: it is in the
    /// foreground together with this command.
    pub fn hand_on(&self, signals: &Signals) {
        while let Some(signal) = signals.next(Duration::ZERO) {
            if signal.number == libc::SIGCHLD {
                self.stop_with_it();
            } else if !signal.from_kernel {
                // SAFETY: kill(2) takes no pointer. The id is the child's: it has not been waited
                // for.
                unsafe { libc::kill(self.pid().cast_signed(), signal.number) };
            }
        }
    }

    /// The CPU time of all its threads, and that of its children if they are recorded, once it has
    /// ended and until [`Child::ended`] says so.
    pub fn cpu_time(&self, children: Children) -> Option<Duration> {
        let process = self.found(libc::WEXITED).and_then(|_| Process::new(self.pid()))?;
        match children {
            Children::AreRecorded => process.cpu_time_with_children(),
            Children::AreNot => process.cpu_time(),
        }
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ChildExit> {
        // An error: there is no such child any more.
        let Ok(status) = self.0.try_wait() else { return Some(ChildExit::Status(1)) };
        let status = status?;
        Some(match status.signal() {
            Some(number) => ChildExit::Signal(number),
            None => ChildExit::Status(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_else_is_preloaded_stays_but_for_other_copies_of_the_library() {
        let with = |others: &str| in_front_of(Path::new("/own/libswipr.so"), others.as_bytes());
        assert_eq!(with(""), "/own/libswipr.so");
        let others = "/usr/lib/libswipr.so:libjemalloc.so.2 libswipr.so.0::/a/libx.so";
        assert_eq!(with(others), "/own/libswipr.so:libjemalloc.so.2:/a/libx.so");
    }
}
