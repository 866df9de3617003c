//! Threads of the agent's own, and how they are scheduled.

use crate::{futex, signals};
use std::ffi::c_void;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

/// Threads that [`reserve`] has started end after this time, if nothing ends them before.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a thread does.
pub type Body = Box<dyn FnOnce() + Send>;

/// The first function of the agent's threads.
extern "C" fn run(body: *mut c_void) -> *mut c_void {
    signals::block_synchronous();
    // SAFETY: what `start` gave away.
    let body = unsafe { Box::from_raw(body.cast::<Body>()) };
    // A panic must not unwind into the C library.
    let _ = std::panic::catch_unwind(AssertUnwindSafe(*body));
    std::ptr::null_mut()
}

/// Whether `routine` is the first function of the agent's threads.
pub fn is_ours(routine: usize) -> bool {
    routine == run as *const () as usize
}

/// Starts a detached thread. Not by the standard library: it registers thread-local data with the C
/// library, in memory of the host's malloc (`__cxa_thread_atexit_impl`). Each thread that enters
/// that malloc makes it reserve 64 MiB of addresses. What could not be started is handed back.
pub fn start(stack_bytes: usize, body: Body) -> Result<(), (io::Error, Body)> {
    let body: *mut Body = Box::into_raw(Box::new(body));
    // SAFETY: attributes are made before they are used and destroyed after; `run` has the signature
    // asked for.
    let error = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, stack_bytes);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread = std::mem::zeroed();
        let error = libc::pthread_create(&mut thread, &attributes, run, body.cast());
        libc::pthread_attr_destroy(&mut attributes);
        error
    };
    if error != 0 {
        // SAFETY: there is no thread that could have taken it.
        let body = unsafe { Box::from_raw(body) };
        return Err((io::Error::from_raw_os_error(error), *body));
    }
    Ok(())
}

/// Starts so many threads, and ends them. The C library keeps their stacks, with what it has
/// allocated for them by the program's malloc, and gives both to the next threads with stacks of
/// that size: to start those does not enter that malloc.
pub fn reserve(count: usize, stack_bytes: usize) {
    // Each has a stack of its own only while all are there.
    let go = AtomicU32::new(0);
    extern "C" fn wait(go: *mut c_void) -> *mut c_void {
        // SAFETY: it is there until this thread was joined.
        futex::wait(unsafe { &*go.cast::<AtomicU32>() }, 0, LONGEST_WAIT);
        std::ptr::null_mut()
    }
    // SAFETY: attributes are made before they are used and destroyed after; `wait` has the
    // signature asked for, and each thread is joined once.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, stack_bytes);
        let start = || {
            let mut thread = std::mem::zeroed();
            let error = libc::pthread_create(&mut thread, &attributes, wait, go.as_ptr().cast());
            (error == 0).then_some(thread)
        };
        let threads: Vec<libc::pthread_t> = (0..count).map_while(|_| start()).collect();
        go.store(1, SeqCst);
        threads.iter().for_each(|_| futex::wake_one(&go));
        threads.into_iter().for_each(|thread| _ = libc::pthread_join(thread, std::ptr::null_mut()));
        libc::pthread_attr_destroy(&mut attributes);
    }
}

/// Gives up a real-time priority, which a new thread inherits from its creator: what the agent
/// computes must not keep the host's threads from a CPU. A nice value stays.
pub fn reset_scheduling() {
    // SAFETY: no preconditions; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    if [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE].contains(&policy) {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel reads `priority`.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &priority) };
    }
}

/// A slice for [`ask_for_slices`]: the thread runs soon after it wakes.
pub const SHORTEST_SLICE_NS: u64 = 100_000;

/// Asks for the calling thread to be run for so long at a time: a slice of its own for ordinary
/// threads (sched_setattr(2), `sched_runtime` of SCHED_OTHER since Linux 6.12). It gets no more CPU
/// time than others. Elsewhere nothing changes.
pub fn ask_for_slices(slice_ns: u64) {
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    // SAFETY: no preconditions; fails with -1, which is a valid nice value as well: then nothing is
    // lost either.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: slice_ns,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}
