//! Threads that wait for work of the agent's, in a program that forbids its user new threads
//! (`RLIMIT_NPROC`, as haproxy does after its start). They are started before the limit is set, by
//! the server thread: they share its root directory and descriptors, which are not the host's.
//!
//! Each waits at a channel of its own, whose sender lies in a place. To take the sender out is to
//! take the thread: to send work, or to drop the sender, which ends the thread.

use crate::agent_threads;
use crate::channel::{Receiver, Sender, channel};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use swipr_os::own_threads::PREFIX;
use swipr_os::process;
use swipr_os::threads::{self, Body};

/// The sampler, and writers and symbols for it.
const SPARE: usize = 4;
const NAME: &str = "spare";
/// A thread that nobody needs wakes so often.
const PAUSE: Duration = Duration::from_secs(3600);

static PLACES: [AtomicPtr<Sender<Body>>; SPARE] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SPARE];

/// How often, and how long each time, a thread of the host waits until they are there.
const WAITS: u32 = 10_000;
const WAIT: Duration = Duration::from_micros(100);

/// Whether the server thread is to start some.
static ARE_WANTED: AtomicBool = AtomicBool::new(false);
/// Whether there are to be some.
static ARE_KEPT: AtomicBool = AtomicBool::new(false);

fn take(place: &AtomicPtr<Sender<Body>>) -> Option<Box<Sender<Body>>> {
    let sender = place.swap(std::ptr::null_mut(), SeqCst);
    // SAFETY: put there by `offer`, out of a box, and taken out once.
    (!sender.is_null()).then(|| unsafe { Box::from_raw(sender) })
}

/// A channel whose sender is put into a free place; `None`: there is none, and no thread is needed.
fn offer() -> Option<Receiver<Body>> {
    let (sender, receiver) = channel(1);
    put(sender).then_some(receiver)
}

/// Puts a sender into a free place. If there is none, drops it.
fn put(sender: Sender<Body>) -> bool {
    let sender = Box::into_raw(Box::new(sender));
    let is_put =
        |place: &AtomicPtr<_>| place.compare_exchange(std::ptr::null_mut(), sender, SeqCst, Relaxed).is_ok();
    if PLACES.iter().any(is_put) {
        return true;
    }
    // SAFETY: made above, and nobody has seen it.
    drop(unsafe { Box::from_raw(sender) });
    false
}

/// Has the server thread, which `wake` wakes, start as many as are missing, and waits for that.
pub fn want_spare(wake: impl Fn()) {
    ARE_WANTED.store(true, SeqCst);
    wake();
    let mut waits = 0..WAITS;
    while ARE_WANTED.load(SeqCst) && waits.next().is_some() {
        process::sleep(WAIT);
    }
}

/// On the server thread: starts them, if they are wanted, and the program may have new threads.
pub fn keep_spare_if_wanted() {
    if ARE_WANTED.load(SeqCst) {
        keep();
        ARE_WANTED.store(false, SeqCst);
    }
}

fn keep() {
    ARE_KEPT.store(true, SeqCst);
    for _ in 0..SPARE {
        let is_missing = PLACES.iter().any(|place| place.load(Relaxed).is_null());
        let (sender, receiver) = channel(1);
        if !is_missing || agent_threads::start_new(NAME, move || wait(receiver)).is_err() {
            break;
        }
        put(sender);
    }
}

fn wait(mut receiver: Receiver<Body>) {
    loop {
        match receiver.receive(PAUSE) {
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(body) => body(),
        }
        let Some(next) = offer() else { return };
        receiver = next;
        // SeqCst, as in `end`: one of the two sees what the other one did.
        if !ARE_KEPT.load(SeqCst) {
            end();
        }
        threads::set_name(&format!("{PREFIX}{NAME}"));
    }
}

/// Has it done by one of them; or returns it.
pub fn give(body: Body) -> Result<(), Body> {
    match PLACES.iter().find_map(take) {
        Some(sender) => {
            // The channel is empty, and its thread waits.
            let _ = sender.send(body);
            Ok(())
        }
        None => Err(body),
    }
}

/// Ends those that wait, and later those that do something.
pub fn end() {
    ARE_KEPT.store(false, SeqCst);
    PLACES.iter().for_each(|place| drop(take(place)));
}

/// After fork, in the child: there are none. Those of the parent are leaked.
pub fn forget_after_fork() {
    ARE_WANTED.store(false, Release);
    ARE_KEPT.store(false, Release);
    PLACES.iter().for_each(|place| place.store(std::ptr::null_mut(), Release));
}
