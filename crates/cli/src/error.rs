//! What goes wrong, in words: what was tried on what, and what to do next. Not here: printing it
//! (`main.rs`).

use std::fmt;

/// How the command ends; `docs/cli.md` and `swipr --help` list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Something could not be done, or there was nothing to record.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// There is no such process, or it cannot be profiled.
    NotProfilable = 3,
    /// Nobody reads the output any more. The command ends without a word, by SIGPIPE.
    NoReader = 141,
    /// `run`: swipr could not start the program, or nothing was recorded and that was not to be.
    RunFailed = 125,
    /// `run`: the program is there and cannot be started.
    CannotStart = 126,
    /// `run`: there is no such program.
    NoProgram = 127,
}

/// An error that the user reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Lower-case phrase: what was tried on what, and why it failed.
    pub what: String,
    /// What to do next.
    pub next: String,
    /// How the command ends.
    pub exit: Exit,
}

impl Error {
    /// A failure, and what to do next.
    pub fn new(what: impl Into<String>, next: impl Into<String>) -> Error {
        Error { what: what.into(), next: next.into(), exit: Exit::Failed }
    }

    /// The same with another exit status.
    pub fn exit(self, exit: Exit) -> Error {
        Error { exit, ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "swipr: {}\nnext: {}", self.what, self.next)
    }
}

impl std::error::Error for Error {}
