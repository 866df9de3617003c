//! Why nothing listens.

use super::address;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why nothing listens.
#[derive(Debug)]
pub enum ListenError {
    /// The path does not fit into an address (unix(7): 108 bytes with the final NUL).
    TooLong {
        /// The path or abstract name.
        name: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// Another process listens there.
    InUse(String),
    /// Something that is no socket, or another user's socket, is in the way.
    InTheWay(String),
    /// A directory cannot be trusted.
    Directory {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The operating system refused.
    System {
        /// What was tried on what.
        tried: String,
        /// Its reason.
        source: io::Error,
    },
    /// None of the default places works: each with its reason.
    Nowhere(Vec<ListenError>),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenError::TooLong { name, bytes } => write!(
                f,
                "cannot bind {name}: {bytes} bytes are too many for a socket's path, which has at most {}; choose a shorter one with SWIPR_SOCKET, or options->socket of swipr_start",
                address::MAX_BYTES
            ),
            ListenError::InUse(name) => write!(f, "cannot bind {name}: another process listens there"),
            ListenError::InTheWay(name) => {
                write!(f, "cannot bind {name}: what is there is not a socket of this user")
            }
            ListenError::Directory { path, reason } => {
                write!(f, "cannot use the directory {}: {reason}", path.display())
            }
            ListenError::System { tried, source } => write!(f, "cannot {tried}: {source}"),
            ListenError::Nowhere(errors) => {
                f.write_str("no place for the socket: ")?;
                for (index, error) in errors.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "; " })?;
                    error.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ListenError::System { source, .. } => Some(source),
            _ => None,
        }
    }
}
