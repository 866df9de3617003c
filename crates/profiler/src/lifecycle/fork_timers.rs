//! A thread that forks arms its own timer. While the kernel copies a large process, all of its
//! memory is locked: the sampler stands still as soon as it writes to any, and no sweep can arm a
//! timer. The hit comes at the end of the fork.

use crate::signal_exclusion;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use swipr_os::{cpu_timers, process, threads, timer_delivery};
use swipr_unwind::{arch, slot};

/// Before the fork.
pub(super) fn arm() {
    if !slot::has_chunk(0) || !timer_delivery::is_task_work() || signal_exclusion::is_in_sandbox() {
        return;
    }
    let tid = process::tid();
    for (timer, slot) in slot::lent_to(tid) {
        if slot.is_for_sweeps.load(Relaxed) {
            slot.fork_cpu_ns.store(threads::cpu_ns(tid).unwrap_or(0), Relaxed);
            slot.fork_from.store(arch::ticks(), SeqCst);
            if !slot.is_armed.load(SeqCst) {
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
        if slot.fork_from.swap(0, SeqCst) != 0 && !slot.is_armed.load(SeqCst) {
            cpu_timers::disarm(timer);
            // The sampler may have armed it a moment before.
            if slot.is_armed.load(SeqCst) {
                cpu_timers::arm(timer);
            }
        }
    }
}
