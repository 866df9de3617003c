//! Takes the stacks that hit threads have left, into their accounts.

use super::filter::passes;
use super::{Sweeper, account_of, of};
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::sampler::account::Account;
use crate::sampler::active::RunningRecording;
use crate::sampler::threads::ThreadState;
use crate::sampler::timers::{HitAt, LastHit, ThreadTimer, TimerHit, Timers};
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::process;

impl Sweeper {
    /// To be called first of all when the sampler wakes: signals the thread that it has preempted.
    pub fn preempt(&mut self, recordings: &mut [RunningRecording]) {
        let Some((tid, due)) = self.preempter.preempted(recordings) else { return };
        self.collect_preempted(recordings); // the last signal's answer may be its own
        if let Some(thread) = self.threads.get_mut(tid) {
            self.preempter.hit(thread, due, &mut self.timers, &self.counters);
        }
    }

    /// When to call [`Sweeper::collect`]; `None`: no answer is to come.
    pub fn collect_at(&self) -> Option<u64> {
        self.timers.expire_at().into_iter().chain(self.preempter.collect_at()).min()
    }

    /// Takes the stacks that running threads have left.
    pub fn collect(&mut self, recordings: &mut [RunningRecording]) {
        self.collect_preempted(recordings);
        let Sweeper { threads, tables, timers, counters, unknown_code, .. } = self;
        let mut armed = timers.take_armed();
        let tick_ns = kernel_tick_ns();
        let now_ns = process::monotonic_ns();
        armed.retain(|&tid| {
            let Some(thread) = threads.get_mut(tid) else { return false };
            let answer = timers.take(thread, now_ns, tables, counters);
            let began_armed = thread.began_armed_ns.is_some();
            if let Some(answer) = answer {
                *unknown_code |= answer.stack.is_in_unknown_code(tables);
                let asked = answer.recordings & thread.recordings;
                for recording in of(recordings, asked) {
                    let is_picked = |(from_ns, to_ns)| recording.has_picked_in(from_ns, to_ns);
                    if answer.at == HitAt::Tick && !answer.found_ns.is_none_or(is_picked) {
                        continue;
                    }
                    if let Some(account) = account_of(thread, recording) {
                        add_hit(account, &answer, recording.interval_ns());
                        let most_ns = tick_ns.min(recording.interval_ns());
                        if account.is_of_new_thread() && !began_armed && answer.cpu_ns < most_ns {
                            account.weigh(most_ns as f64 / answer.cpu_ns.max(1) as f64);
                        }
                    }
                }
            }
            thread.timer.as_ref().is_some_and(ThreadTimer::is_armed)
        });
        timers.put_back(armed, now_ns);
    }

    /// The same of threads that were preempted.
    fn collect_preempted(&mut self, recordings: &mut [RunningRecording]) {
        let Sweeper { threads, tables, timers, preempter, counters, unknown_code, .. } = self;
        preempter.collect(threads, timers, tables, counters, |thread, answer| {
            *unknown_code |= answer.stack.is_in_unknown_code(tables);
            for recording in of(recordings, answer.recordings & thread.recordings) {
                if let Some(account) = account_of(thread, recording) {
                    account.was_preempted(&answer.stack, answer.asked_ns);
                }
            }
        });
    }
}

fn add_hit(account: &mut Account, hit: &TimerHit, interval_ns: u64) {
    let tick_ns = kernel_tick_ns();
    match hit.at {
        HitAt::Tick => account.ran(&hit.stack, hit.asked_ns, hit.hit_ns / tick_ns),
        at => {
            let (hits, asked) = (at.hits(interval_ns, tick_ns), matches!(at, HitAt::Return { .. }));
            account.returned(&hit.stack, hit.hit_ns, hits, asked);
        }
    }
}

/// Takes the stack that a thread has left at the first kernel tick at which it ran. That tick is
/// always hit, others only where a sweep has picked them. So it counts only if a sweep has picked
/// it, too. Returns whether the stack is in unknown code.
pub fn take_waited_hit(
    thread: &mut ThreadState,
    timers: &mut Timers,
    tables: &Tables,
    counters: &AgentCounters,
    recordings: &mut [RunningRecording],
) -> bool {
    let Some(hit) = timers.take_waited(thread, tables, counters) else { return false };
    let (bits, tick_ns) = (thread.recordings, kernel_tick_ns());
    for recording in of(recordings, bits) {
        if hit.at != HitAt::Tick {
            account_of(thread, recording)
                .into_iter()
                .for_each(|account| add_hit(account, &hit, recording.interval_ns()));
        } else if recording.has_picked(hit.hit_ns)
            && let Some(account) = account_of(thread, recording)
        {
            account.ran(&hit.stack, hit.hit_ns, hit.hit_ns / tick_ns);
        }
    }
    hit.stack.is_in_unknown_code(tables)
}

/// Takes the stack of a thread that has ended before a sweep saw it.
pub fn take_last_hit(hit: &LastHit, recordings: &mut [RunningRecording]) {
    for recording in recordings {
        if passes(recording, &hit.thread) && recording.has_picked(hit.hit_ns) {
            recording.take_last_hit(hit);
        }
    }
}
