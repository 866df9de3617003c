//! What a sweep needs to know beforehand: threads, their names, mappings, and the handler.

use super::collect::{take_last_hit, take_waited_hit};
use super::filter::apply_filter;
use super::finalize::finalize_end;
use super::{MAPS_AGAIN_NS, Sweeper};
use crate::interpreters::Interpreters;
use crate::sampler::active::RunningRecording;
use crate::sampler::threads::ThreadState;
use crate::sampler::timers::acquire_slot;
use crate::signal_exclusion;
use swipr_formats::model::Mode;
use swipr_os::threads::cpu_ns;
use swipr_os::{process, signals, timer_delivery};
use swipr_server::recording::MAX_RECORDINGS;
use swipr_unwind::slot::StackBounds;

/// A timer goes when its thread has not run for so long.
const LONGEST_REST_NS: u64 = 10_000_000_000;

impl Sweeper {
    /// Takes a new recording in.
    pub fn admit(&mut self, mut recording: RunningRecording, recordings: &mut Vec<RunningRecording>) {
        let taken = recordings.iter().fold(0u8, |bits, recording| bits | recording.bit());
        let Some(place) = (0..MAX_RECORDINGS).find(|place| taken >> place & 1 == 0) else { return };
        self.find_threads(recordings);
        self.threads.end_rests();
        let clocks: Vec<u64> =
            self.threads.iter().map(|thread| cpu_ns(thread.tid()).unwrap_or(thread.cpu_ns)).collect();
        recording.start(place);
        for (thread, clock_ns) in self.threads.iter_mut().zip(clocks) {
            thread.recordings &= !recording.bit();
            thread.counted &= !recording.bit();
            let interpreters = self.tables.interpreters();
            if thread.observed_ns != 0 {
                thread.refresh_name(interpreters);
            } else {
                // It was found just now: the kernel's name is new.
                thread.take_own_name(interpreters);
            }
            if recording.request().mode == Mode::Cpu {
                // In wall mode the first sweep does this.
                let _ = thread.activity();
            }
            thread.add_delay();
            apply_filter(thread, &mut recording, clock_ns);
        }
        recordings.push(recording);
    }

    /// Reads names and mappings again, and lists the threads that the signal cannot reach or hits
    /// in step with the kernel's tick.
    pub fn housekeeping(&mut self, recordings: &mut [RunningRecording]) {
        let now_ns = process::monotonic_ns();
        // A recording that begins has just read them.
        let are_fresh = now_ns.saturating_sub(self.tables.maps_read_ns()) < MAPS_AGAIN_NS;
        if !are_fresh && self.read_maps() {
            self.maps_again_ns = MAPS_AGAIN_NS;
        }
        let (mut blocking, mut excluded, mut in_step) = (vec![], vec![], vec![]);
        for thread in self.threads.iter_mut() {
            if thread.is_name_old() {
                refresh_name(thread, recordings, self.tables.interpreters());
            }
            if thread.blocks_signal && !thread.is_new() {
                blocking.push(thread.thread.name.clone());
            }
            if thread.is_sandboxed || signal_exclusion::is_excluded(thread.tid()) {
                excluded.push(thread.thread.name.clone());
            }
            if thread.accounts.iter().flatten().any(|account| account.was_in_step()) {
                in_step.push(thread.thread.name.clone());
            }
            // The stack's memory may have been unmapped and used for something else.
            let bounds = thread.stack_bounds;
            let has_other_stack =
                !self.tables.stack_of(bounds.low).is_some_and(|now| now.has_mapping_of(&bounds));
            if has_other_stack {
                thread.stack_bounds = StackBounds::default();
            }
            let rests = thread.timer.as_ref().is_some_and(|timer| !timer.waits())
                && now_ns.saturating_sub(thread.ran_ns) > LONGEST_REST_NS;
            if rests || has_other_stack && bounds != StackBounds::default() {
                self.timers.remove(thread);
                thread.is_timer_set = rests;
            }
        }
        self.counters.set_signal_blockers(blocking);
        self.counters.set_excluded(excluded);
        self.counters.set_in_step(in_step);
    }

    /// Finds out whether timers cut system calls short on this kernel.
    pub fn measure_delivery(&mut self) {
        timer_delivery::measure(|| acquire_slot(process::tid(), StackBounds::default()));
    }

    /// Removes timers that are on the other clock, see [`timer_delivery::clock`].
    pub(super) fn choose_clock(&mut self) {
        let is_task_work = timer_delivery::is_task_work();
        if std::mem::replace(&mut self.is_task_work, is_task_work) != is_task_work {
            self.threads.iter_mut().for_each(|thread| self.timers.remove(thread));
        }
    }

    pub(super) fn read_maps(&mut self) -> bool {
        let changed = self.tables.refresh_maps();
        self.unknown_code = false;
        changed
    }

    pub(super) fn find_threads(&mut self, recordings: &mut [RunningRecording]) {
        let Sweeper { threads, tables, timers, gone, counters, unknown_code, .. } = self;
        let armed = timers.take_armed_by_themselves();
        if armed.iter().any(|(tid, _)| threads.get_mut(*tid).is_none()) {
            threads.look_again();
        }
        let ended = threads.refresh(gone);
        gone.clear();
        let newborn = threads.take_newborn();
        for tid in threads.take_young(process::monotonic_ns()) {
            if let Some(thread) = threads.get_mut(tid) {
                refresh_name(thread, recordings, tables.interpreters());
            }
        }
        if ended.is_empty() && newborn.is_empty() && armed.is_empty() {
            return;
        }
        for mut thread in ended {
            take_waited_hit(&mut thread, timers, tables, counters, recordings);
            finalize_end(&mut thread, timers, recordings);
        }
        for tid in newborn {
            if let Some(thread) = threads.get_mut(tid) {
                recordings.iter_mut().for_each(|recording| apply_filter(thread, recording, 0));
            }
        }
        for (tid, timer) in armed {
            if let Some(thread) = threads.get_mut(tid) {
                timers.adopt(thread, timer);
                *unknown_code |= take_waited_hit(thread, timers, tables, counters, recordings);
            } else if let Some(hit) = timers.take_last(tid, timer, tables, counters) {
                take_last_hit(&hit, recordings);
            }
        }
        let unreadable = threads.iter().filter(|thread| !thread.is_readable()).count();
        counters.unreadable.set(unreadable as u64);
        counters.threads.set(threads.len() as u64);
    }

    /// Installs the handler again if the host took it away, by a system call of its own.
    pub(super) fn keep_handler() {
        if !signals::is_installed() {
            let _ = signals::install();
        }
    }
}

/// Reads a thread's name again, by which recordings may select it.
fn refresh_name(thread: &mut ThreadState, recordings: &mut [RunningRecording], interpreters: &Interpreters) {
    if !thread.refresh_name(interpreters) {
        return;
    }
    let clock_ns = cpu_ns(thread.tid()).unwrap_or(thread.cpu_ns);
    for recording in recordings {
        // A new thread has only just got its name: its CPU time so far counts for that name. A
        // thread that is known for longer had another name until now.
        let is_new = thread.is_new() && thread.counted & recording.bit() == 0;
        apply_filter(thread, recording, if is_new { 0 } else { clock_ns });
    }
}
