//! Waits for sockets, with a waker for other threads.
//!
//! A socket is registered once. mio is edge-triggered, but a connection that leaves bytes unread
//! must be reported again: a socket that was reported is armed again before the next wait, which
//! reports what is ready then. Not here: what connections do with their sockets.
//!
//! The waker is not mio's: that writes to a descriptor by its number, which may be the host's file
//! by now, in a thread of the host.

mod pending;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use pending::Pending;
use std::io;
use std::time::Duration;
use swipr_os::socket::Socket;

/// Registered sockets, and what is ready.
#[derive(Debug)]
pub(crate) struct Poller {
    poll: Poll,
    events: Events,
}

/// What a poller knows of a socket.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    is_registered: bool,
    /// What is waited for; `None`: it is to be armed again.
    armed: Option<i16>,
    ready: i16,
}

impl Watch {
    /// Takes what was ready. If that is anything, the socket is armed again before the next wait.
    pub(crate) fn take_ready(&mut self) -> i16 {
        if self.ready != 0 {
            self.armed = None;
        }
        std::mem::take(&mut self.ready)
    }

    /// What a poller reports of it.
    pub(crate) fn report(&mut self, readiness: i16) {
        self.ready |= readiness & (self.armed.unwrap_or(0) | libc::POLLHUP | libc::POLLERR);
    }
}

impl Poller {
    /// Waits for nothing yet.
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { poll: Poll::new()?, events: Events::with_capacity(128) })
    }

    /// Has a socket reported under a token. Without any `events` only its end is waited for
    /// (`POLLHUP`, `POLLERR`). Returns whether it can be: the host may have closed it, which no
    /// poller reports, or put a file on its number. Then it is ready with `POLLNVAL`.
    pub(crate) fn arm(&self, socket: &Socket, token: usize, events: i16, watch: &mut Watch) -> bool {
        let mut is_armed = socket.is_ours();
        if is_armed && watch.armed != Some(events) {
            let (registry, fd) = (self.poll.registry(), socket.fd());
            let (source, token, interest) = (&mut SourceFd(&fd), Token(token), interest(events));
            let result = match watch.is_registered {
                true => registry.reregister(source, token, interest),
                false => registry.register(source, token, interest),
            };
            is_armed = result.is_ok();
        }
        *watch = match is_armed {
            true => Watch { is_registered: true, armed: Some(events), ready: 0 },
            false => Watch { ready: libc::POLLNVAL, ..Watch::default() },
        };
        is_armed
    }

    /// Waits until something happens, or for `timeout` (`None`: for ever).
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }

    /// Tokens of sockets that are ready, and with what.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (usize, i16)> {
        self.events.iter().map(|event| (event.token().0, readiness(event)))
    }
}

/// The end of a descriptor is always reported, but mio wants at least one interest.
fn interest(events: i16) -> Interest {
    let reading = (events & libc::POLLIN != 0).then_some(Interest::READABLE);
    let writing = (events & libc::POLLOUT != 0).then_some(Interest::WRITABLE);
    match (reading, writing) {
        (Some(reading), Some(writing)) => reading.add(writing),
        (one, other) => one.or(other).unwrap_or(Interest::PRIORITY),
    }
}

fn readiness(event: &mio::event::Event) -> i16 {
    let bits = [
        (event.is_readable(), libc::POLLIN),
        (event.is_writable(), libc::POLLOUT),
        (event.is_read_closed() && event.is_write_closed(), libc::POLLHUP),
        (event.is_error(), libc::POLLERR),
    ];
    bits.into_iter().filter(|(is, _)| *is).fold(0, |all, (_, bit)| all | bit)
}

/// Wakes a thread that waits in [`Poller::wait`] with the [`Sleeper`]'s socket.
#[derive(Debug)]
pub(crate) struct Waker {
    socket: Socket,
    pending: Pending,
}

impl Waker {
    /// Wakes. Never waits; callable from any thread, not from a signal handler.
    pub(crate) fn wake(&self) {
        self.pending.raise(|| {
            // A full buffer wakes, too. A socket that is not the agent's does not: the host
            // closed it, or the caller has another descriptor table. While the server's loop
            // must not miss a wake-up, it polls as well.
            let sent = self.socket.send(&[1]);
            sent.is_ok() || sent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        });
    }

    /// What the child of a fork must close.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Takes the sleeper's bytes. Later calls of [`Waker::wake`] wake again. What callers did
    /// before earlier calls is visible now.
    pub(crate) fn drain(&self, sleeper: &Socket) {
        let mut bytes = [0; 64];
        self.pending.lower(|| while sleeper.receive(&mut bytes).is_ok_and(|count| count > 0) {});
    }
}

/// A waker and the socket that it makes readable.
pub(crate) fn waker() -> io::Result<(Waker, Socket)> {
    let (socket, sleeper) = Socket::pair()?;
    Ok((Waker { socket, pending: Pending::default() }, sleeper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    #[test]
    fn a_wake_before_the_wait_is_not_lost_and_many_are_one() {
        let (waker, sleeper) = waker().unwrap();
        let (mut poller, mut watch) = (Poller::new().unwrap(), Watch::default());
        for _ in 0..3 {
            for _ in 0..100_000 {
                waker.wake();
            }
            assert!(poller.arm(&sleeper, 7, libc::POLLIN, &mut watch));
            poller.wait(None).unwrap();
            assert_eq!(poller.ready().collect::<Vec<_>>(), [(7, libc::POLLIN)]);
            poller.ready().for_each(|(_, readiness)| watch.report(readiness));
            assert_eq!(watch.take_ready(), libc::POLLIN);
            waker.drain(&sleeper);
            poller.wait(Some(Duration::ZERO)).unwrap();
            assert_eq!(poller.ready().next(), None);
        }
    }

    #[test]
    fn no_wake_is_lost_between_threads() {
        const ROUNDS: usize = 20_000;
        let (waker, sleeper) = waker().unwrap();
        let said = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let heard = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (said, heard) in said.iter().zip(&heard) {
                let (waker, failed) = (&waker, &failed);
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        said.store(round, Ordering::Release);
                        waker.wake();
                        while heard.load(Ordering::Acquire) < round && !failed.load(Ordering::Relaxed) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let (mut poller, mut watch) = (Poller::new().unwrap(), Watch::default());
            while heard.iter().any(|heard| heard.load(Ordering::Relaxed) < ROUNDS) {
                assert!(poller.arm(&sleeper, 0, libc::POLLIN, &mut watch));
                poller.wait(Some(Duration::from_secs(10))).unwrap();
                poller.ready().for_each(|(_, readiness)| watch.report(readiness));
                if watch.take_ready() == 0 {
                    failed.store(true, Ordering::Relaxed);
                    break;
                }
                waker.drain(&sleeper);
                for (said, heard) in said.iter().zip(&heard) {
                    heard.store(said.load(Ordering::Acquire), Ordering::Release);
                }
            }
        });
        assert!(!failed.into_inner(), "somebody waits and was not heard");
    }
}
