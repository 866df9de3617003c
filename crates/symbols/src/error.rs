//! What can go wrong with an object file. Every one of these ends as "fewer names"
//! or "no table" for one object, never as a failure of the whole.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why an object file, or a part of it, is not used.
#[derive(Debug)]
pub enum Error {
    /// The file cannot be opened or read.
    Io {
        /// What was read.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Not a regular file.
    NotAFile(PathBuf),
    /// A file, section or code range larger than its limit.
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size in bytes.
        bytes: u64,
    },
    /// The bytes are not what they should be.
    Malformed(&'static str),
    /// The file's build id is not the one that was asked for: the file was replaced.
    BuildIdDiffers(PathBuf),
    /// The file is not the one that was loaded: another has taken its place.
    FileDiffers(PathBuf),
}

impl Error {
    pub(crate) fn io(path: &Path, source: io::Error) -> Error {
        Error::Io { path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Error::NotAFile(path) => write!(f, "cannot read {}: not a regular file", path.display()),
            Error::TooLarge { what, bytes } => {
                write!(f, "cannot use {what} of {bytes} bytes: over the limit")
            }
            Error::Malformed(what) => write!(f, "cannot parse {what}"),
            Error::BuildIdDiffers(path) => {
                write!(f, "cannot use {}: its build id is not that of the loaded object", path.display())
            }
            Error::FileDiffers(path) => {
                write!(f, "cannot use {}: it is not the file that was loaded", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
