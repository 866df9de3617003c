//! Requests to an agent whose whole answer is read: recordings of a fixed length, and the agent's
//! state.

use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// No byte of an answer is waited for longer.
const PATIENCE: Duration = Duration::from_secs(120);

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
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    parse(&text)
        .ok_or_else(|| io::Error::other(format!("{target}: {}", text.chars().take(300).collect::<String>())))
}

/// The agent's state.
pub fn status(socket: &Path) -> io::Result<Value> {
    serde_json::from_str(&get(socket, "/status")?.body).map_err(io::Error::other)
}

fn parse(text: &str) -> Option<Answer> {
    let (head, rest) = text.split_once("\r\n\r\n")?;
    if !head.starts_with("HTTP/1.1 200") {
        return None;
    }
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let (body, trailer) = if chunked { join_chunks(rest)? } else { (rest.to_string(), "") };
    let field = |line: &str| line.strip_prefix("X-Swipr-Stats: ").map(str::to_string);
    let stats = head.lines().chain(trailer.lines()).find_map(field).unwrap_or_default();
    Some(Answer { body, stats })
}

/// The bytes of all chunks, and what follows the last.
fn join_chunks(mut rest: &str) -> Option<(String, &str)> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some((body, after));
        }
        body.push_str(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_and_the_trailer_is_found() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                    3\r\nabc\r\n1\r\nd\r\n0\r\nX-Swipr-Stats: ticks=7 late=1\r\n\r\n";
        let answer = parse(text).unwrap();
        assert_eq!((answer.body.as_str(), answer.stat("ticks"), answer.stat("dropped")), ("abcd", 7, 0));
    }

    #[test]
    fn an_answer_that_is_cut_or_refused_is_none() {
        assert!(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab").is_none());
        assert!(parse("HTTP/1.1 404 Not Found\r\n\r\n").is_none());
    }
}
