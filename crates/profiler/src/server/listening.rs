//! A listener in the server's loop: how it is, its next client, and opening it again after the host
//! closed it. Not here: who the client is (`admission.rs`), opening the first time (`listen.rs`).

use super::control::{Control, OpenDescriptor};
use crate::listen::{Address, Listener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use swipr_os::log::Log;
use swipr_os::socket::Socket;

/// How long a listener rests that cannot accept for want of descriptors or memory.
pub(super) const REST: Duration = Duration::from_secs(1);
/// How often a listener that the host closed is opened again, in a row.
const REOPENINGS: u32 = 10;
/// How often accepting is tried again for clients that have gone meanwhile.
const TRIES: usize = 16;

/// See the module's text.
pub(super) struct Acceptor {
    listener: Listener,
    address: Arc<Address>,
    health: Health,
    _noted: Option<OpenDescriptor>,
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

impl Acceptor {
    pub(super) fn new(listener: Listener, control: &Arc<Control>) -> Acceptor {
        Acceptor {
            address: Arc::new(listener.address().clone()),
            health: Health::Well,
            _noted: control.note(listener.socket()),
            listener,
        }
    }

    /// Where it listens.
    pub(super) fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// What to wait for, while it is well.
    pub(super) fn socket(&self) -> Option<&Socket> {
        (self.health == Health::Well).then(|| self.listener.socket())
    }

    /// When to look after it.
    pub(super) fn look_at(&self) -> Option<Instant> {
        match self.health {
            Health::Rests(until) | Health::Lost(until, _) => Some(until),
            Health::Well | Health::Dead => None,
        }
    }

    /// The next client that waits, if there is one.
    pub(super) fn next(&mut self, now: Instant) -> Option<Socket> {
        for _ in 0..TRIES {
            match self.listener.socket().accept().map_err(|error| error.raw_os_error()) {
                Ok(socket) => return Some(socket),
                Err(Some(libc::EAGAIN)) => return None,
                Err(Some(libc::EINTR | libc::ECONNABORTED)) => {}
                Err(Some(libc::EBADF | libc::ENOTSOCK | libc::EINVAL)) => {
                    self.health = Health::Lost(now, 0);
                    return None;
                }
                // EMFILE, ENFILE, ENOBUFS, ENOMEM, a firewall's EPERM …
                Err(_) => {
                    self.health = Health::Rests(now + REST);
                    return None;
                }
            }
        }
        None
    }

    /// Helps it where it is not well.
    pub(super) fn look_after(&mut self, control: &Arc<Control>, log: Log, now: Instant) {
        match self.health {
            Health::Rests(until) if until <= now => self.health = Health::Well,
            Health::Lost(at, times) if at <= now => match self.listener.reopen() {
                Ok(listener) => {
                    control.replace_file(&self.listener, &listener);
                    *self = Acceptor::new(listener, control);
                    log.line(format_args!("opened {} again", self.address));
                }
                Err(_) if times < REOPENINGS => self.health = Health::Lost(now + REST, times + 1),
                Err(error) => {
                    log.line(error);
                    self.health = Health::Dead;
                }
            },
            _ => {}
        }
    }
}
