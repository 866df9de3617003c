//! The little of an HTTP server that the command needs on loopback: heads of requests, where they
//! come from, answers that close. Not here: what is answered (`proxy.rs`, `view.rs`).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Longest head of a request.
const LONGEST_HEAD: u64 = 16 << 10;
/// How long a client may take for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A request's head, and the connection behind it.
#[derive(Debug)]
pub struct ServedRequest {
    /// `GET`, `HEAD`, ….
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Header fields, as they came.
    pub fields: Vec<(String, String)>,
    /// What follows.
    pub reader: BufReader<TcpStream>,
}

impl ServedRequest {
    /// Reads a head.
    pub fn read(stream: TcpStream) -> io::Result<ServedRequest> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut reader = BufReader::new(stream);
        let mut limited = reader.by_ref().take(LONGEST_HEAD);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            limited.read_line(&mut line)?;
            let line = line.strip_suffix('\n').ok_or(io::ErrorKind::InvalidData)?;
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() {
                break;
            }
            lines.push(line.to_owned());
        }
        let mut lines = lines.into_iter();
        let first = lines.next().unwrap_or_default();
        let mut words = first.split(' ');
        let (method, target) =
            (words.next().unwrap_or_default(), words.next().ok_or(io::ErrorKind::InvalidData)?);
        let field = |line: String| {
            line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        };
        Ok(ServedRequest {
            method: method.to_owned(),
            target: target.to_owned(),
            fields: lines.filter_map(field).collect(),
            reader,
        })
    }

    /// A header field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether it is addressed to this machine by a name that cannot be another's: a page whose
    /// name was rebound to loopback sends its own.
    pub fn is_for_loopback(&self) -> bool {
        let host = self.field("host").unwrap_or_default();
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }

    /// Whether a browser sends it because of another page: for a picture, a frame or a link of that
    /// page. Such requests have no `Origin`.
    pub fn is_for_other_page(&self) -> bool {
        match self.field("sec-fetch-site") {
            Some(site) => !["same-origin", "none"].contains(&site),
            // Browsers of before 2023 do not all say: by what they accept for pictures.
            None => self.field("accept").is_some_and(|accept| {
                accept.contains("image/") && accept.contains(',') && !accept.contains("text/html")
            }),
        }
    }

    /// The connection, for the answer.
    pub fn stream(&self) -> &TcpStream {
        self.reader.get_ref()
    }
}

/// Answers and closes.
pub fn answer(mut stream: &TcpStream, status: &str, fields: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    for (name, value) in fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// Listens on loopback; port 0 is any that is free.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

/// The user whose process is at the other end of a connection on this machine (`/proc/net/tcp`,
/// proc(5)).
pub fn peer_uid(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let (SocketAddr::V4(peer), SocketAddr::V4(own)) = (peer, own) else { return None };
    let spelled = |address: std::net::SocketAddrV4| {
        format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
    };
    let (peer, own) = (spelled(peer), spelled(own));
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_it = fields.get(1) == Some(&peer.as_str()) && fields.get(2) == Some(&own.as_str());
        is_it.then(|| fields.get(7)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_and_its_sender_is_known() {
        let listener = listen(0).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).expect("connected");
        client.write_all(b"GET /a?b=1 HTTP/1.1\r\nhost: localhost:1\r\nX:  y \r\n\r\nrest").expect("written");
        let (stream, peer) = listener.accept().expect("a client");
        // SAFETY: geteuid(2) takes nothing and cannot fail.
        assert_eq!(peer_uid(peer, address), Some(unsafe { libc::geteuid() }));
        let request = ServedRequest::read(stream).expect("a head");
        assert_eq!(
            (request.method.as_str(), request.target.as_str(), request.field("x")),
            ("GET", "/a?b=1", Some("y"))
        );
        assert!(request.is_for_loopback());
    }

    #[test]
    fn names_of_others_are_not_taken_for_this_machine() {
        let listener = listen(0).expect("a socket");
        for (host, ours) in [
            ("127.0.0.1:80", true),
            ("[::1]:80", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            let mut client =
                TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
            write!(client, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("written");
            let request = ServedRequest::read(listener.accept().expect("a client").0).expect("a head");
            assert_eq!(request.is_for_loopback(), ours, "{host}");
        }
    }
}
