//! The agent's own threads: they are not sampled and are started in one way.

use crate::off;
use crate::platform::{process, signals, threads};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
#[cfg(feature = "preload")]
use std::{panic::PanicHookInfo, sync::Once};

/// The ids of the agent's threads; 0: a free place. Not behind a lock, which a
/// fork could leave locked in the child. More places than the agent has threads:
/// a server, a sampler, a writer for each recording.
static TIDS: [AtomicU32; 32] = [const { AtomicU32::new(0) }; 32];
/// CPU time of those that ended.
static ENDED_NS: AtomicU64 = AtomicU64::new(0);
/// Symbolizing descends into DWARF trees.
const STACK_BYTES: usize = 1 << 20;

/// Its thread is one of the agent's as long as this lives.
#[derive(Debug)]
pub struct Registered(u32);

impl Registered {
    fn new(tid: u32) -> Registered {
        TIDS.iter().find(|place| place.compare_exchange(0, tid, Relaxed, Relaxed).is_ok());
        Registered(tid)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        forget(self.0);
    }
}

/// It ends: its number may soon be another thread's.
fn forget(tid: u32) {
    ENDED_NS.fetch_add(threads::cpu_ns(tid).unwrap_or(0), Relaxed);
    TIDS.iter().find(|place| place.compare_exchange(tid, 0, Relaxed, Relaxed).is_ok());
}

/// Ends the calling thread, one of the agent's, at once and without running anything of it. Its locks stay locked.
#[cfg(feature = "preload")]
pub fn end_this_one() -> ! {
    off::lose_thread();
    forget(process::tid());
    process::end_thread()
}

/// How the names of the agent's threads begin. A new thread has its parent's name first: one of these, too.
const PREFIX: &str = "swipr-";

/// A panic on one of the agent's threads turns the agent off, before anything is unwound: who sees a recording's parts go
/// finds the reason. It says nothing on the host's stderr. Only in the shared library, which has a standard library of its own, whose panics
/// are all ours: a Rust program's hook is the program's.
#[cfg(feature = "preload")]
pub fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
            if contains(process::tid()) {
                let payload = info.payload();
                let text = payload.downcast_ref::<String>().map(String::as_str);
                let what = text.or_else(|| payload.downcast_ref().copied()).unwrap_or("panic");
                match info.location() {
                    Some(at) => off::turn(format_args!("{what}, at {}:{}", at.file(), at.line())),
                    None => off::turn(what),
                }
            }
        }));
    });
}

/// Starts a thread of the agent: `swipr-` and its `name`, with all signals blocked, not sampled. Nobody waits for it.
pub fn start(name: &'static str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let body = move || {
        let _registered = register(name);
        // Where the agent has no panic hook, this is where a panic is seen first.
        if panic::catch_unwind(AssertUnwindSafe(body)).is_err() {
            off::turn(format_args!("a panic on the thread {PREFIX}{name}"));
        }
    };
    signals::with_signals_blocked(|| threads::start(STACK_BYTES, Box::new(body)))
}

/// Whether a thread is the agent's own.
pub fn contains(tid: u32) -> bool {
    TIDS.iter().any(|place| place.load(Relaxed) == tid)
}

/// Makes the calling thread, which was not started by [`start`], one of the agent's, `swipr-` and its `name`.
pub fn register(name: &str) -> Registered {
    let registered = Registered::new(process::tid());
    threads::set_name(&format!("{PREFIX}{name}"));
    threads::be_ordinary();
    registered
}

/// The ids of those that there are.
pub fn ids() -> Vec<u32> {
    TIDS.iter().map(|place| place.load(Relaxed)).filter(|&tid| tid != 0).collect()
}

/// How many there are.
pub fn count() -> u64 {
    let registered = TIDS.iter().map(|place| place.load(Relaxed)).filter(|&tid| tid != 0);
    registered.filter(|&tid| threads::cpu_ns(tid).is_some()).count() as u64
}

/// CPU time that the agent's threads have used, nanoseconds.
pub fn cpu_ns() -> u64 {
    let live = TIDS.iter().map(|place| place.load(Relaxed)).filter(|&tid| tid != 0);
    live.filter_map(threads::cpu_ns).sum::<u64>() + ENDED_NS.load(Relaxed)
}

/// Whether a thread with this name may be the agent's own.
pub fn is_our_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// After fork, in the child: none of them exists here.
pub fn forget_after_fork() {
    TIDS.iter().for_each(|place| place.store(0, Relaxed));
    ENDED_NS.store(0, Relaxed);
}
