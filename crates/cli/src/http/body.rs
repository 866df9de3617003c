//! The body of an answer: how it ends, and reading it.

use super::{line, malformed, read_fields};
use std::io::{self, BufRead, Read};

/// Longest chunk that is believed.
const LONGEST_CHUNK: u64 = 1 << 30;

#[derive(Debug)]
enum Framing {
    /// So many bytes are left of the body.
    Bytes(u64),
    /// So many bytes are left of the chunk; then its line end.
    Chunk(u64),
    /// A chunk's size comes next.
    Size,
    UntilClosed,
    Ended,
}

#[derive(Debug)]
pub(super) struct Body<R> {
    reader: R,
    framing: Framing,
    trailers: Vec<(String, String)>,
}

impl<R: BufRead> Body<R> {
    pub(super) fn new(reader: R, status: u16, fields: &[(String, String)]) -> io::Result<Body<R>> {
        let field = |name: &str| {
            let found = fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_str())
        };
        let framing = if status == 204 || status == 304 {
            Framing::Ended
        } else if field("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            Framing::Size
        } else if let Some(length) = field("content-length") {
            Framing::Bytes(length.parse().map_err(|_| malformed("the answer's length is not a number"))?)
        } else {
            Framing::UntilClosed
        };
        Ok(Body { reader, framing, trailers: Vec::new() })
    }

    fn next_chunk(&mut self) -> io::Result<()> {
        let text = line(&mut self.reader)?;
        let digits = text.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).ok().filter(|&size| size <= LONGEST_CHUNK);
        self.framing = match size.ok_or_else(|| malformed("the size of a chunk is not a number"))? {
            0 => {
                self.trailers = read_fields(&mut self.reader)?;
                Framing::Ended
            }
            size => Framing::Chunk(size),
        };
        Ok(())
    }
}

impl<R> Body<R> {
    pub(super) fn trailers(&self) -> &[(String, String)] {
        &self.trailers
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if matches!(self.framing, Framing::Size) {
            self.next_chunk()?;
        }
        let left = match self.framing {
            Framing::Ended | Framing::Size => return Ok(0),
            Framing::UntilClosed => return self.reader.read(buffer),
            Framing::Bytes(0) => {
                self.framing = Framing::Ended;
                return Ok(0);
            }
            Framing::Bytes(left) | Framing::Chunk(left) => left,
        };
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let got = self.reader.read(buffer.get_mut(..most).unwrap_or_default())?;
        if got == 0 {
            return Err(malformed("the connection ended in the middle of an answer"));
        }
        let left = left.saturating_sub(got as u64);
        self.framing = match self.framing {
            Framing::Chunk(_) if left == 0 => {
                if !line(&mut self.reader)?.is_empty() {
                    return Err(malformed("a chunk is longer than it says"));
                }
                Framing::Size
            }
            Framing::Chunk(_) => Framing::Chunk(left),
            _ => Framing::Bytes(left),
        };
        Ok(got)
    }
}
