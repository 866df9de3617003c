//! Fork: the child gets an agent of its own.
//!
//! None of the agent's threads exists in the child, and what they held locked stays locked. So the
//! child touches nothing of the old agent: it is leaked, the statics that handlers use are reset,
//! and a new agent starts. vfork and posix_spawn do not come here, and need not.
//!
//! To start an agent takes memory of the host's allocator, in pthread_create(3). Many allocators
//! have fork handlers, too (jemalloc, tcmalloc, Chromium's), between which they are locked. So the
//! agent's handlers must run before theirs in the parent and after theirs in the child:
//! pthread_atfork(3) does that for the handlers that were registered last. Allocators in the
//! executable register later than the agent. Where the library is preloaded, `interpose/atfork.rs`
//! sees that, and the agent's handlers are registered again. Only the outermost do anything.

use crate::lifecycle::{self, fork_timers};
use crate::signal_exclusion::{self, Reason};
use crate::{agent_threads, interpreters, jit, mappings, thread_start};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;
use swipr_os::signals::is_on_alternate_stack;
use swipr_os::{disabled, fork_gate, process};
use swipr_unwind::{memory, published, slot};

/// How long a fork waits for a thread of the agent that is in the loader. That takes microseconds;
/// longer only if the loader's lock could not be found and the thread that forks holds it.
const TIMEOUT: Duration = Duration::from_secs(1);

// As small as can be: these bytes are taken from the stack of every thread of the host.
thread_local! {
    /// This thread's fork keeps the agent's threads out of the loader ([`fork_gate`]).
    static KEEPS_OUT: Cell<bool> = const { Cell::new(false) };
    /// The agent's handlers that this thread's fork has entered and not left yet.
    static INSIDE: Cell<u16> = const { Cell::new(0) };
    /// The handlers that this thread registers now are the agent's.
    static REGISTERS: Cell<bool> = const { Cell::new(false) };
}

/// What else is done in the child. Set when the handlers are registered.
static IN_CHILD: OnceLock<fn() -> bool> = OnceLock::new();
/// How often the handlers may be registered again. A host that registers again and again makes
/// fork(2) slow anyway.
static AGAIN: AtomicU32 = AtomicU32::new(256);

/// Registers the handlers (pthread_atfork(3)), once. `in_child`, the first caller's, is called in
/// the child, and returns whether the child can have an agent.
pub fn watch(in_child: fn() -> bool) {
    IN_CHILD.get_or_init(|| {
        register();
        in_child
    });
}

fn register() {
    REGISTERS.set(true);
    // SAFETY: the three functions stay where they are: the library cannot be unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    REGISTERS.set(false);
}

/// Handlers were registered. If they are not the agent's, registers the agent's again, outside of
/// them.
pub fn watch_outside() {
    let is_ours = REGISTERS.get() || IN_CHILD.get().is_none();
    if !is_ours && AGAIN.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
        register();
    }
}

/// Keeps the agent's threads out of the loader, and this thread from being signalled, if there were
/// timers ever. A signal during fork makes the kernel begin the fork again: for a large process,
/// for ever. Timers' signals come as fork returns, on all but old kernels.
unsafe extern "C" fn before() {
    if INSIDE.replace(INSIDE.get() + 1) > 0 {
        return;
    }
    disabled::contained(|| {
        KEEPS_OUT.set(match signal_exclusion::is_in_sandbox() {
            true => fork_gate::begin_spinning(),
            false => fork_gate::begin(TIMEOUT),
        });
        if slot::has_chunk(0) && !signal_exclusion::is_in_sandbox() {
            signal_exclusion::add(Reason::Fork);
        }
        fork_timers::arm();
    });
}

unsafe extern "C" fn in_parent() {
    if is_outermost() {
        disabled::contained(|| {
            fork_timers::disarm();
            if KEEPS_OUT.replace(false) {
                fork_gate::end();
            }
            signal_exclusion::remove(Reason::Fork);
        });
    }
}

unsafe extern "C" fn in_child() {
    if !is_outermost() {
        return;
    }
    disabled::contained(|| {
        KEEPS_OUT.set(false);
        fork_gate::forget();
        signal_exclusion::forget_after_fork();
        slot::reset_after_fork();
        thread_start::reset_after_fork();
        interpreters::reset_after_fork();
        agent_threads::forget_after_fork();
        mappings::inherit();
        // SAFETY: null; the old ones are leaked with their owners.
        unsafe {
            published::publish(std::ptr::null_mut());
            published::interpreter::publish(std::ptr::null_mut());
        }
        // In a sandbox there will be no agent, and not even these calls may be allowed.
        if !signal_exclusion::is_in_sandbox() {
            jit::inherit(memory::process_id() as u32);
            memory::set_process(process::pid() as i32);
            signal_exclusion::inherit();
        }
        // A handler for crashes may have hardly any stack left; its child executes a debugger.
        let has_stack = signal_exclusion::is_in_sandbox() || !is_on_alternate_stack();
        lifecycle::restart_in_child(has_stack && IN_CHILD.get().is_none_or(|in_child| in_child()));
    });
}

/// Leaves a handler. Returns whether it was the outermost one.
fn is_outermost() -> bool {
    INSIDE.set(INSIDE.get().saturating_sub(1));
    INSIDE.get() == 0
}
