//! Waits for sockets, with a waker for other threads.
//!
//! mio is edge-triggered, but a connection that leaves bytes unread must be reported again. So
//! every wait registers its sockets again: a registration reports what is ready already. There are
//! never more than some seventy. Not here: what connections do with their sockets.

mod pending;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use pending::Pending;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;
use swipr_os::socket::Socket;

/// The sockets of a wait, and what is ready.
#[derive(Debug)]
pub(crate) struct Poller {
    poll: Poll,
    events: Events,
    entries: Vec<Entry>,
}

/// One descriptor of a wait.
#[derive(Debug)]
struct Entry {
    fd: RawFd,
    events: i16,
    happened: i16,
}

impl Poller {
    /// Waits for nothing yet.
    pub(crate) fn new() -> io::Result<Poller> {
        Ok(Poller { poll: Poll::new()?, events: Events::with_capacity(128), entries: Vec::new() })
    }

    /// Starts a new list.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds a socket; returns its place in the list. Without any `events` only its
    /// end is waited for (`POLLHUP`, `POLLERR`, `POLLNVAL`).
    pub(crate) fn add(&mut self, socket: &Socket, events: i16) -> usize {
        self.entries.push(Entry { fd: socket.fd(), events, happened: 0 });
        self.entries.len() - 1
    }

    /// Waits until something happens, or for `timeout` (`None`: for ever).
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let mut timeout = timeout;
        for (place, entry) in self.entries.iter_mut().enumerate() {
            entry.happened = 0;
            let source = &mut SourceFd(&entry.fd);
            if self.poll.registry().register(source, Token(place), interest(entry.events)).is_err() {
                entry.happened = libc::POLLNVAL; // the host closed it, or put a file on its number
                timeout = Some(Duration::ZERO);
            }
        }
        let waited = self.poll.poll(&mut self.events, timeout);
        for entry in self.entries.iter().filter(|entry| entry.happened != libc::POLLNVAL) {
            // Fails for what was closed meanwhile, which took it off the list as well.
            let _ = self.poll.registry().deregister(&mut SourceFd(&entry.fd));
        }
        match waited {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        for event in &self.events {
            if let Some(entry) = self.entries.get_mut(event.token().0) {
                entry.happened |= readiness(event) & (entry.events | libc::POLLHUP | libc::POLLERR);
            }
        }
        Ok(())
    }

    /// What happened at that place.
    pub(crate) fn readiness(&self, place: usize) -> i16 {
        self.entries.get(place).map_or(0, |entry| entry.happened)
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
        let mut poller = Poller::new().unwrap();
        for _ in 0..3 {
            for _ in 0..100_000 {
                waker.wake();
            }
            poller.clear();
            let place = poller.add(&sleeper, libc::POLLIN);
            poller.wait(None).unwrap();
            assert_eq!(poller.readiness(place), libc::POLLIN);
            waker.drain(&sleeper);
            poller.wait(Some(Duration::ZERO)).unwrap();
            assert_eq!(poller.readiness(place), 0);
            poller.clear();
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
            let mut poller = Poller::new().unwrap();
            while heard.iter().any(|heard| heard.load(Ordering::Relaxed) < ROUNDS) {
                poller.clear();
                let place = poller.add(&sleeper, libc::POLLIN);
                poller.wait(Some(Duration::from_secs(10))).unwrap();
                if poller.readiness(place) == 0 {
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
