//! Calls that the agent's threads would change, interposed where the library is preloaded.
//!
//! - unshare(2) and setns(2) want a process with one thread, for some name spaces;
//! - capset(2) and some of prctl(2) change what one thread may do. glibc's setuid(3) and related
//!   calls change all threads, and abort the process when one of them may not do what the others
//!   may. A thread of the agent that was not changed would be that one, and would keep what the
//!   host gave up;
//! - landlock_restrict_self(2) restricts one thread. A thread of the agent that was not restricted
//!   would write files that the host may not;
//! - PR_SET_TSC of prctl(2) has the calling thread killed for reading the clock by which the
//!   handler measures itself: the handler measures nothing then;
//! - PR_SET_SYSCALL_USER_DISPATCH of prctl(2) makes system calls of the calling thread raise
//!   SIGSYS, also the one by which a signal handler returns;
//! - seccomp(2) can put all threads under a filter that kills them for calls that only the agent's
//!   threads make.
//!
//! So a host with one thread is alone when it makes such a call: the agent ends before the call,
//! and starts again after it with the rights, name spaces and filters that the host has then. A
//! recording in progress ends. For a filter over all threads the agent ends whatever threads the
//! host has, and does not start again.
//!
//! They may be made by their names or by syscall(2), as libcap and libseccomp do. Not interposed:
//! calls made without the C library.

pub mod capabilities;
mod system_call;

use crate::interpose::real_fn::RealFn;
use profiler::for_library::signal_exclusion::{self, Reason};
use profiler::for_library::{last_thread, lifecycle};
use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use swipr_os::disabled;

const CAPSET: usize = 0;
const PRCTL: usize = 1;
const UNSHARE: usize = 2;
const SETNS: usize = 3;

static NEXT: [RealFn; 4] =
    [RealFn::new(c"capset"), RealFn::new(c"prctl"), RealFn::new(c"unshare"), RealFn::new(c"setns")];

/// Since Linux 5.11.
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_OFF: c_ulong = 0;

/// The time name space (clone(2), since Linux 5.6).
const CLONE_NEWTIME: c_int = 0x80;
/// What only a process with one thread may unshare. The user name space implies CLONE_THREAD.
const UNSHARED_ALONE: c_int = libc::CLONE_NEWUSER | libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM;
/// What only such a process may enter; or, for mounts, one whose threads do not share a root
/// directory.
const ENTERED_ALONE: c_int = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | CLONE_NEWTIME;

/// Looks up the real functions.
pub fn prepare() {
    NEXT.iter().for_each(|next| _ = next.get());
    system_call::prepare();
}

/// Runs the agent's code in a call of the host's.
fn quietly<T: Default>(body: impl FnOnce() -> T) -> T {
    disabled::contained(body).unwrap_or_default()
}

/// Makes a call; if it `matters`, without the agent's threads where the host has one thread.
fn alone_if(matters: bool, call: impl FnOnce() -> c_long) -> c_long {
    if !matters {
        return call();
    }
    let paused = quietly(lifecycle::pause_if_only_thread);
    let result = call();
    quietly(|| paused.map(lifecycle::Paused::resume));
    result
}

fn unshare_as(flags: c_int, call: impl FnOnce() -> c_long) -> c_long {
    alone_if(flags & UNSHARED_ALONE != 0, call)
}

/// `kind` 0: of whatever kind the descriptor is.
fn setns_as(kind: c_int, call: impl FnOnce() -> c_long) -> c_long {
    alone_if(kind == 0 || kind & ENTERED_ALONE != 0, call)
}

/// # Safety
/// The arguments are those of capset(2).
unsafe fn capset_as(header: *const c_void, data: *const c_void, call: impl FnOnce() -> c_long) -> c_long {
    // In a sandbox even capget(2) may be forbidden.
    // SAFETY: the caller's contract.
    let matters =
        !signal_exclusion::is_in_sandbox() && quietly(|| unsafe { capabilities::matter(header, data) });
    alone_if(matters, call)
}

fn prctl_as(option: c_int, second: c_ulong, call: impl FnOnce() -> c_long) -> c_long {
    match option {
        libc::PR_SET_TSC if second == libc::PR_TSC_SIGSEGV as c_ulong => {
            swipr_unwind::arch::disable_tsc();
            call()
        }
        libc::PR_SET_KEEPCAPS | libc::PR_SET_SECUREBITS => alone_if(true, call),
        libc::PR_SET_SECCOMP => kept_out(Reason::Sandbox, call),
        PR_SET_SYSCALL_USER_DISPATCH if second != PR_SYS_DISPATCH_OFF => kept_out(Reason::ForeignCalls, call),
        PR_SET_SYSCALL_USER_DISPATCH => {
            let result = call();
            if result == 0 {
                quietly(|| signal_exclusion::remove(Reason::ForeignCalls));
            }
            result
        }
        _ => call(),
    }
}

fn seccomp_as(operation: c_uint, flags: c_ulong, call: impl FnOnce() -> c_long) -> c_long {
    let sets = [libc::SECCOMP_SET_MODE_STRICT, libc::SECCOMP_SET_MODE_FILTER].contains(&operation);
    if !sets {
        return call();
    }
    if flags & libc::SECCOMP_FILTER_FLAG_TSYNC == 0 || lifecycle::is_unseen_child() {
        return kept_out(Reason::Sandbox, call);
    }
    let paused = quietly(lifecycle::pause);
    signal_exclusion::set_all_in_sandbox(true);
    let result = call();
    // Not 0: the thread that prevents it, or the descriptor of a filter that is in force.
    let gives_descriptor = flags & libc::SECCOMP_FILTER_FLAG_NEW_LISTENER != 0;
    if result < 0 || result > 0 && !gives_descriptor {
        signal_exclusion::set_all_in_sandbox(false);
        quietly(|| paused.map(lifecycle::Paused::resume));
    }
    result
}

/// The thread ends without the C library, so that no destructor runs. Only the first one matters.
fn exit_as(call: impl FnOnce() -> c_long) -> c_long {
    if !signal_exclusion::is_in_sandbox() && !lifecycle::is_unseen_child() {
        quietly(last_thread::may_end_unseen);
    }
    call()
}

/// Makes a call after which the calling thread may not even be allowed to return from a signal
/// handler: it is excluded from signals before. The call fails if it returns less than 0.
fn kept_out(reason: Reason, call: impl FnOnce() -> c_long) -> c_long {
    if lifecycle::is_unseen_child() {
        return call();
    }
    let is_new = quietly(|| signal_exclusion::add(reason));
    if is_new {
        quietly(last_thread::may_end_unseen);
    }
    let result = call();
    if result < 0 && is_new {
        quietly(|| signal_exclusion::remove(reason));
    }
    result
}

type OfFive = unsafe extern "C" fn(c_long, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;

/// # Safety
/// As the function behind `at` says of what its caller gave.
unsafe fn pass_on(at: usize, arguments: [c_ulong; 5]) -> c_long {
    let next = NEXT.get(at).map_or(std::ptr::null_mut(), RealFn::get);
    if next.is_null() {
        return -1;
    }
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: integers and pointers are passed alike, in registers, and a function that takes fewer
    // does not look at the others.
    let next = unsafe { std::mem::transmute::<*mut c_void, OfFive>(next) };
    // SAFETY: the caller's contract.
    c_long::from(unsafe { next(first as c_long, second, third, fourth, fifth) })
}

/// unshare(2).
///
/// # Safety
/// As the real function requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    // SAFETY: as this function's own.
    unshare_as(flags, || unsafe { pass_on(UNSHARE, [flags as c_ulong, 0, 0, 0, 0]) }) as c_int
}

/// setns(2).
///
/// # Safety
/// As [`unshare`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setns(descriptor: c_int, kind: c_int) -> c_int {
    let arguments = [descriptor as c_ulong, kind as c_ulong, 0, 0, 0];
    // SAFETY: as this function's own.
    setns_as(kind, || unsafe { pass_on(SETNS, arguments) }) as c_int
}

/// capset(2).
///
/// # Safety
/// As [`unshare`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn capset(header: *mut c_void, data: *const c_void) -> c_int {
    let arguments = [header as c_ulong, data as c_ulong, 0, 0, 0];
    // SAFETY: as this function's own.
    unsafe { capset_as(header, data, || pass_on(CAPSET, arguments)) as c_int }
}

/// prctl(2), which takes up to four more arguments.
///
/// # Safety
/// As [`unshare`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
) -> c_int {
    // SAFETY: as this function's own.
    prctl_as(option, second, || unsafe { pass_on(PRCTL, [option as c_ulong, second, third, fourth, fifth]) })
        as c_int
}
