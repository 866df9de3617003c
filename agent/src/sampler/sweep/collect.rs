//! Answers of threads that were asked, and the ends of recordings.

use super::settle::{settle_cpu_wait, settle_unanswered};
use super::{Sweeper, of};
use crate::platform::process;
use crate::platform::threads::cpu_ns;
use crate::sampler::active::Active;
use crate::sampler::held::{account_rest, cpu_sample};
use crate::sampler::threads::{Pending, Sampled, Threads};
use crate::sampler::told::tell_rest;
use swipr_formats::model::State;
use swipr_unwind::walk::Stop;

/// The sampler takes a CPU so long before it has looked at the clock, at the most: it is being woken.
const WAKING_NS: u64 = 100_000;

impl Sweeper {
    /// When to look for answers; `None`: nothing was asked.
    pub fn collect_at(&self) -> Option<u64> {
        self.slots.has_pending().then_some(self.collect_at_ns)
    }

    /// Takes the answers that are there.
    pub fn collect(&mut self, recordings: &mut [Active]) {
        let Sweeper { threads, tables, slots, counters, signal, unknown_code, asked, .. } = self;
        if !slots.has_pending() {
            return;
        }
        self.collect_at_ns = process::monotonic_ns() + self.collect_again_ns;
        self.collect_again_ns *= 2;
        asked.retain(|&tid| {
            let Some(thread) = threads.get_mut(tid).filter(|thread| thread.pending.is_some()) else {
                return false;
            };
            let Some((pending, stack)) = slots.take_answer(thread, tables, *signal, counters) else {
                return true;
            };
            *unknown_code |= stack.stop == Stop::NoTable;
            let now_ns = cpu_ns(thread.tid()).unwrap_or(thread.cpu_ns);
            let was_running = lost_its_cpu_to_us(thread, &pending, now_ns, recordings);
            // Until the clock moved, the thread was waiting for a CPU.
            let later = pending.ticks.iter().skip(1).map(|tick| tick.cpu_ns).chain([u64::MAX]);
            for (tick, later_ns) in pending.ticks.iter().zip(later) {
                let stood_still = tick.cpu_ns == later_ns;
                let seen = if was_running { Some(State::Running) } else { tick.state };
                let state = seen.unwrap_or(if stood_still { State::Runnable } else { State::Running });
                for recording in of(recordings, tick.recordings) {
                    recording.wall_sample(&thread.thread, tick.tick_ns, tick.ticks, state, &stack);
                    if let Some(accounted) = thread.accounted_ns.get_mut(recording.place()) {
                        let used = now_ns.saturating_sub(std::mem::replace(accounted, now_ns));
                        cpu_sample(thread, recording, tick.tick_ns, used, &stack);
                    }
                }
            }
            false
        });
    }

    /// Ends recordings whose last tick is over and answered.
    pub fn retire(&mut self, recordings: &mut Vec<Active>, now: u64) {
        if self.go_on_at().is_some() && recordings.iter_mut().any(|recording| recording.has_ended(now)) {
            self.finish(recordings);
        }
        let Sweeper { threads, .. } = self;
        recordings.retain_mut(|recording| {
            if !recording.has_ended(now) {
                return true;
            }
            let bit = recording.bit();
            let waits = threads.iter().any(|thread| {
                let pending = thread.pending.as_ref();
                pending.is_some_and(|pending| pending.ticks.iter().any(|tick| tick.recordings & bit != 0))
            });
            if waits && !recording.grace_is_over(now) {
                return true;
            }
            settle_recording(threads, recording, now);
            false
        });
    }

    /// Ends all recordings now, without waiting for answers: the agent is stopped.
    pub fn end(&mut self, recordings: &mut [Active]) {
        let now = process::monotonic_ns();
        for recording in recordings.iter_mut().filter_map(|it| it.has_ended(now).then_some(it)) {
            settle_recording(&mut self.threads, recording, now);
        }
    }
}

/// What is known of all threads at a recording's end.
fn settle_recording(threads: &mut Threads, recording: &mut Active, now: u64) {
    let program_used_ns = recording.program_used_ns();
    for thread in threads.iter_mut() {
        settle_unanswered(thread, recording);
        let clock_ns = cpu_ns(thread.tid()).unwrap_or(thread.cpu_ns);
        account_rest(thread, recording, now, clock_ns);
        tell_rest(thread, recording, clock_ns);
        thread.recordings &= !recording.bit();
    }
    recording.cpu_of_ended_threads(now, program_used_ns);
    recording.flush(now);
}

/// Whether a thread that was seen waiting for a CPU began to wait at its tick: then it was running, and we woke up on its CPU. Where all
/// CPUs have work we always do, and a thread that has hardly waited would be told to have waited all the time. `cpu_ns`: its clock now.
fn lost_its_cpu_to_us(
    thread: &mut Sampled,
    pending: &Pending,
    cpu_ns: u64,
    recordings: &mut [Active],
) -> bool {
    let [tick] = &pending.ticks[..] else { return false };
    if tick.ticks > 1 || tick.state != Some(State::Runnable) {
        return false;
    }
    // What was added up since it was looked at is the wait that it was in then; when that was over, it ran.
    let waited_ns = settle_cpu_wait(thread, recordings);
    let since_ns = waited_ns + cpu_ns.saturating_sub(tick.cpu_ns);
    waited_ns > 0 && process::monotonic_ns().saturating_sub(since_ns) + WAKING_NS >= tick.tick_ns
}
