//! The handle of the server, and its thread. Not here: what the thread does (`event_loop.rs`).

use crate::Settings;
use crate::connection::ServerContext;
use crate::event_loop::control::{Control, OpenDescriptor};
use crate::event_loop::listening::Acceptor;
use crate::event_loop::poller::{self, Poller, Watch};
use crate::event_loop::{EventLoop, FIRST_CLIENT};
use crate::listen::Listener;
use crate::recording::Recorder;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The handle of a server. Dropping it stops the server without waiting.
pub struct Server {
    control: Arc<Control>,
    _descriptor: Option<OpenDescriptor>,
}

impl Server {
    /// Makes a server and the loop that a thread must run for it.
    ///
    /// That thread should have every signal blocked: it must not handle the host's signals.
    pub fn new(
        listeners: Vec<Listener>,
        recorder: Arc<dyn Recorder>,
        settings: Settings,
    ) -> io::Result<(Server, EventLoop)> {
        let (waker, sleeper) = poller::waker()?;
        let control = Arc::new(Control::new(waker));
        for listener in &listeners {
            control.add_file(listener);
        }
        let listening = listeners.into_iter();
        let listening = listening.map(|listener| Acceptor::new(listener, &control));
        let waking = Arc::clone(&control);
        let event_loop = EventLoop {
            listening: listening.collect(),
            clients: Vec::new(),
            last_id: FIRST_CLIENT,
            context: ServerContext { recorder, settings, wake: Arc::new(move || waking.waker.wake()) },
            sleeper_watch: Watch::default(),
            sleeper_descriptor: control.register(&sleeper),
            sleeper: Some(sleeper),
            poller: Poller::new()?,
            control: Arc::clone(&control),
            failed_waits: 0,
        };
        let noted = control.register(control.waker.socket());
        let server = Server { control, _descriptor: noted };
        Ok((server, event_loop))
    }

    /// Has the thread check its connections. Takes no lock and does not wait.
    pub fn wake(&self) {
        self.control.waker.wake();
    }

    /// Whether a client has not got all of its recording yet.
    pub fn is_recording(&self) -> bool {
        self.control.is_recording()
    }

    /// Removes the sockets' files and has the thread end. Does not wait.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Waits until the thread has ended its work, at most so long; returns whether
    /// it has. All connections are closed then.
    pub fn wait(&self, bound: Duration) -> bool {
        self.control.wait(bound)
    }

    /// For the child of a fork, which has this handle but not the thread: closes the
    /// copies of the parent's sockets. Touches neither the parent's connections nor its
    /// files. Takes no lock and frees nothing. The handle must not be dropped or used
    /// afterwards: locks may be as the parent's thread held them.
    pub fn close_in_child(&self) {
        self.control.close_in_child();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
