//! A connection's requests: from bytes to heads and bodies, and on to their answers.
//! Not here: sockets and time (`connection.rs`), what routes do (`routes.rs`).

use super::asked::DeferredResponse;
use super::recorded::{About, Recorded};
use super::{Connection, ConnectionState, ServerContext, Step};
use crate::auth::access;
use crate::auth::admission::ClientAccess;
use crate::pipe::pipe;
use crate::proto::answer::{Answer, Form};
use crate::proto::chunked::{Bad, Decoder};
use crate::proto::head::{self, Framing, Head, Keep, MAX_HEAD_BYTES, Parsed};
use crate::recording::{Question, Request, StartError};
use crate::routes::page;
use crate::routes::{self, Empty, Outcome, ResponseOptions, Strictness};
use std::sync::Arc;
use std::time::Instant;

/// Bytes between a recording and its answer.
const PIPE_BYTES: usize = 256 * 1024;

/// The answer where nothing was started.
fn refusal(error: &StartError) -> Answer {
    let status = match error {
        StartError::TooMany => 429,
        StartError::NoFlightRecorder => 422,
        StartError::NoThread(_) => 400,
        StartError::Stopping | StartError::Off(_) => 503,
        StartError::Failed(_) => 500,
    };
    let answer = Answer::problem(status, error.to_string());
    if status == 429 { answer.header("Retry-After", "5") } else { answer }
}

impl Connection {
    pub(super) fn read_head(&mut self, now: Instant) -> Step {
        let fresh = self.input.get(self.searched..).unwrap_or_default();
        let worth_it = fresh.contains(&b'\n') || self.input.len() > MAX_HEAD_BYTES;
        self.searched = self.input.len();
        let parsed = match worth_it {
            true => head::parse(&self.input),
            false => Parsed::Incomplete,
        };
        match parsed {
            Parsed::Complete(head, length) => {
                self.input.drain(..length);
                self.since = now;
                if head.waits && head.framing != Framing::Length(0) && self.input.is_empty() {
                    self.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
                let decoder = Decoder::new(head.max_body_bytes());
                self.state = ConnectionState::Body(head, decoder);
                Step::Moved
            }
            Parsed::Bad(answer) => {
                self.respond_and_close(answer, now);
                Step::Moved
            }
            Parsed::Incomplete if self.input_ended => self.cut_short(now),
            Parsed::Incomplete => Step::Waits,
        }
    }

    pub(super) fn read_body(
        &mut self,
        head: Box<Head>,
        mut decoder: Decoder,
        context: &ServerContext,
        now: Instant,
    ) -> Step {
        let body = match head.framing {
            Framing::Length(length) if self.input.len() >= length => {
                let later = self.input.split_off(length);
                Some(std::mem::replace(&mut self.input, later))
            }
            Framing::Length(_) => None,
            Framing::Chunked => match decoder.feed(&self.input) {
                Ok((used, body)) => {
                    self.input.drain(..used);
                    body
                }
                Err(bad) => {
                    let answer = match bad {
                        Bad::TooLong => head::body_too_long(head.max_body_bytes()),
                        Bad::Malformed => Answer::problem(400, "the body's chunks are malformed"),
                    };
                    self.respond_and_close(answer, now);
                    return Step::Moved;
                }
            },
        };
        match body {
            Some(body) => {
                self.searched = 0;
                self.answer(&head, &body, context, now);
                Step::Moved
            }
            None if self.input_ended => self.cut_short(now),
            None => {
                self.state = ConnectionState::Body(head, decoder);
                Step::Waits
            }
        }
    }

    /// The client has shut down its sending, within a request or between two.
    fn cut_short(&mut self, now: Instant) -> Step {
        if self.input.is_empty() && matches!(self.state, ConnectionState::Head) {
            return Step::Ends;
        }
        self.respond_and_close(Answer::problem(400, "the request is not complete"), now);
        Step::Moved
    }

    fn answer(&mut self, head: &Head, body: &[u8], context: &ServerContext, now: Instant) {
        let firefox_request = page::firefox_request(head);
        let refusal = match &self.gate {
            ClientAccess::Open => None,
            ClientAccess::Refused(answer) => Some(answer.clone()),
            ClientAccess::Tcp(local) if firefox_request.is_some() => page::check_tcp(head, *local).err(),
            ClientAccess::Tcp(local) => {
                access::check_tcp(head, *local, context.settings.token.as_deref()).err()
            }
        };
        let head = firefox_request.as_ref().filter(|_| refusal.is_none()).unwrap_or(head);
        if let Some(asked) = firefox_request.as_ref().filter(|_| refusal.is_none()).and_then(page::follow) {
            return self.ask(asked, head, body, context, now);
        }
        // What strangers get does not keep their connection.
        let is_public = head.path == access::HEALTH && context.settings.token.is_some();
        let keep = if refusal.is_some() || is_public { Keep::Close } else { head.keep };
        let outcome = match refusal {
            Some(answer) => Outcome::Answer(answer),
            None => routes::follow(head, body, context.recorder.as_ref(), &self.address),
        };
        match outcome {
            Outcome::Answer(answer) => {
                answer.encode(Form { keep, ..head.form() }, &mut self.output);
                self.finished(keep, now);
            }
            Outcome::Record(request, manner) => self.record(head, *request, manner, context, now),
        }
    }

    fn ask(
        &mut self,
        asked: page::TokenRoute,
        head: &Head,
        body: &[u8],
        context: &ServerContext,
        now: Instant,
    ) {
        let answer = match asked {
            page::TokenRoute::Answer(answer) => answer,
            page::TokenRoute::Question(kind) => {
                let (writer, reader) = pipe(PIPE_BYTES, Arc::clone(&context.wake));
                let question = Question { kind, body: body.to_vec(), output: Box::new(writer) };
                match context.recorder.ask(question) {
                    Ok(()) => {
                        self.state =
                            ConnectionState::Asked(Box::new(DeferredResponse::new(reader, head.form())));
                        return;
                    }
                    Err(StartError::TooMany) => {
                        let answer = Answer::problem(429, "too many questions wait for their answers");
                        answer.header("Retry-After", "1")
                    }
                    Err(error) => refusal(&error),
                }
            }
        };
        answer.encode(head.form(), &mut self.output);
        self.finished(head.keep, now);
    }

    fn record(
        &mut self,
        head: &Head,
        request: Request,
        manner: ResponseOptions,
        context: &ServerContext,
        now: Instant,
    ) {
        let example = routes::example(&head.path, &self.address);
        let strictness = routes::strictness(&head.path);
        let about = About::new(head, &request, manner, strictness, example);
        if Recorded::is_head_only(&about) {
            let keep = about.head_only(&mut self.output);
            self.finished(keep, now);
            return;
        }
        let (writer, reader) = pipe(PIPE_BYTES, Arc::clone(&context.wake));
        let writer = if manner.empty == Empty::IsFine { writer.that_takes_empty() } else { writer };
        let mut answer = match context.recorder.start(request, Box::new(writer)) {
            Ok(()) => {
                self.state = ConnectionState::Recording(Box::new(Recorded::new(reader, about)));
                return;
            }
            Err(error) => refusal(&error),
        };
        if strictness == Strictness::Go {
            answer = answer.header("X-Go-Pprof", "1");
        }
        answer.encode(head.form(), &mut self.output);
        self.finished(head.keep, now);
    }

    /// An answer is written: goes to the next state.
    pub(super) fn finished(&mut self, keep: Keep, now: Instant) {
        self.answered += 1;
        self.since = now;
        self.state = match keep {
            Keep::Open => ConnectionState::Head,
            Keep::Close => ConnectionState::Ending,
        };
    }

    /// Answers with an error and closes the connection. The request is not known, so the example is
    /// a fixed one.
    pub(super) fn respond_and_close(&mut self, mut answer: Answer, now: Instant) {
        if answer.status == 400 {
            answer = answer.example(routes::example("/dump", &self.address));
        }
        answer.encode(Form::CLOSE, &mut self.output);
        self.finished(Keep::Close, now);
    }
}
