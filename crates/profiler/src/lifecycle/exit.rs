//! The end of the program by exit(3), quick_exit(3) or _exit(2).
//!
//! The agent's exit handler was registered before those of the program, and so runs behind them.
//! What it waits for takes milliseconds. Other threads of the program must not run on meanwhile:
//! what they use is destroyed. So where there are any, the agent ends before the first handler: in
//! `exit`, which the library interposes, or as `main` has returned.

use super::instance::{Instance, Live};
use super::{STATE, live};
use crate::{agent_threads, autostart, signal_exclusion, wait_for_recorder};
use std::ffi::{c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use swipr_os::{disabled, host_thread, log, process, threads};

/// How long the end of a program that is recorded as a whole waits for its agent to start.
const START_AT_EXIT: Duration = Duration::from_millis(500);

/// So often, with such pauses, it is looked whether threads of the agent's have started or ended.
const SETTLES_WITHIN: u32 = 20;
const SETTLES: Duration = Duration::from_micros(500);
/// How long it waits for the sampler to end.
const END_OF_SAMPLER: Duration = Duration::from_millis(500);

/// What at_quick_exit(3) calls, with the object that handlers belong to. It is looked up by its
/// name: musl's loader would refuse a library that needs it.
type AtQuickExit = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void) -> c_int;

/// At exit(3) or quick_exit(3), once: no more signals, and no socket is left behind.
pub fn watch() {
    extern "C" fn at_quick_exit(_: *mut c_void) {
        at_exit();
    }
    extern "C" fn at_exit() {
        host_thread::keep_from_cancellation();
        disabled::contained(|| {
            own().into_iter().for_each(|(instance, live)| end(instance, live, Duration::ZERO))
        });
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay where they are: the library cannot be unloaded. The one that
        // is looked up is of that type.
        unsafe {
            libc::atexit(at_exit);
            let register = libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_at_quick_exit".as_ptr());
            if !register.is_null() {
                let register = std::mem::transmute::<*mut c_void, AtQuickExit>(register);
                register(at_quick_exit, std::ptr::null_mut());
            }
        }
    });
}

/// Whether the agent ends before the program's exit handlers.
static WATCHES: AtomicBool = AtomicBool::new(false);

/// The program makes recordings itself, and may end them in its exit handlers.
pub fn leave_to_program() {
    WATCHES.store(false, Relaxed);
}

/// Has the agent end before the program's exit handlers, if the library has started it or the
/// process is recorded as a whole. Else the program says itself when a recording ends. As `main`
/// returns, the C library runs the first thread's destructors before exit handlers, those of the
/// program first, and none if it ends by pthread_exit(3).
pub fn watch_handlers() {
    type AtThreadExit = unsafe extern "C" fn(extern "C" fn(*mut c_void), *mut c_void, *const c_void) -> c_int;
    extern "C" fn has_returned(_: *mut c_void) {
        before_handlers();
    }
    static OBJECT: u8 = 0;
    // SAFETY: a C string; the answer is null (glibc before 2.18) or a function of this type. It is
    // given a function and an address of this library.
    let register = || unsafe {
        let register = libc::dlsym(libc::RTLD_DEFAULT, c"__cxa_thread_atexit_impl".as_ptr());
        if !register.is_null() {
            let register = std::mem::transmute::<*mut c_void, AtThreadExit>(register);
            register(has_returned, std::ptr::null_mut(), (&raw const OBJECT).cast());
        }
    };
    static ONCE: Once = Once::new();
    if process::tid() == process::pid() {
        ONCE.call_once(register);
    }
    WATCHES.store(true, Relaxed);
}

/// The program's exit handlers are about to run.
pub fn before_handlers() {
    if !WATCHES.load(Relaxed) {
        return;
    }
    host_thread::kept_in_exit(|| {
        disabled::contained(|| {
            let Some((instance, live)) = own() else { return };
            if live.ended_by.load(Relaxed) != 0 {
                return wait_for_recorder::at_exit(true, || !is_ended_by_another(live));
            }
            if host_has_other_threads() {
                // Nor does the sampler take a CPU from the handlers.
                end(instance, live, END_OF_SAMPLER);
            }
        });
    });
}

/// Threads of the agent's that are just starting or ending might be the program's.
fn host_has_other_threads() -> bool {
    let certain = || match agent_threads::host_has_one_thread() {
        true => agent_threads::host_certainly_has_one_thread(threads::count).then_some(false),
        false => Some(true),
    };
    let waited = (0..SETTLES_WITHIN).find_map(|_| certain().or_else(|| (process::sleep(SETTLES), None).1));
    waited.unwrap_or(true)
}

/// Whether another thread was the first to call exit(3): its status is the process's, which ends
/// while this thread waits.
fn is_ended_by_another(live: &Live) -> bool {
    live.ended_by.load(Relaxed) != process::tid()
}

/// Hands over what was sampled and stops the agent, once. Waits so long for the sampler to end.
fn end(instance: &Instance, live: &Live, end_of_sampler: Duration) {
    if live.ended_by.compare_exchange(0, process::tid(), Relaxed, Relaxed).is_err() {
        return;
    }
    let failed = live.whole.get().and_then(|whole| autostart::end(whole, &live.agent));
    failed.iter().for_each(|reason| log::always(format_args!("SWIPR_OUTPUT: {reason}")));
    // The next agent in the default places removes what is left there.
    live.agent.stop();
    live.files.iter().for_each(|file| file.remove());
    let is_over = || !is_handing_over() && !live.agent.is_writing();
    wait_for_recorder::at_exit(instance.waits.load(Relaxed), is_over);
    live.agent.has_ended(end_of_sampler);
}

/// At _exit(2), in a signal handler or with any lock held: recordings for which the process waits
/// get what was sampled. Takes no lock.
pub fn before_exit() {
    let Some((instance, live)) = own() else { return };
    if let Some(whole) = live.whole.get() {
        wait_for_recorder::at_exit(true, || whole.is_complete(&live.agent));
    }
    if instance.waits.load(Relaxed) {
        wait_for_recorder::at_exit(true, || {
            live.agent.stop_without_lock();
            !is_handing_over()
        });
    }
}

/// Whether this process may have an agent, and the calling thread may make its system calls.
pub fn is_agents_process() -> bool {
    // In a sandbox, a wrong system call ends the process. A child that no fork handler has seen, as
    // by vfork(2), has no agent, and threads that are not there may hold its locks.
    !signal_exclusion::is_in_sandbox() && Instance::get().is_some_and(Instance::is_of_this_process)
}

/// Whether this is a child that no fork handler has seen, as by vfork(2). It has no agent; and if
/// it shares its parent's memory, what the agent notes of its thread it would note of the parent's.
/// A thread without thread-local data counts as such a child: the agent can note nothing of it.
pub fn is_unseen_child() -> bool {
    let is_child =
        || !signal_exclusion::is_in_sandbox() && Instance::get().is_some_and(|own| !own.is_of_this_process());
    !host_thread::has_thread_data() || is_child()
}

/// The agent of the process that ends. Takes no lock.
fn own() -> Option<(&'static Instance, &'static Live)> {
    if !is_agents_process() {
        return None;
    }
    let instance = Instance::get()?;
    if instance.config.life_file.is_some() {
        // A short program may end before its agent is there.
        let until = instance.exit_until.get_or_init(|| Instant::now() + START_AT_EXIT);
        STATE.wait_until_started(*until);
    }
    Some((instance, instance.live()?))
}

/// Whether a recording has something that its client has not got.
fn is_handing_over() -> bool {
    live().is_some_and(|live| live.server.is_recording())
}
