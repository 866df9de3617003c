//! Locks that may be held for ever. A thread of the agent that finds no memory ends on the spot
//! (`heap.rs`) and releases nothing. Other threads that want its locks then give up.

use super::process::sleep;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// How soon a lock that is held is tried again, at first and at last. Most are held for
/// microseconds.
const FIRST_SLEEP: Duration = Duration::from_micros(50);
const MAX_SLEEP: Duration = Duration::from_millis(5);
/// How often a held lock is tried again, once the agent is off.
const TRIES_WHEN_OFF: u32 = 100;

/// The agent is off.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// The agent is off: from now on a lock may have a holder that is gone.
pub fn turn_off() {
    IS_OFF.store(true, Relaxed);
}

/// Takes a lock. `None`: the agent is off, and the lock's holder is gone. What a thread that
/// panicked left behind is taken as it is: the agent's data is consistent between any two
/// statements.
pub fn lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    lock_within(mutex, Duration::MAX)
}

/// As [`lock`]; also `None` after that time.
pub fn lock_within<T>(mutex: &Mutex<T>, at_most: Duration) -> Option<MutexGuard<'_, T>> {
    wait_within(at_most, || match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    })
}

/// Tries until `take` gets something; `None` as for [`lock_within`].
pub fn wait_within<T>(at_most: Duration, mut take: impl FnMut() -> Option<T>) -> Option<T> {
    let mut backoff = LockBackoff { sleep_for: FIRST_SLEEP, left: at_most, tries_when_off: TRIES_WHEN_OFF };
    loop {
        match take() {
            None if backoff.sleep_once() => {}
            taken => return taken,
        }
    }
}

/// How often a thread that may make no system call tries: some milliseconds of its CPU time.
const SPINS: u32 = 200_000;

/// Tries until `take` gets something, without a system call: a sandbox's filter would kill the
/// thread for the calls by which threads wait. `None`: `take` got nothing.
pub fn spin<T>(mut take: impl FnMut() -> Option<T>) -> Option<T> {
    (0..SPINS).find_map(|_| {
        let taken = take();
        if taken.is_none() {
            std::hint::spin_loop();
        }
        taken
    })
}

struct LockBackoff {
    sleep_for: Duration,
    left: Duration,
    tries_when_off: u32,
}

impl LockBackoff {
    /// Waits a little; `false`: the time is over.
    #[cold]
    #[inline(never)]
    fn sleep_once(&mut self) -> bool {
        if self.left.is_zero() || self.tries_when_off == 0 {
            return false;
        }
        sleep(self.sleep_for);
        self.left = self.left.saturating_sub(self.sleep_for);
        self.sleep_for = (self.sleep_for * 2).min(MAX_SLEEP);
        self.tries_when_off -= u32::from(IS_OFF.load(Relaxed));
        true
    }
}

/// The guard that a wait for a condition gives back; see [`lock`] for the poison.
pub fn after_waiting<T>(waited: Result<T, PoisonError<T>>) -> T {
    waited.unwrap_or_else(PoisonError::into_inner)
}
