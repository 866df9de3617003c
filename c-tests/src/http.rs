//! A small HTTP/1.1 client over a Unix socket: one request, one answer, read as it
//! comes. It understands chunked bodies with trailers and nothing it does not need;
//! being strict is its use here: what it cannot read, `curl` might still forgive.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// No answer may keep a test or a bench waiting longer than this between two bytes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// An answer whose head has come; the body follows through [`Answer::read_more`].
#[derive(Debug)]
pub struct Answer {
    stream: UnixStream,
    unread: Vec<u8>,
    framing: Framing,
    fields: Vec<(String, String)>,
    /// The status code.
    pub status: u16,
    /// What has come of the body.
    pub body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Chunked,
    Bytes(usize),
    UntilClosed,
    Ended,
}

/// Sends `GET target` and waits for the answer's head.
pub fn get(socket: &Path, target: &str) -> io::Result<Answer> {
    send(socket, "GET", target, "")
}

/// Where the agent of this socket listens by TCP, by its help: `SWIPR_LISTEN=127.0.0.1:0` has it
/// choose a port. One that was free a moment before may be another program's.
pub fn tcp_address(socket: &Path) -> String {
    let answer = get(socket, "/").and_then(Answer::read_all).expect("the help");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let page = text.lines().find_map(|line| line.strip_prefix("http://")?.strip_suffix('/'));
    page.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Sends a request and waits for the answer's head.
pub fn send(socket: &Path, method: &str, target: &str, body: &str) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{length}\r\n");
    stream.write_all(format!("{head}{body}").as_bytes())?;

    let mut unread = Vec::new();
    let end = loop {
        if let Some(end) = find(&unread, b"\r\n\r\n") {
            break end;
        }
        if fill(&mut stream, &mut unread)? == 0 {
            return Err(malformed("the connection ended before the answer's head"));
        }
    };
    let head = String::from_utf8_lossy(&unread[..end]).into_owned();
    unread.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.strip_prefix("HTTP/1.1 "))
        .and_then(|rest| rest.get(..3))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| malformed("no status line"))?;
    let fields = lines.filter_map(field).collect();
    let mut answer =
        Answer { stream, unread, framing: Framing::UntilClosed, fields, status, body: Vec::new() };
    if answer.field("transfer-encoding") == Some("chunked") {
        answer.framing = Framing::Chunked;
    } else if let Some(length) = answer.field("content-length") {
        let length = length.parse().map_err(|_| malformed("content-length"))?;
        answer.framing = Framing::Bytes(length);
    }
    Ok(answer)
}

impl Answer {
    /// A header or trailer field by its lower-case name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut found = self.fields.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// The rest of the body, at most until the answer ends.
    pub fn read_all(mut self) -> io::Result<Self> {
        while self.read_more()? {}
        Ok(self)
    }

    /// Waits for more of the body; false when the answer has ended.
    pub fn read_more(&mut self) -> io::Result<bool> {
        let before = self.body.len();
        loop {
            self.decode()?;
            if self.framing == Framing::Ended {
                return Ok(false);
            }
            if self.body.len() > before {
                return Ok(true);
            }
            if fill(&mut self.stream, &mut self.unread)? == 0 {
                if self.framing != Framing::UntilClosed {
                    return Err(malformed("the connection ended in the middle of the body"));
                }
                self.framing = Framing::Ended;
            }
        }
    }

    /// Moves what is whole from `unread` to `body`.
    fn decode(&mut self) -> io::Result<()> {
        match self.framing {
            Framing::Ended => {}
            Framing::UntilClosed => self.body.append(&mut self.unread),
            Framing::Bytes(length) => {
                self.body.append(&mut self.unread);
                if self.body.len() >= length {
                    self.framing = Framing::Ended;
                }
            }
            Framing::Chunked => {
                let mut consumed = 0;
                while let Some(used) = self.decode_chunk(consumed)? {
                    consumed = used;
                }
                self.unread.drain(..consumed);
            }
        }
        Ok(())
    }

    /// Takes the chunk that starts at `from`; the place behind it, when it is whole.
    fn decode_chunk(&mut self, from: usize) -> io::Result<Option<usize>> {
        if self.framing == Framing::Ended {
            return Ok(None);
        }
        let rest = &self.unread[from..];
        let Some(end_of_size) = find(rest, b"\r\n") else {
            return Ok(None);
        };
        let size = std::str::from_utf8(&rest[..end_of_size])
            .ok()
            .and_then(|text| usize::from_str_radix(text, 16).ok())
            .ok_or_else(|| malformed("the size of a chunk"))?;
        let start = end_of_size + 2;
        if size == 0 {
            return Ok(self.decode_trailer(from + start));
        }
        let Some(chunk) = rest.get(start..start + size + 2) else {
            return Ok(None);
        };
        if !chunk.ends_with(b"\r\n") {
            return Err(malformed("the end of a chunk"));
        }
        self.body.extend_from_slice(&chunk[..size]);
        Ok(Some(from + start + size + 2))
    }

    /// Takes the trailer fields that start at `from`; the place behind the empty line.
    fn decode_trailer(&mut self, from: usize) -> Option<usize> {
        let mut at = from;
        let mut fields = Vec::new();
        loop {
            let rest = &self.unread[at..];
            let end = find(rest, b"\r\n")?;
            at += end + 2;
            if end == 0 {
                break;
            }
            fields.extend(field(&String::from_utf8_lossy(&rest[..end])));
        }
        self.fields.append(&mut fields);
        self.framing = Framing::Ended;
        Some(at)
    }
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_string()))
}

/// Reads again after `EINTR`: a read with a time limit is not restarted by the kernel
/// (signal(7)), and a test beside this one that starts a program at the moment when its
/// last one ends makes such a signal: `SIGCHLD` is not ignored while `fork` blocks it.
fn fill(stream: &mut UnixStream, buffer: &mut Vec<u8>) -> io::Result<usize> {
    let mut bytes = [0; 65536];
    loop {
        match stream.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(got) => {
                buffer.extend_from_slice(&bytes[..got]);
                return Ok(got);
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::Directory;
    use std::os::unix::net::UnixListener;

    /// What a client reads that `serve` answers.
    fn answer_of(serve: impl FnOnce(&mut UnixStream) + Send + 'static) -> io::Result<Answer> {
        let directory = Directory::new();
        let path = directory.path().join("s");
        let listener = UnixListener::bind(&path).expect("a socket");
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            let _ = client.read(&mut request);
            serve(&mut client);
        });
        let answer = get(&path, "/").and_then(Answer::read_all);
        server.join().expect("the server");
        answer
    }

    /// What a client reads if `pieces` are sent, one write each.
    fn answer_in(pieces: &'static [&'static str]) -> io::Result<Answer> {
        answer_of(move |client| {
            for piece in pieces {
                let _ = client.write_all(piece.as_bytes());
            }
        })
    }

    #[test]
    fn a_chunked_body_is_put_together_and_its_trailer_is_a_field() {
        let answer = answer_in(&[
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n",
            "\r\n5\r\nhe",
            "llo\r\n2\r\n\r\n\r\n0\r\nX-Swipr-Stats: ticks=3\r\n",
            "\r\n",
        ])
        .expect("an answer");
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello\r\n"[..]));
        assert_eq!(answer.field("x-swipr-stats"), Some("ticks=3"));
    }

    /// Regression: a test failed because of a signal that was not for its thread.
    #[test]
    fn a_signal_does_not_end_the_wait_for_an_answer() {
        extern "C" fn nothing(_: libc::c_int) {}
        let handler = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler does nothing, and no other test here uses SIGUSR1.
        unsafe { libc::signal(libc::SIGUSR1, handler) };
        // SAFETY: it only returns this thread's handle.
        let reader = unsafe { libc::pthread_self() };
        let answer = answer_of(move |client| {
            for _ in 0..50 {
                // SAFETY: `reader` waits for this thread's answer, and joins it.
                unsafe { libc::pthread_kill(reader, libc::SIGUSR1) };
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        });
        assert_eq!(answer.expect("an answer").status, 200);
    }

    #[test]
    fn a_body_that_is_cut_off_is_an_error() {
        let cut = answer_in(&["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe"]);
        assert!(cut.is_err());
        let short = answer_in(&["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"]);
        assert!(short.is_err());
    }
}
