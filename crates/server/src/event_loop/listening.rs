//! An acceptor: a listener in the server's loop. It accepts clients, backs off on errors, and opens
//! the socket again after the host closed it. Not here: the client's user (`admission.rs`), opening
//! the first time (`listen.rs`).

use super::control::{Control, OpenDescriptor};
use super::poller::{Poller, Watch};
use crate::listen::{Address, Listener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use swipr_os::log::Log;
use swipr_os::socket::Socket;

/// How long an acceptor backs off that lacks descriptors or memory.
pub(crate) const REST: Duration = Duration::from_secs(1);
/// How often a listener that the host closed is opened again, in a row.
const REOPENINGS: u32 = 10;
/// How often accepting is tried if clients have gone meanwhile.
const TRIES: usize = 16;

/// Accepts the clients of a listener.
pub(crate) struct Acceptor {
    listener: Listener,
    address: Arc<Address>,
    health: Health,
    pub(super) watch: Watch,
    _descriptor: Option<OpenDescriptor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Well,
    /// Backs off until then.
    Rests(Instant),
    /// The host closed the socket. When to open it again, and how many attempts have failed.
    Lost(Instant, u32),
    /// Given up.
    Dead,
}

impl Acceptor {
    pub(crate) fn new(listener: Listener, control: &Arc<Control>) -> Acceptor {
        Acceptor {
            address: Arc::new(listener.address().clone()),
            health: Health::Well,
            watch: Watch::default(),
            _descriptor: control.register(listener.socket()),
            listener,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// Has the poller report clients, unless the acceptor backs off or has lost its socket. Returns
    /// whether it can. If not, clients are accepted once, and the acceptor backs off: there is no
    /// memory, or the user's limit is reached (`fs.epoll.max_user_watches`).
    pub(super) fn arm(&mut self, poller: &Poller, token: usize) -> bool {
        if self.health != Health::Well {
            return true;
        }
        let is_armed = poller.arm(self.listener.socket(), token, libc::POLLIN, &mut self.watch);
        if !is_armed {
            self.health = Health::Rests(Instant::now() + REST);
        }
        is_armed
    }

    /// When to call [`Acceptor::look_after`].
    pub(crate) fn look_at(&self) -> Option<Instant> {
        match self.health {
            Health::Rests(until) | Health::Lost(until, _) => Some(until),
            Health::Well | Health::Dead => None,
        }
    }

    /// Accepts the next client, if there is one.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Socket> {
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

    /// Ends a back-off, or opens a lost socket again, if it is time.
    pub(crate) fn look_after(&mut self, control: &Arc<Control>, log: Log, now: Instant) {
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

#[cfg(test)]
mod tests {
    use super::super::poller::waker;
    use super::*;
    use crate::listen::{Directories, Identity, Place, Reach};

    /// Regression: the loop did not wait while the poller refused the listener (ENOSPC).
    #[test]
    fn a_listener_that_the_poller_refuses_rests_and_is_tried_again() {
        let place = Place::Tcp("127.0.0.1:0".parse().unwrap());
        let directories = Directories::system(None);
        let listener = Listener::open(&place, &Identity::of_this_process(), &directories, Reach::Owner);
        let control = Arc::new(Control::new(waker().unwrap().0));
        let mut acceptor = Acceptor::new(listener.unwrap(), &control);
        let full = Poller::new().unwrap();
        // A socket that is there already is refused, too.
        assert!(full.arm(acceptor.listener.socket(), 0, libc::POLLIN, &mut Watch::default()));
        assert!(!acceptor.arm(&full, 1));
        assert_eq!(acceptor.watch.take_ready(), libc::POLLNVAL, "a waiting client is accepted");
        assert!(acceptor.next(Instant::now()).is_none());
        assert!(acceptor.arm(&full, 1), "the loop may wait");
        let later = acceptor.look_at().unwrap();
        acceptor.look_after(&control, Log::default(), later);
        assert!(acceptor.arm(&Poller::new().unwrap(), 1));
        assert_eq!(acceptor.look_at(), None);
    }
}
