//! One pass over the threads. A thread that has not run keeps its last stack. The stack of a
//! blocked thread is copied. A thread that ran lately gets its timer armed, which hits it if it
//! runs at the next kernel tick.

mod activity;
mod arming;
mod collect;
mod copy;
mod filter;
mod finalize;
mod housekeeping;
mod observe;

use super::account::{Found, Moment, TimerState};
use super::active::RunningRecording;
use super::idle_backoff::sweeps_per_check;
use super::preempt::Preempter;
use super::threads::{ThreadState, Threads};
use super::timers::{ThreadTimer, Timers};
use crate::counters::AgentCounters;
use crate::interpreters::Wanted;
use crate::mappings::JitTables;
use crate::mappings::Tables;
use activity::{set_activity, stays_quiet};
use arming::{arm_running, arm_waiting, note_running};
use collect::take_waited_hit;
use copy::RemoteWalker;
use observe::{Observation, observe};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use swipr_formats::model::Mode;
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::threads::cpu_ns;
use swipr_os::{process, signals, timer_delivery};

/// How soon unknown code makes the sampler read the mappings again. Doubles while they bring
/// nothing new.
const MAPS_AGAIN_NS: u64 = 20_000_000;
/// A thread that ran within this time, or within so many ticks, has its timer armed at every tick,
/// or is preempted.
const LATELY_NS: u64 = 1_000_000_000;
const LATELY_TICKS: u64 = 10;
/// Where there are more threads than a few, that holds for threads that ran within so many ticks.
/// The timers of others wait for them to run. Where there are few, threads that run more rarely
/// than once in [`LATELY_NS`] use hardly any CPU time, and no timer waits: a thread may enter a
/// sandbox before it runs again, by system calls that the agent does not see.
const FEW_THREADS: usize = 16;
const WAITS_AFTER_TICKS: u64 = 2;

/// What a sweep needs.
#[derive(Debug)]
pub struct Sweeper {
    threads: Threads,
    tables: Tables,
    copier: RemoteWalker,
    timers: Timers,
    preempter: Preempter,
    counters: Arc<AgentCounters>,
    maps_again_ns: u64,
    unknown_code: bool,
    /// The clock of the timers that there are.
    is_task_work: bool,
    /// Threads that have ended.
    gone: Vec<u32>,
    _memory_file: Option<File>,
}

/// The recordings whose tick it is, those of them in wall mode, and those that preempt.
#[derive(Clone, Copy, Debug)]
struct Due {
    all: u8,
    wall: u8,
    preempt: u8,
    tick_ns: u64,
    /// A thread that is idle for long is observed in one of so many sweeps.
    sweeps_per_check: u32,
    lately_ns: u64,
    /// Timers wait for threads that do not run.
    may_wait: bool,
    kernel_tick_ns: u64,
}

impl Sweeper {
    /// Installs the signal handler.
    pub fn new(
        jit_tables: Arc<JitTables>,
        interpreters: Wanted,
        counters: Arc<AgentCounters>,
    ) -> io::Result<Sweeper> {
        swipr_unwind::memory::set_process(process::pid() as i32);
        process::probe_memory_access();
        signals::install()?;
        let memory_file = process::open_own("mem").ok();
        let fd = memory_file.as_ref().map_or(-1, |file| file.as_raw_fd());
        let tables = Tables::with(fd, jit_tables, interpreters);
        let timers = Timers::new(tables.interpreters().clone());
        Ok(Sweeper {
            threads: Threads::new()?,
            tables,
            copier: RemoteWalker::new(fd),
            timers,
            preempter: Preempter::default(),
            counters,
            maps_again_ns: MAPS_AGAIN_NS,
            unknown_code: false,
            is_task_work: timer_delivery::is_task_work(),
            gone: vec![],
            _memory_file: memory_file,
        })
    }

    /// Learns of new code before a sweep.
    pub fn refresh(&mut self) {
        self.tables.refresh();
        let figures = self.tables.figures();
        let values = [figures.objects, figures.rows, figures.bytes, figures.build_ns, figures.failed];
        self.counters.set_interpreter(self.tables.interpreters().text());
        self.counters.tables.iter().zip(values).for_each(|(counter, value)| counter.set(value));
    }

    /// Observes every thread for the recordings whose tick it is.
    pub fn sweep(&mut self, recordings: &mut [RunningRecording], tick_ns: u64) {
        let began_ns = process::monotonic_ns();
        self.counters.sweeps.add(1);
        self.choose_clock();
        self.find_threads(recordings);
        recordings.iter_mut().for_each(RunningRecording::has_listed_threads);
        if self.unknown_code && tick_ns.saturating_sub(self.tables.maps_read_ns()) >= self.maps_again_ns {
            let changed = self.read_maps();
            self.maps_again_ns = if changed { MAPS_AGAIN_NS } else { self.maps_again_ns.saturating_mul(2) };
        }
        Self::keep_handler();
        let shortest_ns = recordings.iter().map(RunningRecording::interval_ns).min().unwrap_or(u64::MAX);
        let (mut all, mut wall, mut preempt, mut longest_ns) = (0, 0, 0, 0);
        for recording in recordings.iter().filter(|recording| recording.is_in_sweep()) {
            all |= recording.bit();
            wall |= if recording.request().mode == Mode::Wall { recording.bit() } else { 0 };
            preempt |= if recording.preempts() { recording.bit() } else { 0 };
            longest_ns = recording.interval_ns().max(longest_ns);
        }
        let sweeps_per_check = sweeps_per_check(self.threads.len(), shortest_ns);
        let may_wait = preempt == 0 && self.threads.len() > FEW_THREADS;
        let lately_ns = match may_wait {
            true => longest_ns.saturating_mul(WAITS_AFTER_TICKS),
            false => LATELY_NS.max(longest_ns.saturating_mul(LATELY_TICKS)),
        };
        let kernel_tick_ns = kernel_tick_ns();
        self.timers.offer(recordings.iter().any(RunningRecording::wants_new_threads));
        let due = Due { all, wall, preempt, tick_ns, sweeps_per_check, lately_ns, may_wait, kernel_tick_ns };
        self.observe_threads(recordings, due);
        // A thread may have ended and another one started: the kernel's count is the same then.
        if !self.gone.is_empty() {
            self.find_threads(recordings);
            self.observe_threads(recordings, due);
        }
        if preempt != 0 {
            self.preempter.go(&mut self.threads);
        }
        recordings.iter_mut().for_each(|recording| {
            finalize::emit_undersampled(&self.threads, recording, tick_ns);
            recording.end_tick();
        });
        self.counters.sweep.add(process::monotonic_ns().saturating_sub(began_ns));
    }

    /// Observes the threads that this sweep has not observed yet.
    fn observe_threads(&mut self, recordings: &mut [RunningRecording], due: Due) {
        let Sweeper { threads, tables, copier, timers, preempter, counters, unknown_code, gone, .. } = self;
        let (mut place, mut made) = (0, 0);
        let sweep = counters.sweeps.get();
        while let Some((backoff, thread)) = threads.next_due(sweep, &mut place) {
            let wanted = due.all & thread.recordings;
            if wanted == 0 {
                if cpu_ns(thread.tid()).is_none() {
                    gone.push(thread.tid());
                }
                continue;
            }
            if stays_quiet(thread, wanted, due) {
                backoff.was_idle(thread.tid(), due.sweeps_per_check, thread.waiting_ticket());
                counters.reused.add(1);
                continue;
            }
            let cpu_before_ns = thread.cpu_ns;
            let found = match observe(thread, wanted & due.wall != 0, copier, tables, counters) {
                Observation::There(found) => found,
                Observation::Ended => {
                    // From now on the thread has no ticks.
                    of(recordings, thread.recordings)
                        .for_each(|recording| finalize::emit_tail(thread, recording, true));
                    continue;
                }
                Observation::Gone => {
                    finalize::count_presence(thread, of(recordings, wanted), due.tick_ns);
                    gone.push(thread.tid());
                    continue;
                }
            };
            set_activity(thread, backoff, cpu_before_ns, due);
            *unknown_code |= matches!(&found, Found::At(_, stack) if stack.is_in_unknown_code(tables));
            let has_run = thread.cpu_ns != cpu_before_ns;
            *unknown_code |= has_run && take_waited_hit(thread, timers, tables, counters, recordings);
            // One that has not started to run yet may arm a timer itself.
            let ran_lately = thread.cpu_ns != 0 && due.tick_ns.saturating_sub(thread.ran_ns) <= due.lately_ns;
            let now_ns = process::monotonic_ns();
            let preempt = if thread.is_young(due.tick_ns) { 0 } else { wanted & due.preempt };
            let preempted = match preempt {
                0 => None,
                _ if !ran_lately => Some(TimerState::No),
                _ => preempter.ask(thread, now_ns, timers),
            };
            let by_timer = if preempted.is_some() { wanted & !preempt } else { wanted };
            let may_expire = |timer: &ThreadTimer| timer.may_expire(thread.cpu_ns, due.kernel_tick_ns);
            let timed = match ran_lately {
                _ if by_timer == 0 => TimerState::No,
                true if thread.timer.as_ref().is_some_and(may_expire) => TimerState::Yes(due.kernel_tick_ns),
                true => arm_running(thread, timers, by_timer, now_ns, counters),
                false => arm_waiting(thread, timers, due, &mut made, counters),
            };
            note_running(thread, timed, now_ns);
            for recording in of(recordings, wanted) {
                let asked = preempted.filter(|_| recording.bit() & preempt != 0).unwrap_or(timed);
                add_observation(thread, recording, due.tick_ns, found.clone(), asked);
            }
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.timers.offer(false);
        self.threads.iter_mut().for_each(|thread| self.timers.remove(thread));
    }
}

fn of(recordings: &mut [RunningRecording], bits: u8) -> impl Iterator<Item = &mut RunningRecording> {
    recordings.iter_mut().filter(move |recording| recording.bit() & bits != 0)
}

fn account_of<'a>(
    thread: &'a mut ThreadState,
    recording: &RunningRecording,
) -> Option<&'a mut super::account::Account> {
    thread.accounts.get_mut(recording.place())?.as_deref_mut()
}

/// Adds an observation to a recording's account of the thread.
fn add_observation(
    thread: &mut ThreadState,
    recording: &mut RunningRecording,
    tick_ns: u64,
    found: Found,
    asked: TimerState,
) {
    count_thread(thread, recording);
    let (now, stood_still_ns) = (moment(thread, recording, tick_ns), thread.stood_still_ns);
    let seen = thread.seen_running;
    let Some(account) = account_of(thread, recording) else { return };
    account.stood_still(stood_still_ns, now);
    let news = account.news(now);
    account.observe(now, found, asked);
    if let (Some((ns, is_running)), TimerState::Yes(tick_ns)) = (seen, asked) {
        account.saw(ns, tick_ns, is_running);
    }
    recording.count(news);
    let whose = thread.thread.clone();
    let Some(account) = account_of(thread, recording) else { return };
    if account.is_full(tick_ns) {
        recording.close_window(&whose, account, false);
    }
}

fn moment(thread: &ThreadState, recording: &RunningRecording, ns: u64) -> Moment {
    let (ticks, late) = recording.passed();
    let kernel_ns = timer_delivery::kernel_ns(thread.tid());
    let ThreadState { cpu_ns, delay_ns, turns, .. } = *thread;
    Moment { ns, cpu_ns, kernel_ns, delay_ns, turns, ticks, late }
}

fn count_thread(thread: &mut ThreadState, recording: &mut RunningRecording) {
    if thread.counted & recording.bit() == 0 {
        recording.counters().threads.add(1);
        thread.counted |= recording.bit();
    }
}
