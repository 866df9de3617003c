//! The server thread: waits for its sockets, and hands what happens to connections.
//!
//! Without connections it never wakes. Not here: what clients say (`connection.rs`).

use super::access;
use super::answer::{Answer, Form};
use super::connection::{Connection, Gate, Life, Surroundings};
use super::control::{Control, Noted};
use super::poller::Poller;
use super::socket::Socket;
use crate::host_end;
use crate::listen::{Address, Listener};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections accepted at a stretch.
const ACCEPTS: usize = 64;
/// How long a listener rests that cannot accept for want of descriptors or memory.
const REST: Duration = Duration::from_secs(1);
/// How often a listener that the host closed is opened again, in a row.
const REOPENINGS: u32 = 10;
/// While a recording runs the loop looks at it this often, wakened or not: the host
/// may have closed the waker.
const LOOK: Duration = Duration::from_secs(1);

/// The server's loop; runs on a thread of its own.
pub struct EventLoop {
    pub(super) listening: Vec<Listening>,
    pub(super) clients: Vec<Client>,
    pub(super) sleeper: Option<Socket>,
    pub(super) sleeper_noted: Option<Noted>,
    pub(super) around: Surroundings,
    pub(super) control: Arc<Control>,
    pub(super) poller: Poller,
}

/// A listener and how it is.
pub(super) struct Listening {
    listener: Listener,
    address: Arc<Address>,
    health: Health,
    _noted: Option<Noted>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Well,
    /// Rests until then.
    Rests(Instant),
    /// The host closed it: to be opened again then, for the so-many-th time.
    Lost(Instant, u32),
    /// Given up.
    Dead,
}

/// A connection and its entry in the list of open sockets.
pub(super) struct Client {
    connection: Connection,
    _noted: Option<Noted>,
}

impl Listening {
    pub(super) fn new(listener: Listener, control: &Arc<Control>) -> Listening {
        Listening {
            address: Arc::new(listener.address().clone()),
            health: Health::Well,
            _noted: control.note(listener.socket()),
            listener,
        }
    }
}

impl EventLoop {
    /// Serves until the server is stopped. The listeners' files are removed and all
    /// connections are closed, which ends their recordings, when this returns.
    pub fn run(mut self) {
        while !self.control.is_stopping() {
            self.turn();
        }
        let control = Arc::clone(&self.control);
        drop(self);
        control.done();
    }

    fn turn(&mut self) {
        self.poller.clear();
        let waker = self.sleeper.as_ref().map(|s| self.poller.add(s, libc::POLLIN));
        let mut places = Vec::with_capacity(self.listening.len());
        for (index, listening) in self.listening.iter().enumerate() {
            if listening.health == Health::Well {
                let socket = listening.listener.socket();
                places.push((index, self.poller.add(socket, libc::POLLIN)));
            }
        }
        let first_client = self.clients.first().map(|first| {
            let place = self.poller.add(&first.connection.socket, first.connection.events());
            for client in self.clients.iter().skip(1) {
                let connection = &client.connection;
                self.poller.add(&connection.socket, connection.events());
            }
            place
        });
        let timeout = self.timeout();
        if let Err(error) = self.poller.wait(timeout) {
            self.around.settings.log.line(format!("cannot wait for sockets: {error}"));
            // No memory, or a limit that the host lowered: rare, and no reason to spin.
            std::thread::sleep(REST);
        }
        if let Some(place) = waker {
            self.waker_happened(self.poller.happened(place));
        }
        host_end::look();
        self.around.recorder.attend();
        let now = Instant::now();
        if let Some(first) = first_client {
            self.clients_happened(first, now);
        }
        for (index, place) in places {
            if self.poller.happened(place) != 0 {
                self.accept(index, now);
            }
        }
        self.reopen(now);
    }

    /// How long there is nothing to do but wait.
    fn timeout(&self) -> Option<Duration> {
        let settings = &self.around.settings;
        let deadlines = self.clients.iter().map(|c| c.connection.deadline(settings));
        let healths = self.listening.iter().map(|listening| match listening.health {
            Health::Rests(until) | Health::Lost(until, _) => Some(until),
            Health::Well | Health::Dead => None,
        });
        let first = deadlines.chain(healths).flatten().min();
        let time = first.map(|time| time.saturating_duration_since(Instant::now()));
        let time = [time, host_end::timeout()].into_iter().flatten().min();
        match self.clients.iter().any(|c| c.connection.is_recording()) {
            true => Some(time.map_or(LOOK, |time| time.min(LOOK))),
            false => time,
        }
    }

    fn waker_happened(&mut self, events: i16) {
        if events & !libc::POLLIN != 0 {
            self.sleeper = None;
            self.sleeper_noted = None;
        } else if let Some(sleeper) = self.sleeper.as_ref().filter(|_| events != 0) {
            self.control.waker.drain(sleeper);
            if !sleeper.is_ours() {
                self.sleeper = None;
                self.sleeper_noted = None;
            }
        }
    }

    fn clients_happened(&mut self, first: usize, now: Instant) {
        let mut place = first;
        let EventLoop { clients, poller, around, .. } = self;
        clients.retain_mut(|client| {
            let events = poller.happened(place);
            place += 1;
            let connection = &mut client.connection;
            let mut life = Life::GoesOn;
            if events != 0 {
                life = connection.happened(events, around, now);
            } else if connection.is_recording() {
                // Its pipe may have something; asking costs less than knowing.
                life = connection.go_on(around, now);
            }
            let deadline = connection.deadline(&around.settings);
            if life == Life::GoesOn && deadline.is_some_and(|deadline| deadline <= now) {
                life = connection.out_of_time(around, now);
            }
            life == Life::GoesOn
        });
    }

    fn accept(&mut self, index: usize, now: Instant) {
        let Some(listening) = self.listening.get_mut(index) else {
            return;
        };
        for _ in 0..ACCEPTS {
            let socket = match listening.listener.socket().accept() {
                Ok(socket) => socket,
                Err(error) => {
                    match error.raw_os_error() {
                        Some(libc::EAGAIN) => return,
                        Some(libc::EINTR | libc::ECONNABORTED) => continue,
                        Some(libc::EBADF | libc::ENOTSOCK | libc::EINVAL) => {
                            listening.health = Health::Lost(now, 0);
                        }
                        // EMFILE, ENFILE, ENOBUFS, ENOMEM, a firewall's EPERM …
                        _ => listening.health = Health::Rests(now + REST),
                    }
                    return;
                }
            };
            if self.clients.len() >= self.around.settings.limits.connections {
                let mut bytes = Vec::new();
                Answer::problem(503, "there are too many connections")
                    .header("Retry-After", "5")
                    .encode(Form::LAST_WORD, &mut bytes);
                let _ = socket.send(&bytes);
                continue;
            }
            let gate = gate(&socket, &listening.address, &self.around.settings.allowed_uids);
            self.clients.push(Client {
                _noted: self.control.note(&socket),
                connection: Connection::new(socket, Arc::clone(&listening.address), gate, now),
            });
        }
    }

    /// Looks after listeners that are not well.
    fn reopen(&mut self, now: Instant) {
        for listening in &mut self.listening {
            match listening.health {
                Health::Rests(until) if until <= now => listening.health = Health::Well,
                Health::Lost(at, times) if at <= now => {
                    let log = self.around.settings.log;
                    match listening.listener.reopen() {
                        Ok(listener) => {
                            self.control.replace_file(&listening.listener, &listener);
                            *listening = Listening::new(listener, &self.control);
                            log.line(format!("opened {} again", listening.address));
                        }
                        Err(_) if times < REOPENINGS => {
                            listening.health = Health::Lost(now + REST, times + 1);
                        }
                        Err(error) => {
                            log.line(error);
                            listening.health = Health::Dead;
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn gate(socket: &Socket, address: &Address, allowed_uids: &[u32]) -> Gate {
    match address {
        Address::Tcp(_) => match crate::listen::local_address(socket) {
            Ok(local) => Gate::Tcp(local),
            Err(error) => Gate::Refused(unknown(&error)),
        },
        Address::Path(_) | Address::Abstract(_) => {
            // SAFETY: geteuid(2) takes nothing and cannot fail. Asked each time: the
            // host may have dropped privileges.
            let own_uid = unsafe { libc::geteuid() };
            match socket.peer_uid() {
                Ok(uid) if access::is_allowed(uid, own_uid, allowed_uids) => Gate::Open,
                Ok(uid) => Gate::Refused(access::stranger(uid)),
                Err(error) => Gate::Refused(unknown(&error)),
            }
        }
    }
}

fn unknown(error: &io::Error) -> Answer {
    Answer::problem(403, format!("cannot tell who is asking: {error}"))
}
