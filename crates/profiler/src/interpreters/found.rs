//! What was found of an interpreter.

use swipr_runtimes::merge::RuntimeCode;
use swipr_runtimes::runtime::Runtime;

/// One whose frames can be read.
#[derive(Debug)]
pub struct FoundRuntime {
    pub runtime: Runtime,
    pub code: RuntimeCode,
    /// Its name and version.
    pub name: String,
}

/// Why the frames of the one with that name are not read, for the status. The command knows the
/// last words.
pub fn because(name: &str, why: &str) -> String {
    format!("{name}: {why}: shown as the interpreter's functions")
}

/// Why its frames are not read.
#[derive(Debug)]
pub enum NotRead {
    /// For this reason, for the status.
    Because(String),
    /// It has not started, so that its kind is not known.
    NotYet,
}

impl NotRead {
    /// For this reason.
    pub fn because(name: &str, why: &str) -> NotRead {
        NotRead::Because(because(name, why))
    }

    /// There is no row for this version.
    pub fn unknown_version(name: &str) -> NotRead {
        NotRead::because(name, "this version's structures are not known")
    }

    /// It does not export what is needed.
    pub fn hidden(name: &str) -> NotRead {
        NotRead::because(name, "it does not export what is needed")
    }
}
