//! A connection's time-outs: how long it may take for what it is doing, and what happens then.

use super::{Connection, ConnectionState, ServerContext};
use crate::Settings;
use crate::proto::answer::Answer;
use crate::proto::head::Keep;
use std::time::{Duration, Instant};

impl Connection {
    /// When to call [`Connection::out_of_time`].
    pub(crate) fn deadline(&self, settings: &Settings) -> Option<Instant> {
        let limits = &settings.limits;
        let (from, time): (Instant, Duration) = match self.state {
            _ if self.waiting_bytes() > 0 => (self.moved, limits.stall),
            ConnectionState::Head if self.input.is_empty() && self.answered > 0 => (self.since, limits.idle),
            ConnectionState::Head | ConnectionState::Body(..) => (self.since, limits.head),
            ConnectionState::Recording(_) | ConnectionState::Asked(_) => return None,
            ConnectionState::Ending | ConnectionState::Breaking | ConnectionState::Draining(_) => {
                (self.since, limits.linger)
            }
        };
        from.checked_add(time)
    }

    /// The deadline has passed.
    pub(crate) fn out_of_time(&mut self, context: &ServerContext, now: Instant) -> Keep {
        let waits_for_request = match self.state {
            ConnectionState::Head => !self.input.is_empty(),
            ConnectionState::Body(..) => true,
            _ => false,
        };
        if self.waiting_bytes() > 0 || !waits_for_request {
            return Keep::Close;
        }
        let time = context.settings.limits.head;
        let what = format!("the request was not complete after {time:?}");
        self.respond_and_close(Answer::problem(408, what), now);
        self.resume(context, now)
    }

    /// Since when the server has waited for the client, to which it owes nothing.
    pub(crate) fn waiting_since(&self) -> Option<Instant> {
        let waits = matches!(
            self.state,
            ConnectionState::Head | ConnectionState::Body(..) | ConnectionState::Draining(_)
        );
        (waits && self.waiting_bytes() == 0).then_some(self.since)
    }
}
