//! Threads of this command. Where its user or its container may have no more, that is an error in
//! words: in such an incident the command is needed.

use crate::error::Error;
use std::io;
use std::thread::Builder;

/// Runs `body` on a thread of its own.
pub fn start(body: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    Builder::new().spawn(body).map(drop).map_err(|error: io::Error| {
        let next = "its user or its container may have no more threads (ulimit -u, pids.max): end some processes, or be another user";
        Error::new(format!("cannot start a thread: {error}"), next)
    })
}
