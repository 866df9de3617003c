//! When a thread or a recording ends: what was asked and not answered is missed.

use super::ask::Slots;
use super::of;
use crate::platform::process;
use crate::sampler::active::Active;
use crate::sampler::held::{account_rest, cpu_missed};
use crate::sampler::threads::{PendingTick, Sampled};
use crate::sampler::told;
use swipr_formats::model::State;
use swipr_unwind::slot;

/// A thread ended: its unanswered ticks are lost.
pub fn settle_end(thread: &mut Sampled, slots: &mut Slots, recordings: &mut [Active]) {
    let now = process::monotonic_ns();
    for recording in recordings.iter_mut() {
        let missed = told::forget(thread, recording, 0) + forget_ticks(thread, recording);
        recording.counters().missed.add(missed);
        account_rest(thread, recording, now, thread.cpu_ns);
    }
    forget_question(thread, slots);
}

/// How long the thread has waited for a CPU since this was last known, which recordings are told that run already: one that begins now
/// is not.
pub fn settle_cpu_wait(thread: &mut Sampled, recordings: &mut [Active]) -> u64 {
    let waited_ns = thread.settle_cpu_wait();
    for recording in of(recordings, thread.recordings) {
        recording.counters().cpu_wait_ns.add(waited_ns);
    }
    waited_ns
}

/// Takes a recording's ticks out of what is asked of a thread and returns how many they were. The question stays: the kernel
/// does not queue a second signal of the same number while the first is under way, so that a new question
/// would be lost, and the answer to the old one would be nobody's.
pub fn forget_ticks(thread: &mut Sampled, recording: &mut Active) -> u64 {
    let Some(pending) = &mut thread.pending else { return 0 };
    let bit = recording.bit();
    let mut of_it = pending.ticks.iter().filter(|tick| tick.recordings & bit != 0);
    let forgotten: u64 = of_it.clone().map(|tick| u64::from(tick.ticks)).sum();
    let last = of_it.next_back().map(|tick| (tick.tick_ns, tick.cpu_ns));
    pending.ticks.iter_mut().for_each(|tick| tick.recordings &= !bit);
    pending.ticks.retain(|tick| tick.recordings != 0);
    if let Some((tick_ns, clock_ns)) = last {
        cpu_missed(thread, recording, tick_ns, clock_ns);
    }
    forgotten
}

/// A thread has no stack for some ticks: they are missed, and the CPU time until then is nobody's.
/// In a snapshot the thread is shown all the same, without a stack.
pub fn tell_missed(thread: &mut Sampled, recording: &mut Active, tick: &PendingTick) {
    let &PendingTick { tick_ns, ticks, cpu_ns, state, .. } = tick;
    if recording.is_snapshot() {
        // With our signal blocked it may run; else it would have answered.
        let seen = if thread.blocks_signal { State::Running } else { State::Runnable };
        recording.wall_missed(&thread.thread, tick_ns, ticks, state.unwrap_or(seen));
    } else {
        recording.counters().missed.add(u64::from(ticks));
        cpu_missed(thread, recording, tick_ns, cpu_ns);
    }
}

/// A recording ends, and this thread was waited for as long as that may take: what it has not answered is missed.
pub fn settle_unanswered(thread: &mut Sampled, recording: &mut Active) {
    let bit = recording.bit();
    let Some(pending) = thread.pending.take() else { return };
    for tick in pending.ticks.iter().filter(|tick| tick.recordings & bit != 0) {
        tell_missed(thread, recording, tick);
    }
    thread.pending = Some(pending);
    forget_ticks(thread, recording);
}

/// Takes back what was asked of a thread that will not answer, or by a signal that is no longer ours.
pub fn forget_question(thread: &mut Sampled, slots: &mut Slots) {
    if let Some(pending) = &thread.pending
        && (slot::revoke(pending.ticket) || slot::is_done(pending.ticket))
    {
        slot::release(pending.ticket);
        thread.pending = None;
        slots.one_less();
    }
}
