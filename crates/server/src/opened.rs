//! The server's parsers of requests as functions of bytes, for `tests/properties/`, which says what
//! must hold whatever clients send.

use crate::Settings;
use crate::auth::admission::ClientAccess;
use crate::connection::{Connection, ServerContext};
use crate::listen::Address;
use crate::proto::head::{self, Framing, Keep, Parsed};
use crate::recording::{Recorder, Request};
use crate::routes::sample_request;
use crate::routes::{self, Outcome};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;
use swipr_os::socket::Socket;

/// Times that a connection may have something to do for one piece.
const MAX_TURNS: usize = 10_000;

/// How some bytes parse as a request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedHead {
    /// More are needed.
    Incomplete,
    /// The first so many are a head, which says this.
    Complete(usize, String),
    /// The answer's status.
    Refused(u16),
}

/// Reads the head at the start of `bytes`.
pub fn head(bytes: &[u8]) -> ParsedHead {
    match head::parse(bytes) {
        Parsed::Incomplete => ParsedHead::Incomplete,
        Parsed::Complete(head, length) => ParsedHead::Complete(length, format!("{head:?}")),
        Parsed::Bad(answer) => ParsedHead::Refused(answer.status),
    }
}

/// The recording that `GET` of a path with this query requests; else the answer's status.
pub fn query(path: &str, text: &str, recorder: &dyn Recorder) -> Result<Box<Request>, u16> {
    let Parsed::Complete(mut head, _) = head::parse(b"GET / HTTP/1.1\r\n\r\n") else { return Err(0) };
    debug_assert_eq!(head.framing, Framing::Length(0));
    (head.path, head.query) = (path.to_owned(), text.to_owned());
    match routes::follow(&head, &[], recorder, &address()) {
        Outcome::Record(request, _) => Ok(request),
        Outcome::Answer(answer) => Err(answer.status),
    }
}

/// The recording that a JSON body requests, or what is wrong with it.
pub fn json(body: &[u8]) -> Result<Request, String> {
    sample_request::parse(body)
}

/// All that a client receives if it sends these pieces one after another, and then no more.
pub fn conversation<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    recorder: Arc<dyn Recorder>,
) -> io::Result<Vec<u8>> {
    let (client, socket) = Socket::pair()?;
    let around = ServerContext { recorder, settings: Settings::default(), wake: Arc::new(|| ()) };
    let mut connection = Connection::new(socket, Arc::new(address()), ClientAccess::Open, Instant::now());
    let mut answers = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            // A connection that has ended takes no more.
            let Ok(count) = client.send(rest) else { return Ok(answers) };
            rest = rest.get(count..).unwrap_or_default();
            if turn(&mut connection, &around, &client, &mut answers) == Keep::Close {
                return Ok(answers);
            }
        }
    }
    client.end_of_sending();
    turn(&mut connection, &around, &client, &mut answers);
    Ok(answers)
}

/// Lets the connection do what there is to do, and takes what it sends.
fn turn(connection: &mut Connection, around: &ServerContext, client: &Socket, answers: &mut Vec<u8>) -> Keep {
    for _ in 0..MAX_TURNS {
        let wanted = PollFlags::from_bits_retain(connection.events());
        let mut one = [PollFd::new(connection.socket.as_fd(), wanted)];
        let happened = poll(&mut one, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
        let events = one[0].revents().map_or(0, |events| events.bits());
        let life = match happened {
            true => connection.on_ready(events, around, Instant::now()),
            false => Keep::Open,
        };
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = client.receive(&mut bytes) {
            answers.extend(bytes.iter().take(count));
        }
        if life == Keep::Close || !happened {
            return life;
        }
    }
    panic!("a connection that never rests");
}

fn address() -> Address {
    Address::Path("/swipr.sock".into())
}
