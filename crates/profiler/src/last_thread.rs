//! A process ends when its last thread has called pthread_exit(3). The agent's threads must not
//! keep it alive.
//!
//! glibc ends the process when the last of its threads ends, but it counts the agent's. The first
//! thread can only end before the others by pthread_exit, which runs the destructors of
//! thread-specific data (exit does not). The agent's destructor starts a thread that polls whether
//! any thread of the host is left. If none is, that thread does what glibc's last thread would have
//! done: exit(3) with status 0. The agent's other threads cannot do that: they have their own
//! descriptor table, and the host's exit handlers write to the host's files.
//!
//! A first thread that ends by the system call itself, as strict seccomp wants it, runs no
//! destructor. Neither does a thread that a filter ends. And if another thread than the first
//! started the agent, there is no destructor. In these cases the server checks once a second
//! whether the first thread has ended. The agent learns it from functions that it interposes;
//! a thread that calls none of them and ends by the instruction itself is noticed within a minute.

use crate::{agent_threads, signal_exclusion};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use swipr_os::hook::Hook;
use swipr_os::own_threads;
use swipr_os::threads::{self, TaskDirectory};
use swipr_os::{process, signals};

/// How soon after the last thread's end the process ends.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How often the server checks whether the first thread has ended, where that may be unseen.
const SLOW_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often it checks otherwise.
const RARE_POLL_INTERVAL: Duration = Duration::from_secs(60);

const UNKNOWN: u8 = 0;
const WATCHED: u8 = 1;
const ENDED: u8 = 2;
/// Its destructor has run, and has started a thread that polls.
const LEFT_TO_A_THREAD: u8 = 3;
/// It has ended without its destructor.
const ENDED_UNSEEN: u8 = 4;
/// It may be about to end without its destructor.
const MAY_END_UNSEEN: u8 = 5;

/// What is known of the process's first thread.
static FIRST: AtomicU8 = AtomicU8::new(UNKNOWN);

/// A bit for each signal that the first thread blocked as it ended: exit handlers run with these
/// blocked, too.
static MASK: AtomicU64 = AtomicU64::new(UNKNOWN_MASK);
/// No mask: SIGKILL cannot be blocked.
const UNKNOWN_MASK: u64 = u64::MAX;

/// Wakes the server, which polls from then on.
static WAKE_SERVER: Hook = Hook::new();

/// Called by the thread that starts the agent. `wake_server` is called when the server has to poll
/// from then on.
pub fn watch_if_first(wake_server: &'static fn()) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    WAKE_SERVER.set(wake_server);
    FIRST.store(UNKNOWN, Relaxed);
    if process::tid() != process::pid() {
        return;
    }
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is a local variable; the destructor stays where it is: the library cannot
        // be unloaded.
        (unsafe { libc::pthread_key_create(&mut key, Some(first_ended)) } == 0).then_some(key)
    });
    // The value only has to be something else than null.
    let value: *const c_void = (&raw const FIRST).cast();
    // SAFETY: the key was made above.
    if key.is_some_and(|key| unsafe { libc::pthread_setspecific(key, value) } == 0) {
        FIRST.store(WATCHED, Relaxed);
    }
}

/// The calling thread enters a sandbox, or ends by a system call.
pub fn may_end_unseen() {
    let is_first = process::tid() == process::pid();
    if is_first && FIRST.compare_exchange(WATCHED, MAY_END_UNSEEN, Relaxed, Relaxed).is_ok() {
        WAKE_SERVER.call();
    }
}

unsafe extern "C" fn first_ended(_: *mut c_void) {
    if signal_exclusion::is_in_sandbox() {
        return FIRST.store(ENDED, Relaxed);
    }
    FIRST.store(LEFT_TO_A_THREAD, Relaxed);
    MASK.store(signals::mask(None), Relaxed);
    // SAFETY: `end_with_the_last` has the required signature; the thread's id goes to a local.
    let started = signals::with_signals_blocked(|| unsafe {
        let mut thread = std::mem::zeroed();
        libc::pthread_create(&mut thread, std::ptr::null(), end_with_the_last, std::ptr::null_mut()) == 0
            && libc::pthread_detach(thread) == 0
    });
    if !started {
        leave_it_to_the_server();
    }
}

/// Whether `routine` is the first function of a thread of the agent.
pub fn is_ours(routine: usize) -> bool {
    routine == end_with_the_last as *const () as usize
}

/// The body of a thread that shares the host's descriptors.
extern "C" fn end_with_the_last(_: *mut c_void) -> *mut c_void {
    signals::block_synchronous();
    let _registered = agent_threads::register("exit");
    loop {
        process::sleep(POLL_INTERVAL);
        // The first thread stays listed until the process ends.
        match threads::count() {
            Some(_) if !host_is_left() => exit_successfully(),
            Some(_) => {}
            None => {
                leave_it_to_the_server();
                return std::ptr::null_mut();
            }
        }
    }
}

fn leave_it_to_the_server() {
    FIRST.store(ENDED, Relaxed);
    WAKE_SERVER.call();
}

/// How soon the server must check without being woken.
pub fn timeout() -> Option<Duration> {
    match FIRST.load(Relaxed) {
        LEFT_TO_A_THREAD => None,
        ENDED | ENDED_UNSEEN => Some(POLL_INTERVAL),
        WATCHED => Some(RARE_POLL_INTERVAL),
        _ => Some(SLOW_POLL_INTERVAL),
    }
}

/// The server thread is awake: checks whether the first thread has ended and, if so, whether any
/// thread of the host is left. Does not return if none is.
pub fn check() {
    match FIRST.load(Relaxed) {
        LEFT_TO_A_THREAD => return,
        ENDED | ENDED_UNSEEN => {}
        _ if !threads::first_has_ended() => return,
        // Its destructor did not run: between that and its end there is time enough to start the
        // thread.
        WATCHED | MAY_END_UNSEEN => FIRST.store(ENDED_UNSEEN, Relaxed),
        _ => FIRST.store(ENDED, Relaxed),
    }
    if host_is_left() {
        return;
    }
    match FIRST.load(Relaxed) {
        // No exit handlers either: the kernel would have ended the process.
        ENDED_UNSEEN => process::exit_as_first_thread(),
        _ => exit_successfully(),
    }
}

/// Runs the host's exit handlers as its last thread would have.
fn exit_successfully() -> ! {
    let mask = MASK.load(Relaxed);
    if mask != UNKNOWN_MASK {
        signals::mask(Some(mask));
    }
    process::exit_successfully()
}

fn host_is_left() -> bool {
    let mut tids = vec![];
    match TaskDirectory::open().and_then(|directory| directory.list(&mut tids)) {
        // The first thread stays listed until the process ends.
        Ok(()) if threads::first_has_ended() => {
            tids.iter().any(|&tid| tid != process::pid() && !own_threads::contains(tid))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_first_thread_lives_is_left_alone() {
        watch_if_first(&((|| {}) as fn())); // tests run on other threads
        assert_eq!(timeout(), Some(SLOW_POLL_INTERVAL));
        check();
        assert!(host_is_left());
    }
}
