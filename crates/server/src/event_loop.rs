//! The server thread: waits for its sockets, and has connections handle what is ready.
//!
//! Not here: requests (`connection.rs`).

pub(crate) mod control;
pub(crate) mod listening;
pub(crate) mod poller;

use crate::auth::admission;
use crate::connection::{Connection, ServerContext};
use crate::proto::answer::{Answer, Form};
use crate::proto::head::Keep;
use control::{Control, Done, OpenDescriptor};
use listening::{Acceptor, REST};
use poller::{Poller, Watch};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use swipr_os::disabled;
use swipr_os::socket::Socket;

/// Connections accepted in one iteration.
const ACCEPTS: usize = 16;
/// How often the loop checks without being woken: the host may have closed the waker of a running
/// recording, or a listener.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Tokens of the waker's socket, the listeners', and the clients', each of which has a new one.
const WAKER: usize = 0;
const FIRST_LISTENER: usize = 1;
pub(super) const FIRST_CLIENT: usize = 1 << 16;

/// How often waiting may fail in a row.
const MAX_FAILED_WAITS: u32 = 10;

/// The server's loop; runs on a thread of its own.
pub struct EventLoop {
    pub(super) listening: Vec<Acceptor>,
    pub(super) clients: Vec<Client>,
    /// The token of the last client.
    pub(super) last_id: usize,
    pub(super) sleeper: Option<Socket>,
    pub(super) sleeper_watch: Watch,
    pub(super) sleeper_descriptor: Option<OpenDescriptor>,
    pub(super) context: ServerContext,
    pub(super) control: Arc<Control>,
    pub(super) poller: Poller,
    pub(super) failed_waits: u32,
}

/// A connection and its entry in the list of open sockets.
pub(super) struct Client {
    id: usize,
    watch: Watch,
    connection: Connection,
    _descriptor: Option<OpenDescriptor>,
}

impl EventLoop {
    /// Serves until the server is stopped. The listeners' files are removed and all connections are
    /// closed, which ends their recordings, when this returns or panics.
    pub fn run(self) {
        let _done = Done(Arc::clone(&self.control));
        // Dropped before `_done`: `Server::wait` returns when all is closed.
        let mut event_loop = self;
        while !event_loop.control.is_stopping() {
            event_loop.turn();
        }
    }

    fn turn(&mut self) {
        let timeout = if self.arm() { self.timeout() } else { Some(Duration::ZERO) };
        match self.poller.wait(timeout) {
            Ok(()) => self.failed_waits = 0,
            Err(error) => self.waiting_failed(&error),
        }
        self.report();
        let events = self.sleeper_watch.take_ready();
        self.on_waker_ready(events);
        self.context.recorder.poll();
        let now = Instant::now();
        self.on_clients_ready(now);
        for index in 0..self.listening.len() {
            self.accept(index, now);
        }
        let log = self.context.settings.log;
        self.listening.iter_mut().for_each(|listening| listening.look_after(&self.control, log, now));
        self.control.set_recording(self.clients.iter().any(|client| client.connection.has_unsent()));
    }

    /// Registers what is new, and arms again what was ready. Returns whether all could be.
    fn arm(&mut self) -> bool {
        let EventLoop { poller, sleeper, sleeper_watch, listening, clients, .. } = self;
        let mut all =
            sleeper.as_ref().is_none_or(|sleeper| poller.arm(sleeper, WAKER, libc::POLLIN, sleeper_watch));
        for (index, acceptor) in listening.iter_mut().enumerate() {
            all &= acceptor.arm(poller, FIRST_LISTENER + index);
        }
        for Client { id, watch, connection, .. } in clients {
            all &= poller.arm(&connection.socket, *id, connection.events(), watch);
        }
        all
    }

    /// Hands out what the poller says is ready. A client that is gone may still be reported: a
    /// forked child may hold its socket open.
    fn report(&mut self) {
        let EventLoop { poller, sleeper_watch, listening, clients, .. } = self;
        for (token, readiness) in poller.ready() {
            let watch = match token {
                WAKER => Some(&mut *sleeper_watch),
                FIRST_LISTENER..FIRST_CLIENT => {
                    listening.get_mut(token - FIRST_LISTENER).map(|acceptor| &mut acceptor.watch)
                }
                id => clients.iter_mut().find(|client| client.id == id).map(|client| &mut client.watch),
            };
            watch.into_iter().for_each(|watch| watch.report(readiness));
        }
    }

    /// There is no memory, or the host lowered a limit, or it closed the poller's descriptor. Waits
    /// instead of spinning, and makes another poller. After too many failures in a row the agent is
    /// disabled.
    fn waiting_failed(&mut self, error: &io::Error) {
        self.failed_waits += 1;
        if self.failed_waits > MAX_FAILED_WAITS {
            disabled::disable(format_args!("cannot wait for sockets: {error}"));
            self.control.stop();
            return;
        }
        std::thread::sleep(REST);
        if let Ok(poller) = Poller::new() {
            // Not dropped: the old descriptor's number may be the host's by now.
            std::mem::forget(std::mem::replace(&mut self.poller, poller));
            self.sleeper_watch = Watch::default();
            self.listening.iter_mut().for_each(|acceptor| acceptor.watch = Watch::default());
            self.clients.iter_mut().for_each(|client| client.watch = Watch::default());
        }
    }

    /// How long the loop may wait.
    fn timeout(&self) -> Option<Duration> {
        let settings = &self.context.settings;
        let deadlines = self.clients.iter().map(|c| c.connection.deadline(settings));
        let listeners = self.listening.iter().map(Acceptor::look_at);
        let first = deadlines.chain(listeners).flatten().min();
        let time = first.map(|time| time.saturating_duration_since(Instant::now()));
        let time = [time, self.context.recorder.poll_within()].into_iter().flatten().min();
        let polls = settings.shares_descriptors || self.clients.iter().any(|c| c.connection.is_recording());
        match polls {
            true => Some(time.map_or(POLL_INTERVAL, |time| time.min(POLL_INTERVAL))),
            false => time,
        }
    }

    fn on_waker_ready(&mut self, events: i16) {
        let Some(sleeper) = self.sleeper.as_ref().filter(|_| events != 0) else { return };
        if events == libc::POLLIN {
            self.control.waker.drain(sleeper);
        }
        if events != libc::POLLIN || !sleeper.is_ours() {
            self.sleeper = None;
            self.sleeper_descriptor = None;
        }
    }

    fn on_clients_ready(&mut self, now: Instant) {
        let EventLoop { clients, context, .. } = self;
        clients.retain_mut(|client| {
            let events = client.watch.take_ready();
            let connection = &mut client.connection;
            let mut life = Keep::Open;
            if events != 0 {
                life = connection.on_ready(events, context, now);
            } else if connection.is_recording() {
                // Its pipe may have something. To try costs less than to know.
                life = connection.resume(context, now);
            }
            let deadline = connection.deadline(&context.settings);
            if life == Keep::Open && deadline.is_some_and(|deadline| deadline <= now) {
                life = connection.out_of_time(context, now);
            }
            life == Keep::Open
        });
    }

    fn accept(&mut self, index: usize, now: Instant) {
        let Some(listening) = self.listening.get_mut(index) else {
            return;
        };
        if listening.watch.take_ready() == 0 {
            return;
        }
        for _ in 0..ACCEPTS {
            let Some(socket) = listening.next(now) else { return };
            if !make_room(&mut self.clients, self.context.settings.limits.connections) {
                let mut bytes = Vec::new();
                Answer::problem(503, "there are too many connections")
                    .header("Retry-After", "5")
                    .encode(Form::CLOSE, &mut bytes);
                let _ = socket.send(&bytes);
                continue;
            }
            let gate = admission::gate(&socket, listening.address(), &self.context.settings);
            self.last_id += 1;
            self.clients.push(Client {
                id: self.last_id,
                watch: Watch::default(),
                _descriptor: self.control.register(&socket),
                connection: Connection::new(socket, Arc::clone(listening.address()), gate, now),
            });
        }
    }
}

/// Whether one more client fits. If not, drops the client that the server has waited for longest:
/// those that only connect, send a head byte by byte, or have their answer keep nobody out.
fn make_room(clients: &mut Vec<Client>, most: usize) -> bool {
    if clients.len() < most {
        return true;
    }
    let waiting =
        clients.iter().enumerate().filter_map(|(at, client)| Some((client.connection.waiting_since()?, at)));
    match waiting.min() {
        Some((_, at)) => {
            clients.remove(at);
            true
        }
        None => false,
    }
}
