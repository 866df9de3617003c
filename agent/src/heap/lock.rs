//! The heap's lock. A fork must hold it, too: otherwise the child could find it held by a thread
//! that the child does not have.
//!
//! A child that no fork handler has seen (of `_Fork`, or of clone(2)) may find it held. The mark
//! of its memory shows that ([`claim`]). It has no heap then: neither it nor its own children wait
//! for a thread that does not exist.

use profiler::for_library::signal_exclusion;
use std::cell::{Cell, UnsafeCell};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use swipr_os::{claim, locks, process};

/// How long a thread waits before it checks whether the holder exists. The lock is held for
/// microseconds.
const TIMEOUT: Duration = Duration::from_millis(20);
/// How often it checks: for five seconds. A holder that a filter has killed never lets go.
const CHECKS: u32 = 250;

struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is there to be shared.
unsafe impl Sync for Lock {}

static LOCK: Lock = Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
/// The process whose threads may hold it; 0: not known yet.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether this is the child of a fork that did not get the lock.
static IS_LOST: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The lock, while this thread forks.
    static OF_FORK: Cell<Option<ManuallyDrop<HeapHeld>>> = const { Cell::new(None) };
}

/// While it lives, the heap is the calling thread's.
#[derive(Debug)]
pub struct HeapHeld(());

impl Drop for HeapHeld {
    fn drop(&mut self) {
        // SAFETY: locked by this thread, or in the parent by the one that is this thread in the
        // child.
        unsafe { libc::pthread_mutex_unlock(LOCK.0.get()) };
    }
}

/// Waits for the lock. `None`: its holder does not exist in this process, or does not let go.
pub fn hold() -> Option<HeapHeld> {
    if IS_LOST.load(Relaxed) {
        return None;
    }
    try_hold().or_else(hold_later)
}

fn try_hold() -> Option<HeapHeld> {
    // SAFETY: an initialised mutex, which stays where it is.
    (unsafe { libc::pthread_mutex_trylock(LOCK.0.get()) } == 0).then(|| HeapHeld(()))
}

#[cold]
fn hold_later() -> Option<HeapHeld> {
    // A fork in a sandbox: its child has no agent, and can do without the heap.
    if signal_exclusion::is_in_sandbox() {
        return locks::spin(try_hold);
    }
    for _ in 0..CHECKS {
        let end_ns = process::epoch_ns() + TIMEOUT.as_nanos() as u64;
        let end = libc::timespec {
            tv_sec: (end_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (end_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: as above; the time is valid.
        if unsafe { libc::pthread_mutex_timedlock(LOCK.0.get(), &raw const end) } == 0 {
            return Some(HeapHeld(()));
        }
        let known = PROCESS.load(Relaxed);
        if known != 0 && !claim::is_claimed_as(known) {
            return None;
        }
    }
    None
}

/// Makes forks hold it. To be called before any other fork handler of the agent is registered, so
/// that those may use the heap.
pub fn watch_forks() {
    unsafe extern "C" fn before() {
        OF_FORK.set(hold().map(ManuallyDrop::new));
    }
    unsafe extern "C" fn in_parent() {
        drop(OF_FORK.take().map(ManuallyDrop::into_inner));
    }
    unsafe extern "C" fn in_child() {
        let held = OF_FORK.take().map(ManuallyDrop::into_inner);
        IS_LOST.store(held.is_none(), Relaxed);
        // In a sandbox even getpid(2) may be forbidden.
        PROCESS.store(if signal_exclusion::is_in_sandbox() { 0 } else { claim::claim() }, Relaxed);
    }
    PROCESS.store(claim::claim(), Relaxed);
    // SAFETY: the functions stay where they are: the library cannot be unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler::for_library::signal_exclusion::Reason;

    /// Regression: a service that had entered a sandbox was killed in fork(2), for a call by which
    /// threads wait.
    #[test]
    fn a_thread_in_a_sandbox_does_not_wait_by_a_system_call() {
        let held = hold().unwrap();
        let is_given_up = std::thread::spawn(|| {
            signal_exclusion::add(Reason::Sandbox);
            hold().is_none()
        });
        assert!(is_given_up.join().unwrap());
        drop(held);
    }
}
