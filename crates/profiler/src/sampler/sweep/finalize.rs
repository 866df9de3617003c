//! When a thread or a recording ends: emits the samples that are still pending.

use super::collect::take_waited_hit;
use super::observe::{Observation, observe, running_or_waiting};
use super::{Sweeper, account_of, moment};
use crate::counters::AgentCounters;
use crate::sampler::account::{Found, TimerState};
use crate::sampler::active::RunningRecording;
use crate::sampler::threads::{ThreadState, Threads};
use crate::sampler::timers::Timers;
use swipr_formats::model::Mode;
use swipr_os::process;
use swipr_os::threads::{Activity, cpu_ns};

impl Sweeper {
    /// Ends recordings whose last tick is over and answered.
    pub fn retire(&mut self, recordings: &mut Vec<RunningRecording>, now: u64) {
        let is_asked = self.collect_at().is_some();
        let Sweeper { threads, tables, copier, counters, timers, .. } = self;
        if recordings.iter_mut().any(|recording| recording.has_ended(now)) {
            for thread in threads.iter_mut() {
                take_waited_hit(thread, timers, tables, counters, recordings);
            }
        }
        recordings.retain_mut(|recording| {
            if !recording.has_ended(now) || is_asked && recording.waits_for_answers(now) {
                return true;
            }
            if recording.is_snapshot() && recording.wait_on(now) {
                let mut observe_thread =
                    |thread: &mut ThreadState| observe(thread, true, copier, tables, counters);
                if ask_the_rest(threads, recording, timers, counters, &mut observe_thread) {
                    return true;
                }
            }
            finalize_recording(threads, recording);
            false
        });
        if recordings.is_empty() {
            timers.offer(false);
            for thread in threads.iter_mut() {
                timers.remove(thread);
                thread.is_timer_set = false;
            }
        }
        if !recordings.iter().any(RunningRecording::preempts) {
            self.preempter.go_home();
        }
    }

    /// Ends all recordings, without waiting for answers: the agent was stopped then.
    pub fn end(&mut self, recordings: &mut [RunningRecording], stopped_ns: Option<u64>) {
        let now = process::monotonic_ns();
        for recording in recordings.iter_mut() {
            recording.stop_at(stopped_ns.unwrap_or(now));
            if recording.has_ended(now) {
                finalize_recording(&mut self.threads, recording);
            }
        }
    }
}

/// A thread ended.
pub fn finalize_end(thread: &mut ThreadState, timers: &mut Timers, recordings: &mut [RunningRecording]) {
    for recording in recordings.iter_mut() {
        finalize_thread(thread, recording, true);
    }
    timers.remove(thread);
}

/// Emits the rest of a thread's samples to a recording, then takes the thread out of it.
pub fn finalize_thread(thread: &mut ThreadState, recording: &mut RunningRecording, has_ended: bool) {
    let now_ns = recording.at_most_end_ns(process::monotonic_ns());
    let (mut now, stood_still_ns) = (moment(thread, recording, now_ns), thread.stood_still_ns);
    if has_ended {
        // The sweep that finds this has started its tick already.
        now.ticks -= u64::from(recording.is_in_sweep());
    }
    let found = if has_ended { Found::Elsewhere } else { last_found(thread, recording) };
    let Some(account) = account_of(thread, recording) else { return };
    account.stood_still(stood_still_ns, now);
    let news = account.news(now);
    match has_ended {
        true => account.end(now, recording.request().mode),
        false => account.observe(now, found, TimerState::No),
    }
    recording.count(news);
    emit_tail(thread, recording, has_ended);
}

/// Whether a thread waits for a CPU at a recording's end: the kernel has not counted that wait.
fn last_found(thread: &mut ThreadState, recording: &RunningRecording) -> Found {
    let is_blocked = thread.blocked.as_ref().is_some_and(|blocked| blocked.cpu_ns == thread.cpu_ns);
    if recording.request().mode == Mode::Wall
        && !is_blocked
        && matches!(thread.activity(), Ok(Activity::Running))
    {
        return running_or_waiting(thread);
    }
    Found::Elsewhere
}

/// A thread has ended. If this sweep has listed it for the first time, it was there at its tick.
pub fn count_presence<'a>(
    thread: &mut ThreadState,
    recordings: impl Iterator<Item = &'a mut RunningRecording>,
    tick_ns: u64,
) {
    let is_new = thread.observed_ns == 0;
    for recording in recordings.filter(|_| is_new) {
        let now = moment(thread, recording, tick_ns);
        account_of(thread, recording).into_iter().for_each(|account| account.was_there(now));
    }
}

/// Emits a thread's samples up to its last observation, then takes the thread out of the recording.
pub fn emit_tail(thread: &mut ThreadState, recording: &mut RunningRecording, has_ended: bool) {
    let Some(account) = thread.accounts.get_mut(recording.place()).and_then(Option::take) else { return };
    recording.take_rest(&thread.thread, *account, has_ended);
    thread.recordings &= !recording.bit();
}

/// Emits the samples of undersampled threads, if they are many.
pub fn emit_undersampled(threads: &Threads, recording: &mut RunningRecording, now_ns: u64) {
    if !recording.has_many_undersampled(now_ns) {
        return;
    }
    let program_used_ns = recording.program_used_ns();
    let pending =
        |thread: &ThreadState| Some(thread.accounts.get(recording.place())?.as_ref()?.used_ns(thread.cpu_ns));
    let pending_ns = threads.iter().filter_map(pending).sum();
    recording.take_undersampled(now_ns, program_used_ns, pending_ns, false);
}

/// A snapshot wants a stack of each thread. Observes those again that were neither hit nor found
/// blocked, and arms the timers of those that are not blocked now. Returns whether any was armed.
pub fn ask_the_rest(
    threads: &mut Threads,
    recording: &RunningRecording,
    timers: &mut Timers,
    counters: &AgentCounters,
    observe_thread: &mut impl FnMut(&mut ThreadState) -> Observation,
) -> bool {
    let now_ns = process::monotonic_ns();
    let mut waits = false;
    for thread in threads.iter_mut() {
        if account_of(thread, recording).is_none_or(|account| !account.is_empty()) {
            continue;
        }
        match observe_thread(thread) {
            Observation::There(Found::At(state, stack) | Found::Was(state, stack)) => {
                if let Some(account) = account_of(thread, recording) {
                    account.found(state, &stack, now_ns);
                }
            }
            Observation::There(Found::Elsewhere | Found::Waiting(_)) => {
                waits |= timers.arm(thread, recording.bit(), now_ns, counters);
            }
            Observation::There(Found::Unknown) | Observation::Ended | Observation::Gone => {}
        }
    }
    waits
}

/// Emits the rest of all threads' samples at a recording's end.
pub fn finalize_recording(threads: &mut Threads, recording: &mut RunningRecording) {
    let program_used_ns = recording.program_used_ns();
    for thread in threads.iter_mut() {
        if account_of(thread, recording).is_some() {
            let (before_ns, now_ns) = (thread.cpu_ns, cpu_ns(thread.tid()));
            thread.cpu_ns = now_ns.unwrap_or(before_ns);
            if thread.cpu_ns != before_ns {
                thread.add_delay();
            }
            finalize_thread(thread, recording, now_ns.is_none());
        }
    }
    recording.take_undersampled(process::monotonic_ns(), program_used_ns, 0, true);
    recording.flush(process::monotonic_ns());
}
