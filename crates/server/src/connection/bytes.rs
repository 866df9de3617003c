//! A connection's bytes, in and out, without waiting.

use super::{Connection, ConnectionState};
use crate::proto::head::Keep;
use std::io::ErrorKind;
use std::time::Instant;

/// Bytes read at a time.
const READ_BYTES: usize = 16 * 1024;
/// Most bytes that are read and thrown away after the last answer.
const MAX_DRAINED_BYTES: usize = 4 * 1024 * 1024;

impl Connection {
    pub(super) fn read(&mut self, now: Instant) -> Keep {
        let mut bytes = [0; READ_BYTES];
        let count = match self.socket.receive(&mut bytes) {
            Ok(count) => count,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted => Keep::Open,
                    _ => Keep::Close,
                };
            }
        };
        if let ConnectionState::Draining(drained) = &mut self.state {
            *drained += count;
            return match count == 0 || *drained > MAX_DRAINED_BYTES {
                true => Keep::Close,
                false => Keep::Open,
            };
        }
        if count == 0 {
            self.input_ended = true;
        } else if self.input.is_empty() && matches!(self.state, ConnectionState::Head) {
            self.since = now;
        }
        self.input.extend(bytes.iter().take(count));
        Keep::Open
    }

    pub(super) fn flush(&mut self, now: Instant) -> Keep {
        while let Some(rest) = self.output.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.socket.send(rest) {
                Ok(count) => {
                    self.sent += count;
                    self.moved = now;
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Keep::Open,
                    _ => return Keep::Close,
                },
            }
        }
        self.output.clear();
        self.sent = 0;
        // The time a client has to take bytes starts when there are some.
        self.moved = now;
        Keep::Open
    }
}
