//! A client that has a program recorded for as long as this value lives, and throws away what
//! comes.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// No answer is waited for longer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// More than any bench takes; the connection is closed long before.
const SECONDS: u32 = 600;

/// A running recording.
#[derive(Debug)]
pub struct Recorder {
    stream: UnixStream,
    reader: Option<JoinHandle<u64>>,
}

impl Recorder {
    /// Asks the agent at `socket` for a recording and waits until its first bytes come.
    pub fn start(socket: &Path, hz: u32) -> io::Result<Recorder> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let target = format!("/profile?seconds={SECONDS}&hz={hz}&mode=wall&format=perf");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut head = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        // A frame's line begins with a tab: the first stack is there.
        while !head.windows(2).any(|pair| pair == b"\n\t") {
            let length = stream.read(&mut buffer)?;
            head.extend_from_slice(buffer.get(..length).unwrap_or(&[]));
            if length == 0 || !head.starts_with(b"HTTP/1.1 200") {
                return Err(io::Error::other(String::from_utf8_lossy(&head).into_owned()));
            }
        }
        let mut read = stream.try_clone()?;
        let reader = std::thread::spawn(move || {
            let mut bytes = 0;
            while let Ok(length @ 1..) = read.read(&mut buffer) {
                bytes += length as u64;
            }
            bytes
        });
        Ok(Recorder { stream, reader: Some(reader) })
    }

    /// Ends the recording; returns how many bytes came.
    pub fn stop(mut self) -> u64 {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or(0)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
