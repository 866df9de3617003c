//! The agent's own threads: they are not sampled and are started in one way.

use crate::off;
use crate::platform::{process, signals, threads};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
#[cfg(feature = "preload")]
use std::{panic::PanicHookInfo, sync::Once};

/// Places for the ids of the agent's threads; 0: a free one. Not behind a lock, which a fork could
/// leave locked in the child.
struct Places {
    tids: [AtomicU32; 32],
    next: AtomicPtr<Places>,
}

impl Places {
    const fn new() -> Places {
        Places { tids: [const { AtomicU32::new(0) }; 32], next: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn next(&self) -> Option<&'static Places> {
        // Acquire: pairs with the exchange in `add`.
        // SAFETY: null, or leaked by `add` and never freed.
        unsafe { self.next.load(Acquire).as_ref() }
    }

    /// Adds places behind these.
    fn add(&'static self) {
        let new = Box::into_raw(Box::new(Places::new()));
        let null = std::ptr::null_mut();
        if self.next.compare_exchange(null, new, AcqRel, Relaxed).is_err() {
            // Another thread has added some.
            // SAFETY: made above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

/// Enough for the recordings that there may be at once. More come with a thread that finds none
/// free.
static PLACES: Places = Places::new();

fn tids() -> impl Iterator<Item = &'static AtomicU32> {
    std::iter::successors(Some(&PLACES), |places| places.next()).flat_map(|places| &places.tids)
}

/// CPU time of those that ended.
static ENDED_NS: AtomicU64 = AtomicU64::new(0);
/// Symbolizing descends into DWARF trees.
const STACK_BYTES: usize = 1 << 20;

/// Its thread is one of the agent's as long as this lives.
#[derive(Debug)]
pub struct Registered(u32);

impl Registered {
    fn new(tid: u32) -> Registered {
        let is_put = |places: &Places| {
            places.tids.iter().any(|place| place.compare_exchange(0, tid, Relaxed, Relaxed).is_ok())
        };
        let mut places = &PLACES;
        while !is_put(places) {
            match places.next() {
                Some(next) => places = next,
                None => places.add(),
            }
        }
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
    tids().find(|place| place.compare_exchange(tid, 0, Relaxed, Relaxed).is_ok());
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
    tids().any(|place| place.load(Relaxed) == tid)
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
    tids().map(|place| place.load(Relaxed)).filter(|&tid| tid != 0).collect()
}

/// How many there are.
pub fn count() -> u64 {
    let registered = tids().map(|place| place.load(Relaxed)).filter(|&tid| tid != 0);
    registered.filter(|&tid| threads::cpu_ns(tid).is_some()).count() as u64
}

/// CPU time that the agent's threads have used, nanoseconds.
pub fn cpu_ns() -> u64 {
    let live = tids().map(|place| place.load(Relaxed)).filter(|&tid| tid != 0);
    live.filter_map(threads::cpu_ns).sum::<u64>() + ENDED_NS.load(Relaxed)
}

/// Whether a thread with this name may be the agent's own.
pub fn is_our_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// After fork, in the child: none of them exists here.
pub fn forget_after_fork() {
    tids().for_each(|place| place.store(0, Relaxed));
    ENDED_NS.store(0, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There were 32 places; the 33rd thread of the agent's own was sampled as one of the
    /// program's.
    #[test]
    fn the_agents_threads_are_known_however_many_there_are() {
        // No thread has such an id.
        let few = 1 << 24..(1 << 24) + 200;
        let registered: Vec<Registered> = few.clone().map(Registered::new).collect();
        assert!(few.clone().all(contains));
        drop(registered);
        assert!(!few.clone().any(contains));
    }
}
