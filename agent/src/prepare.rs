//! What is set up before any agent: forks keep the heap usable, and panics print nothing.

use crate::interpose::sigaltstack;
use crate::{heap, recording_handles};
use profiler::for_library::{lifecycle::fork, signal_exclusion};
use std::panic::{self, PanicHookInfo};
use std::sync::Once;
use swipr_os::{disabled, own_threads, process};

/// Called by the constructor, and before that by a start of the agent in another library's.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        signal_exclusion::begin_outside_sandbox();
        // Not in tests, whose panics show what failed.
        if cfg!(not(test)) {
            watch_panics();
        }
        heap::prepare_for_fork();
        fork::watch(in_child);
    });
}

/// In the child of a fork. Whether it can have an agent: see `heap/lock.rs`.
fn in_child() -> bool {
    recording_handles::forget_after_fork();
    if !signal_exclusion::is_in_sandbox() {
        sigaltstack::shared::inherit();
    }
    heap::is_there()
}

/// A panic on one of the agent's threads turns the agent off before anything is unwound: a thread
/// that finds a recording's parts gone also finds the reason. Nothing is written to the host's
/// stderr. Only in the shared library: its own copy of the standard library sees the agent's panics
/// only. In a Rust program the hook belongs to the program.
fn watch_panics() {
    panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        if own_threads::contains(process::tid()) {
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let what = text.or_else(|| payload.downcast_ref().copied()).unwrap_or("panic");
            match info.location() {
                Some(at) => disabled::disable(format_args!("{what}, at {}:{}", at.file(), at.line())),
                None => disabled::disable(what),
            }
        }
    }));
}
