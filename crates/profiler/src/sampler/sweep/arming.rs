//! Which timers a sweep arms.

use super::Due;
use crate::counters::AgentCounters;
use crate::sampler::account::TimerState;
use crate::sampler::threads::ThreadState;
use crate::sampler::timers::{ThreadTimer, Timers};
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::threads::cpu_ns;

/// So many timers of threads that do not run are made in a sweep.
const MAX_MADE: usize = 16;

/// Arms the timer of a thread that ran lately.
pub fn arm_running(
    thread: &mut ThreadState,
    timers: &mut Timers,
    recordings: u8,
    now_ns: u64,
    counters: &AgentCounters,
) -> TimerState {
    match timers.arm(thread, recordings, now_ns, counters) {
        false => TimerState::Never,
        true if thread.timer.as_ref().is_some_and(ThreadTimer::is_overdue) => TimerState::Overdue,
        true => TimerState::Yes(kernel_tick_ns()),
    }
}

/// Notes whether a thread is running whose timer is armed: then its clock has advanced since this
/// sweep has read it. `now_ns` was in between.
pub fn note_running(thread: &mut ThreadState, timer: TimerState, now_ns: u64) {
    let clock = matches!(timer, TimerState::Yes(_)).then(|| cpu_ns(thread.tid())).flatten();
    thread.seen_running = clock.map(|cpu_ns| (now_ns, cpu_ns > thread.cpu_ns));
}

/// Arms the timer of a thread that does not run, unless that was tried, or many were made.
pub fn arm_waiting(
    thread: &mut ThreadState,
    timers: &mut Timers,
    due: Due,
    made: &mut usize,
    counters: &AgentCounters,
) -> TimerState {
    if !due.may_wait && thread.timer.as_ref().is_some_and(ThreadTimer::waits) {
        timers.remove(thread); // it has armed it itself
    }
    if due.may_wait && !thread.is_timer_set && (thread.timer.is_some() || *made < MAX_MADE) {
        *made += usize::from(thread.timer.is_none());
        thread.is_timer_set = timers.arm_waiting(thread, due.tick_ns, counters);
    }
    TimerState::No
}
