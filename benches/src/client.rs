//! Requests to an agent whose whole answer is read: recordings of a fixed length, and the agent's
//! state.

use serde_json::Value;
use std::io;
use std::path::Path;
use swipr_c_tests::http;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// Its text, out of its chunks.
    pub body: String,
    /// The figures that came with it, `name=number`.
    pub stats: String,
}

impl Answer {
    /// One of the figures; 0 if it did not come.
    pub fn stat(&self, name: &str) -> u64 {
        let value = |pair: &str| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok();
        self.stats.split(' ').find_map(value).unwrap_or(0)
    }
}

/// Asks for `target` and reads all of the answer.
pub fn get(socket: &Path, target: &str) -> io::Result<Answer> {
    let answer = http::get(socket, target)?.read_all()?;
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    if answer.status != 200 {
        let start: String = body.chars().take(300).collect();
        return Err(io::Error::other(format!("{target}: {} {start}", answer.status)));
    }
    Ok(Answer { body, stats: answer.field("x-swipr-stats").unwrap_or_default().to_owned() })
}

/// The agent's state.
pub fn status(socket: &Path) -> io::Result<Value> {
    serde_json::from_str(&get(socket, "/status")?.body).map_err(io::Error::other)
}
