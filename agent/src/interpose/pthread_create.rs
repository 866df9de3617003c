//! `pthread_create`, interposed where the library is preloaded. A thread that inherits a full
//! signal mask, as liblzma's workers and librdkafka's do, could not be sampled while it runs. So it
//! starts with the agent's signal unblocked.
//!
//! Not where there is no agent, nor where the program uses that signal itself: it has a handler of
//! its own for it, or one is pending. A thread that waits for signals receives none of the agent's
//! because of this: a timer's signal is raised where its thread returns to user mode, and taken
//! there.

use crate::interpose::real_fn::RealFn;
use profiler::for_library::{lifecycle, sampler};
use std::ffi::{c_int, c_void};
use swipr_os::{errno, signals, threads};

static PTHREAD_CREATE: RealFn = RealFn::new(c"pthread_create");

/// Looks up the real function.
pub fn prepare() {
    PTHREAD_CREATE.get();
}

type ThreadBody = extern "C" fn(*mut c_void) -> *mut c_void;
type PthreadCreate =
    unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, ThreadBody, *mut c_void) -> c_int;

/// pthread_create(3).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    body: ThreadBody,
    argument: *mut c_void,
) -> c_int {
    let next = PTHREAD_CREATE.get();
    if next.is_null() {
        return libc::EAGAIN;
    }
    let signal = sampler::signal().unwrap_or(signals::FIRST_CHOICE);
    let unblocked = lifecycle::is_here()
        && !threads::is_ours(body)
        && errno::kept(|| signals::unblock_unless_used(signal));
    // SAFETY: the function of this name, called with what its caller gave.
    let result = unsafe {
        std::mem::transmute::<*mut c_void, PthreadCreate>(next)(thread, attributes, body, argument)
    };
    if unblocked {
        errno::kept(|| signals::block(signal));
    }
    result
}
