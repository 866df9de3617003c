//! What is wrong with a file.

use std::fmt;

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A line makes no sense.
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong.
        what: String,
    },
    /// It has no beginning.
    NoHeader,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Line { number, what } => write!(f, "line {number}: {what}"),
            Error::NoHeader => {
                write!(f, "neither a raw recording of swipr's nor lines of swift-profile-recorder's")
            }
        }
    }
}

impl std::error::Error for Error {}
