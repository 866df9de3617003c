//! What the server's handle and its thread share: stop, done, the files to remove,
//! and the sockets that the child of a fork must close.

use super::poller::Waker;
use crate::listen::{Listener, SocketFile};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use swipr_os::locks::{after_waiting, lock};
use swipr_os::socket::{Socket, cookie};

/// More sockets than the server has at once.
const SLOTS: usize = 96;
/// There is no socket in the slot.
const FREE: i32 = -1;

/// Shared between handle and thread.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) waker: Waker,
    stopping: AtomicBool,
    recording: AtomicBool,
    is_done: Mutex<bool>,
    done: Condvar,
    files: Mutex<Vec<Arc<SocketFile>>>,
    /// Atomics and no lock: the child of a fork may find a lock taken for ever.
    slots: Arc<[Slot; SLOTS]>,
}

#[derive(Debug)]
struct Slot {
    fd: AtomicI32,
    cookie: AtomicU64,
}

/// A socket's entry in the list of open ones; dropping it takes it off.
#[derive(Debug)]
pub(crate) struct OpenDescriptor {
    slots: Arc<[Slot; SLOTS]>,
    index: usize,
}

impl Control {
    pub(crate) fn new(waker: Waker) -> Control {
        let slot = |_| Slot { fd: AtomicI32::new(FREE), cookie: AtomicU64::new(0) };
        Control {
            waker,
            stopping: AtomicBool::new(false),
            recording: AtomicBool::new(false),
            is_done: Mutex::new(false),
            done: Condvar::new(),
            files: Mutex::new(Vec::new()),
            slots: Arc::new(std::array::from_fn(slot)),
        }
    }

    /// Puts a socket on the list of open ones.
    pub(crate) fn register(&self, socket: &Socket) -> Option<OpenDescriptor> {
        let free = |slot: &Slot| slot.fd.load(Ordering::Relaxed) == FREE;
        let index = self.slots.iter().position(free)?;
        let slot = self.slots.get(index)?;
        slot.cookie.store(socket.cookie(), Ordering::Relaxed);
        // Release: a thread that sees the number sees its cookie.
        slot.fd.store(socket.fd(), Ordering::Release);
        Some(OpenDescriptor { slots: Arc::clone(&self.slots), index })
    }

    /// In the child of a fork: closes its copies of the parent's sockets. Takes no lock and frees
    /// nothing.
    pub(crate) fn close_in_child(&self) {
        for slot in self.slots.iter() {
            // Acquire: pairs with the store in `note`.
            let fd = slot.fd.load(Ordering::Acquire);
            if fd != FREE && cookie(fd) == Some(slot.cookie.load(Ordering::Relaxed)) {
                let _ = nix::unistd::close(fd);
            }
        }
    }

    pub(crate) fn add_file(&self, listener: &Listener) {
        if let (Some(file), Some(mut files)) = (listener.file(), lock(&self.files)) {
            files.push(Arc::clone(file));
        }
    }

    /// A listener was opened again: its old file must not be removed any more.
    pub(crate) fn replace_file(&self, old: &Listener, new: &Listener) {
        if let Some(file) = old.file() {
            file.forget();
            if let Some(mut files) = lock(&self.files) {
                files.retain(|known| !Arc::ptr_eq(known, file));
            }
        }
        self.add_file(new);
        if self.is_stopping() {
            self.remove_files();
        }
    }

    fn remove_files(&self) {
        for file in lock(&self.files).iter().flat_map(|files| files.iter()) {
            file.remove();
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Sets whether a client waits for more of a recording.
    pub(crate) fn set_recording(&self, recording: bool) {
        self.recording.store(recording, Ordering::Release);
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.remove_files();
        self.waker.wake();
    }

    /// Waits until the thread is done, at most so long; whether it is.
    pub(crate) fn wait(&self, bound: Duration) -> bool {
        let is_done = self.is_done.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.done.wait_timeout_while(is_done, bound, |done| !*done);
        *after_waiting(waited).0
    }
}

/// The thread's work; dropping it says that it is done, also where a panic ends it.
#[derive(Debug)]
pub(crate) struct Done(pub(crate) Arc<Control>);

impl Drop for Done {
    fn drop(&mut self) {
        *self.0.is_done.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.done.notify_all();
    }
}

impl Drop for OpenDescriptor {
    fn drop(&mut self) {
        if let Some(slot) = self.slots.get(self.index) {
            slot.fd.store(FREE, Ordering::Release);
        }
    }
}
