//! Whether a thread has run since the last sweep.

use super::Due;
use crate::sampler::idle_backoff::IdleBackoff;
use crate::sampler::threads::ThreadState;
use swipr_os::threads::cpu_ns;

/// Records whether the thread has run since the last observation. Of one that is blocked at the
/// first, this is not known. It gets no timer yet: of thousands most wait for long.
pub fn set_activity(thread: &mut ThreadState, backoff: &mut IdleBackoff, cpu_before_ns: u64, due: Due) {
    let is_first = thread.observed_ns == 0;
    let has_run = thread.cpu_ns != cpu_before_ns || is_first && thread.blocked.is_none();
    thread.observed_ns = due.tick_ns;
    if has_run || is_first {
        thread.add_delay();
    }
    if has_run {
        backoff.has_run();
        thread.ran_ns = due.tick_ns;
        thread.is_timer_set = false;
    } else {
        backoff.was_idle(thread.tid(), due.sweeps_per_check, thread.waiting_ticket());
    }
}

/// As [`is_quiet`]; if so, notes it.
pub fn stays_quiet(thread: &mut ThreadState, wanted: u8, due: Due) -> bool {
    let is_quiet = is_quiet(thread, wanted, due);
    if is_quiet {
        thread.stood_still_ns = due.tick_ns;
    }
    is_quiet
}

/// Whether an idle thread needs no more than this check: its clock has not moved since its stack
/// was taken, and no window is to be closed yet.
fn is_quiet(thread: &ThreadState, wanted: u8, due: Due) -> bool {
    let Some(blocked) = thread.blocked.as_ref().filter(|blocked| blocked.cpu_ns == thread.cpu_ns) else {
        return false;
    };
    wanted & due.wall == wanted
        && (thread.is_timer_set || !due.may_wait)
        && due.tick_ns.saturating_sub(thread.ran_ns) > due.lately_ns
        && thread
            .accounts
            .iter()
            .enumerate()
            .filter(|(place, _)| wanted >> place & 1 == 1)
            .all(|(_, account)| account.as_ref().is_some_and(|account| account.can_wait(due.tick_ns)))
        && cpu_ns(thread.tid()) == Some(blocked.cpu_ns)
}
