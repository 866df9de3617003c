//! The agent's own threads: they are not sampled and are started in one way.

mod spare;

use crate::signal_exclusion;
pub use spare::{end as end_spare, keep_spare_if_wanted, want_spare};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use swipr_os::disabled;
use swipr_os::own_threads::{self, PREFIX};
use swipr_os::{process, signals, this_library, threads};

/// CPU time of those that ended.
static ENDED_NS: AtomicU64 = AtomicU64::new(0);
/// Threads that were asked for and are not registered yet.
static UNNAMED: AtomicUsize = AtomicUsize::new(0);
/// The host's thread has called [`reserve`], in this process or in one of which it is a fork.
static IS_RESERVED: AtomicBool = AtomicBool::new(false);
/// The server, the sampler, symbols, and five recordings' writers; and threads that are ending,
/// whose stacks the C library cannot use yet.
const RESERVED: usize = 8;
const ENDING: usize = 2;
/// Symbolizing descends into DWARF trees.
const STACK_BYTES: usize = 1 << 20;

/// Its thread is one of the agent's as long as this lives; `None`: it was one before.
#[derive(Debug)]
pub struct OwnThread(Option<u32>);

impl OwnThread {
    fn new(tid: u32) -> OwnThread {
        if own_threads::contains(tid) {
            return OwnThread(None);
        }
        own_threads::add(tid);
        OwnThread(Some(tid))
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        if let Some(tid) = self.0 {
            forget(tid);
        }
    }
}

/// The thread ends: its id may soon be another thread's.
fn forget(tid: u32) {
    ENDED_NS.fetch_add(threads::cpu_ns(tid).unwrap_or(0), Relaxed);
    own_threads::remove(tid);
}

/// Ends the calling thread, one of the agent's, at once and without any destructor. Its locks stay
/// locked.
pub fn exit_thread() -> ! {
    disabled::lose_thread();
    forget(process::tid());
    process::end_thread()
}

/// On a thread of the host's, before the agent starts: if the executable has a malloc of its own,
/// the agent's threads are started without it, see [`threads::reserve`]. In a program with one
/// thread that malloc may have no locks, as bash's. There will be no more threads there than these.
pub fn reserve() {
    let has_own = || this_library::is_of_program(libc::calloc as *const libc::c_void);
    if has_own() && !IS_RESERVED.swap(true, SeqCst) {
        signals::with_signals_blocked(|| threads::reserve(RESERVED + ENDING, STACK_BYTES));
    }
}

/// Starts a thread of the agent: `swipr-` and its `name`, with all signals blocked, not sampled. It
/// is detached. If the program may have no new thread, a spare one does it.
pub fn start(name: &'static str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start_new(name, body).or_else(|(error, body)| {
        UNNAMED.fetch_add(1, AcqRel);
        spare::give(body).map_err(|_| {
            UNNAMED.fetch_sub(1, AcqRel);
            error
        })
    })
}

/// The same with a new thread; or returns what was to be done, and why it is not.
fn start_new(
    name: &'static str,
    body: impl FnOnce() + Send + 'static,
) -> Result<(), (io::Error, threads::Body)> {
    let body = move || {
        let _registered = register(name);
        UNNAMED.fetch_sub(1, AcqRel);
        // Where the agent has no panic hook, this is where a panic is seen first.
        if panic::catch_unwind(AssertUnwindSafe(body)).is_err() {
            disabled::disable(format_args!("a panic on the thread {PREFIX}{name}"));
        }
    };
    if IS_RESERVED.load(SeqCst) && count_all() >= RESERVED as u64 && host_has_one_thread() {
        let why = "the program has one thread and a malloc of its own: end another recording first";
        return Err((io::Error::other(why), Box::new(body)));
    }
    UNNAMED.fetch_add(1, AcqRel);
    let started = signals::with_signals_blocked(|| threads::start(STACK_BYTES, Box::new(body)));
    started.inspect_err(|_| _ = UNNAMED.fetch_sub(1, AcqRel))
}

/// Makes the calling thread one of the agent's, `swipr-` and
/// its `name`.
pub fn register(name: &str) -> OwnThread {
    signal_exclusion::begin_outside_sandbox();
    let registered = OwnThread::new(process::tid());
    threads::set_name(&format!("{PREFIX}{name}"));
    threads::reset_scheduling();
    registered
}

/// How many there are.
pub fn count() -> u64 {
    own_threads::ids().filter(|&tid| is_there(tid)).count() as u64
}

/// Whether the kernel has the thread. Asks its clock, which needs neither /proc nor a descriptor.
fn is_there(tid: u32) -> bool {
    threads::cpu_ns(tid).is_some()
}

/// How many there are, with those that are just starting or ending.
fn count_all() -> u64 {
    // In this order: a thread is moved on from one to the next, and may be counted twice.
    UNNAMED.load(Acquire) as u64 + count() + own_threads::ending(is_there)
}

/// Whether the host may have no thread but the calling one. `false` without /proc.
pub fn host_has_one_thread() -> bool {
    // Twice: one may start or end between two looks.
    let (before, threads, after) = (count_all(), threads::count(), count_all());
    threads.is_some_and(|threads| threads <= 1 + before.max(after))
}

/// Whether the host has one thread for certain: [`host_has_one_thread`] may say so of one that has
/// more. `threads`: how many there are in all.
pub fn host_certainly_has_one_thread(threads: impl Fn() -> Option<u64>) -> bool {
    // Asked twice: one may start or end between two looks.
    let leave_one = || {
        let are_known = UNNAMED.load(Acquire) == 0 && own_threads::ending(is_there) == 0;
        threads().filter(|threads| are_known && *threads == 1 + count())
    };
    leave_one().is_some_and(|before| leave_one() == Some(before))
}

/// Whether there is a thread of the agent, also one that is just starting or ending.
pub fn any_exists() -> bool {
    count_all() > 0
}

/// CPU time that the agent's threads have used, nanoseconds.
pub fn cpu_ns() -> u64 {
    own_threads::ids().filter_map(threads::cpu_ns).sum::<u64>() + ENDED_NS.load(Relaxed)
}

/// After fork, in the child: none of them exists here.
pub fn forget_after_fork() {
    own_threads::clear();
    spare::forget_after_fork();
    UNNAMED.store(0, Release);
    ENDED_NS.store(0, Relaxed);
}
