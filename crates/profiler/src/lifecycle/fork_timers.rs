//! A thread that forks arms its own timers. While the kernel copies a large process, all of its
//! memory is locked: the sampler stands still as soon as it writes to any, and no sweep can arm a
//! timer. The hit comes at the end of the fork, with the CPU time that it took.

use crate::signal_exclusion;
use std::sync::atomic::Ordering::Relaxed;
use swipr_os::{cpu_timers, process, timer_delivery};
use swipr_unwind::{slot, system_call};

/// Before the fork.
pub(super) fn arm() {
    if !slot::has_chunk(0) || !timer_delivery::is_task_work() || signal_exclusion::is_in_sandbox() {
        return;
    }
    for (timer, slot) in slot::lent_to(process::tid()) {
        // Others than those that sweeps arm have no such time.
        if slot.wants_clock_from.load(Relaxed) != 0 {
            slot.clock_ns.store(0, Relaxed);
            slot.fork_from_ns.store(system_call::thread_cpu_ns(), Relaxed);
            slot.wants_clock_from.store(1, Relaxed);
            if !slot.is_armed.load(Relaxed) {
                cpu_timers::arm(timer);
            }
        }
    }
}

/// Behind it, in the parent. What was hit has been answered.
pub(super) fn disarm() {
    if !slot::has_chunk(0) || signal_exclusion::is_in_sandbox() {
        return;
    }
    for (timer, slot) in slot::lent_to(process::tid()) {
        if slot.fork_from_ns.swap(0, Relaxed) != 0 && !slot.is_armed.load(Relaxed) {
            cpu_timers::disarm(timer);
        }
    }
}
