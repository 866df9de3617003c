//! Why there is no table for an object.

use std::fmt;

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// More code than a program has.
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
    },
    /// There is nothing to unwind with.
    NoRows,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLarge { bytes } => write!(f, "cannot use code of {bytes} bytes: over the limit"),
            Error::NoRows => write!(f, "cannot build an unwind table: no frame descriptions"),
        }
    }
}

impl std::error::Error for Error {}
