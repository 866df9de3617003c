//! HTTP/1.1 as a client, over any connection: one request a connection, an answer read as it comes.
//! Understands lengths, chunks and trailers; no redirects, no compression, no TLS
//! (`push/by_curl.rs` has that of others).

mod body;

use body::Body;
use std::io::{self, BufRead, BufReader, Read, Write};

/// Longest head or trailer of an answer.
const LONGEST_HEAD: u64 = 64 << 10;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET` or `POST`.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Further header fields.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body of a POST.
    pub body: &'a [u8],
}

/// An answer whose head has come. Reading it reads its body; trailers are fields once the body is
/// read.
pub struct Answer<C> {
    /// The status code.
    pub status: u16,
    fields: Vec<(String, String)>,
    body: Body<BufReader<C>>,
}

impl<C> std::fmt::Debug for Answer<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({}, {:?})", self.status, self.fields)
    }
}

/// Sends a request and waits for the answer's head.
pub fn ask<C: Read + Write>(mut connection: C, request: &Request<'_>) -> io::Result<Answer<C>> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    let has_host = request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    if !has_host {
        head.push_str("Host: localhost\r\n");
    }
    for (name, value) in request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if request.method == "POST" {
        head.push_str(&format!("Content-Length: {}\r\n", request.body.len()));
    }
    head.push_str("Connection: close\r\n\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(request.body);
    let sent = connection.write_all(&bytes);
    // A server that refuses a request may answer and close before it has read all of it.
    answer(connection).map_err(|error| sent.err().unwrap_or(error))
}

/// Waits for an answer's head.
pub fn answer<C: Read>(connection: C) -> io::Result<Answer<C>> {
    let mut reader = BufReader::with_capacity(64 << 10, connection);
    let (status, fields) = read_head(&mut reader)?;
    let body = Body::new(reader, status, &fields)?;
    Ok(Answer { status, fields, body })
}

impl<C: Read> Answer<C> {
    /// A header or trailer field.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut all = self.fields.iter().chain(self.body.trailers());
        all.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The whole body.
    pub fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.body.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The whole body, as text.
    pub fn text(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }
}

impl<C: Read> Read for Answer<C> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}

fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut limited = reader.take(LONGEST_HEAD);
    if limited.fill_buf()?.is_empty() {
        return Err(malformed("what listens there closed the connection without an answer"));
    }
    let first = line(&mut limited)?;
    let status = first
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split(' ').nth(1))
        .and_then(|code| code.parse().ok())
        .ok_or_else(|| malformed("what answers does not speak HTTP"))?;
    Ok((status, read_fields(&mut limited)?))
}

/// Fields up to an empty line.
fn read_fields(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut fields = Vec::new();
    loop {
        let text = line(reader)?;
        if text.is_empty() {
            return Ok(fields);
        }
        if let Some((name, value)) = text.split_once(':') {
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
}

/// A line without its end.
fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Err(malformed("the connection ended in the middle of an answer"));
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests;
