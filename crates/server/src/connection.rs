//! One client: its requests one after the other, and its answers.
//!
//! Nothing here waits. Not here: which socket is ready (`event_loop.rs`), reading and sending
//! (`connection/bytes.rs`), time limits (`connection/timeouts.rs`), requests
//! (`connection/requests.rs`).

mod asked;
mod bytes;
mod recorded;
mod requests;
mod timeouts;

use crate::Settings;
use crate::auth::admission::ClientAccess;
use crate::listen::Address;
use crate::pipe::Wake;
use crate::proto::chunked::Decoder;
use crate::proto::head::{Head, Keep};
use crate::recording::Recorder;
use asked::DeferredResponse;
use recorded::{Progress, Recorded};
use std::sync::Arc;
use std::time::Instant;
use swipr_os::socket::Socket;

/// Bytes of further requests that are read while an answer is made, in order to see whether the
/// client has closed behind them.
const MAX_BYTES_AHEAD: usize = 128 * 1024;
/// Bytes that may wait for the client before a recording's next chunk is taken.
const MAX_WAITING_BYTES: usize = 64 * 1024;
/// Steps in one iteration, so that one client does not keep the others waiting.
const STEPS: usize = 64;

/// What connections need of the server.
pub(super) struct ServerContext {
    pub(super) recorder: Arc<dyn Recorder>,
    pub(super) settings: Settings,
    pub(super) wake: Wake,
}

enum ConnectionState {
    /// A head is expected, or has come in part.
    Head,
    /// The head is there, its body is not.
    Body(Box<Head>, Decoder),
    /// The answer is a recording.
    Recording(Box<Recorded>),
    /// Another thread makes the answer to a symbol server's client.
    Asked(Box<DeferredResponse>),
    /// The last answer is on its way.
    Ending,
    /// An answer that failed in the middle is on its way.
    Breaking,
    /// The client has its answer and should close. What it still sends is thrown away: closing
    /// with bytes unread would reset the connection, and the client could lose the answer.
    Draining(usize),
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Moved,
    Waits,
    Ends,
}

/// A client.
pub(super) struct Connection {
    pub(super) socket: Socket,
    address: Arc<Address>,
    gate: ClientAccess,
    state: ConnectionState,
    input: Vec<u8>,
    /// Bytes of `input` that have been searched for a line's end.
    searched: usize,
    output: Vec<u8>,
    sent: usize,
    /// The client sends no more.
    input_ended: bool,
    /// There is more to do although the socket is not ready.
    unfinished: bool,
    /// When the present state began.
    since: Instant,
    /// When output last moved.
    moved: Instant,
    /// Requests answered.
    answered: u64,
}

impl Connection {
    pub(super) fn new(socket: Socket, address: Arc<Address>, gate: ClientAccess, now: Instant) -> Connection {
        Connection {
            socket,
            address,
            gate,
            state: ConnectionState::Head,
            input: Vec::new(),
            searched: 0,
            output: Vec::new(),
            sent: 0,
            input_ended: false,
            unfinished: false,
            since: now,
            moved: now,
            answered: 0,
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.output.len().saturating_sub(self.sent)
    }

    pub(super) fn is_recording(&self) -> bool {
        matches!(self.state, ConnectionState::Recording(_) | ConnectionState::Asked(_))
    }

    /// Whether its client has not got all of a recording.
    pub(super) fn has_unsent(&self) -> bool {
        self.is_recording() || self.waiting_bytes() > 0
    }

    /// What to wait for.
    pub(super) fn events(&self) -> i16 {
        let out = match self.waiting_bytes() > 0 || self.unfinished {
            true => libc::POLLOUT,
            false => 0,
        };
        let input = match self.state {
            // Read on: by TCP a client that leaves is seen by the end of what it sends.
            ConnectionState::Recording(_) | ConnectionState::Asked(_) => {
                let may_read = !self.input_ended && self.input.len() < MAX_BYTES_AHEAD;
                if may_read { libc::POLLIN } else { 0 }
            }
            ConnectionState::Draining(_) => libc::POLLIN,
            ConnectionState::Head | ConnectionState::Body(..) if !self.input_ended && out == 0 => {
                libc::POLLIN
            }
            _ => 0,
        };
        out | input
    }

    /// Something happened on the socket.
    pub(super) fn on_ready(&mut self, events: i16, context: &ServerContext, now: Instant) -> Keep {
        // On a Unix socket POLLHUP means that the peer has closed, not only shut down its sending;
        // on TCP that both sides have shut down.
        if events & (libc::POLLERR | libc::POLLNVAL | libc::POLLHUP) != 0 {
            return Keep::Close;
        }
        if events & libc::POLLIN != 0 && self.read(now) == Keep::Close {
            return Keep::Close;
        }
        // By TCP, a client that only reads looks the same as a client that is gone.
        if self.input_ended && self.is_recording() && matches!(self.gate, ClientAccess::Tcp(_)) {
            return Keep::Close;
        }
        self.resume(context, now)
    }

    /// Does what can be done without waiting.
    pub(super) fn resume(&mut self, context: &ServerContext, now: Instant) -> Keep {
        self.unfinished = false;
        for _ in 0..STEPS {
            if self.flush(now) == Keep::Close {
                return Keep::Close;
            }
            match self.step(context, now) {
                Step::Moved => {}
                Step::Waits => return Keep::Open,
                Step::Ends => return Keep::Close,
            }
        }
        self.unfinished = true;
        Keep::Open
    }

    fn step(&mut self, context: &ServerContext, now: Instant) -> Step {
        match std::mem::replace(&mut self.state, ConnectionState::Ending) {
            ConnectionState::Recording(mut recorded) => {
                let progress = match self.waiting_bytes() < MAX_WAITING_BYTES {
                    true => recorded.pump(&mut self.output),
                    false => Progress::Waits,
                };
                match progress {
                    Progress::Over(keep) => self.finished(keep, now),
                    // Closed, not kept open and not drained: the last line is missing.
                    Progress::Broken => self.state = ConnectionState::Breaking,
                    Progress::Waits | Progress::Moved => self.state = ConnectionState::Recording(recorded),
                }
                match progress {
                    Progress::Waits => Step::Waits,
                    _ => Step::Moved,
                }
            }
            ConnectionState::Asked(mut asked) => match asked.answer() {
                Some(answer) => {
                    answer.encode(asked.form, &mut self.output);
                    self.finished(asked.form.keep, now);
                    Step::Moved
                }
                None => {
                    self.state = ConnectionState::Asked(asked);
                    Step::Waits
                }
            },
            ConnectionState::Breaking if self.waiting_bytes() == 0 => Step::Ends,
            ConnectionState::Breaking => {
                self.state = ConnectionState::Breaking;
                Step::Waits
            }
            ConnectionState::Ending if self.waiting_bytes() > 0 => Step::Waits,
            ConnectionState::Ending if self.input_ended => Step::Ends,
            ConnectionState::Ending => {
                self.socket.end_of_sending();
                self.since = now;
                self.input = Vec::new();
                self.state = ConnectionState::Draining(0);
                Step::Waits
            }
            ConnectionState::Draining(drained) => {
                self.state = ConnectionState::Draining(drained);
                Step::Waits
            }
            // One answer at a time: the next request waits until the client has it.
            state if self.waiting_bytes() > 0 => {
                self.state = state;
                Step::Waits
            }
            ConnectionState::Head => {
                self.state = ConnectionState::Head;
                self.read_head(now)
            }
            ConnectionState::Body(head, decoder) => self.read_body(head, decoder, context, now),
        }
    }
}
