//! What is there before any agent: forks keep the heap usable, and panics say nothing.

use crate::{heap, recording_handles};
use profiler::for_library::lifecycle::fork;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;
use swipr_os::{disabled, own_threads, process};

/// Called by the constructor, and by who starts the agent before that, from another library's.
pub fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Not of tests, whose panics say what failed.
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
    heap::is_there()
}

/// A panic on one of the agent's threads turns the agent off, before anything is unwound: who sees
/// a recording's parts go finds the reason. It says nothing on the host's stderr. Only in the
/// shared library, which has a standard library of its own, whose panics are all ours: a Rust
/// program's hook is the program's.
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
