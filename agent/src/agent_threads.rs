//! The agent's own threads: they are not sampled and are started in one way.

use crate::platform::{process, signals};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};

/// The ids of the agent's threads; 0: a free place. Not behind a lock, which a
/// fork could leave locked in the child. More places than the agent has threads:
/// a server, a sampler, a writer for each recording.
static TIDS: [AtomicU32; 32] = [const { AtomicU32::new(0) }; 32];
/// Symbolizing descends into DWARF trees.
const STACK_BYTES: usize = 1 << 20;

struct Registered(u32);

impl Registered {
    fn new(tid: u32) -> Registered {
        TIDS.iter().find(|place| place.compare_exchange(0, tid, Relaxed, Relaxed).is_ok());
        Registered(tid)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        TIDS.iter().find(|place| place.compare_exchange(self.0, 0, Relaxed, Relaxed).is_ok());
    }
}

/// How the names of the agent's threads begin. A new thread has its parent's name first: one of these, too.
const PREFIX: &str = "swipr-";

/// Starts a thread of the agent: `swipr-` and its `name`, with all signals blocked, not sampled.
pub fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    signals::with_signals_blocked(|| {
        Builder::new().name(format!("{PREFIX}{name}")).stack_size(STACK_BYTES).spawn(move || {
            let _registered = Registered::new(process::tid());
            body()
        })
    })
}

/// Whether a thread is the agent's own.
pub fn contains(tid: u32) -> bool {
    TIDS.iter().any(|place| place.load(Relaxed) == tid)
}

/// Whether a thread with this name may be the agent's own.
pub fn is_our_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// After fork, in the child: none of them exists here.
pub fn forget_after_fork() {
    TIDS.iter().for_each(|place| place.store(0, Relaxed));
}
