//! One pass over the threads. A thread that has not run keeps its last stack. The stack of a
//! blocked thread is copied. A thread that ran lately gets its timer armed, which hits it if it
//! runs at the next kernel tick.

mod copy;
mod filter;
mod finalize;
mod observe;

use super::account::{Found, Moment, TimerState};
use super::active::RunningRecording;
use super::idle_backoff::{IdleBackoff, sweeps_per_check};
use super::preempt::Preempter;
use super::threads::{ThreadState, Threads};
use super::ticks::mixed;
use super::timers::{ThreadTimer, Timers, acquire_slot};
use crate::counters::AgentCounters;
use crate::interpreters::Wanted;
use crate::mappings::JitTables;
use crate::mappings::Tables;
use crate::signal_exclusion;
use copy::RemoteWalker;
use filter::apply_filter;
use finalize::finalize_end;
use observe::{Observation, is_in_unknown_code, observe};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use swipr_formats::model::Mode;
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::threads::cpu_ns;
use swipr_os::{process, signals, timer_delivery};
use swipr_server::recording::MAX_RECORDINGS;
use swipr_unwind::slot::StackBounds;

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
/// So many timers of threads that do not run are made in a sweep.
const MAX_MADE: usize = 16;

/// What a sweep needs.
#[derive(Debug)]
pub struct Sweeper {
    threads: Threads,
    tables: Tables,
    copier: RemoteWalker,
    timers: Timers,
    preempter: Preempter,
    counters: Arc<AgentCounters>,
    maps_read_ns: u64,
    maps_again_ns: u64,
    unknown_code: bool,
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
            maps_read_ns: 0,
            maps_again_ns: MAPS_AGAIN_NS,
            unknown_code: false,
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
            if thread.looked_ns != 0 {
                thread.refresh_name(); // else it was found just now
            }
            if recording.request().mode == Mode::Cpu {
                // In wall mode the first sweep does this.
                let _ = thread.activity();
            }
            thread.add_delay_ns();
            apply_filter(thread, &mut recording, clock_ns);
        }
        recordings.push(recording);
    }

    /// Reads names and mappings again, and lists the threads that the signal cannot reach or hits
    /// in step with the kernel's tick.
    pub fn housekeeping(&mut self, recordings: &mut [RunningRecording]) {
        if self.read_maps() {
            self.maps_again_ns = MAPS_AGAIN_NS;
        }
        let now_ns = process::monotonic_ns();
        let (mut blocking, mut excluded, mut in_step) = (vec![], vec![], vec![]);
        for thread in self.threads.iter_mut() {
            if thread.is_name_old() {
                refresh_name(thread, recordings);
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
            let has_other_stack = self.tables.stack_of(bounds.low) != Some(bounds);
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
        let was_task_work = timer_delivery::is_task_work();
        timer_delivery::measure(|| acquire_slot(process::tid(), StackBounds::default()));
        if was_task_work != timer_delivery::is_task_work() {
            // They are on the other clock.
            self.threads.iter_mut().for_each(|thread| self.timers.remove(thread));
        }
    }

    fn read_maps(&mut self) -> bool {
        let changed = self.tables.refresh_maps();
        self.maps_read_ns = process::monotonic_ns();
        self.unknown_code = false;
        changed
    }

    fn find_threads(&mut self, recordings: &mut [RunningRecording]) {
        let Sweeper { threads, tables, timers, gone, counters, .. } = self;
        let ended = threads.refresh(gone);
        gone.clear();
        let newborn = threads.take_newborn();
        for tid in threads.take_young(process::monotonic_ns()) {
            if let Some(thread) = threads.get_mut(tid) {
                refresh_name(thread, recordings);
            }
        }
        if ended.is_empty() && newborn.is_empty() {
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
        let unreadable = threads.iter().filter(|thread| !thread.is_readable()).count();
        counters.unreadable.set(unreadable as u64);
        counters.threads.set(threads.len() as u64);
    }

    /// Installs the handler again if the host took it away, by a system call of its own.
    fn keep_handler() {
        if !signals::is_installed() {
            let _ = signals::install();
        }
    }

    /// Observes every thread for the recordings whose tick it is.
    pub fn sweep(&mut self, recordings: &mut [RunningRecording], tick_ns: u64) {
        let began_ns = process::monotonic_ns();
        self.counters.sweeps.add(1);
        self.find_threads(recordings);
        if self.unknown_code && tick_ns.saturating_sub(self.maps_read_ns) >= self.maps_again_ns {
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
            if is_quiet(thread, wanted, due) {
                backoff.was_idle(thread.tid(), due.sweeps_per_check);
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
                    gone.push(thread.tid());
                    continue;
                }
            };
            set_activity(thread, backoff, cpu_before_ns, due);
            *unknown_code |= is_in_unknown_code(&found);
            if thread.cpu_ns != cpu_before_ns {
                *unknown_code |= take_waited_hit(thread, timers, tables, counters, recordings);
            }
            let ran_lately = due.tick_ns.saturating_sub(thread.ran_ns) <= due.lately_ns;
            let now_ns = process::monotonic_ns();
            let preempt = wanted & due.preempt;
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
                true if timers.arm(thread, by_timer, now_ns, counters) => TimerState::Yes(due.kernel_tick_ns),
                true => TimerState::Never,
                false => arm_waiting(thread, timers, due, &mut made, counters),
            };
            for recording in of(recordings, wanted) {
                let asked = preempted.filter(|_| recording.bit() & preempt != 0).unwrap_or(timed);
                add_observation(thread, recording, due.tick_ns, found.clone(), asked);
            }
        }
    }

    /// To be called whenever the sampler wakes, see [`Preempter::wake`].
    pub fn preempt(&mut self, recordings: &[RunningRecording]) {
        let Sweeper { threads, timers, counters, preempter, .. } = self;
        preempter.wake(recordings, threads, timers, counters);
    }

    /// See [`Preempter::wake_at`].
    pub fn preempt_at(&self, recordings: &[RunningRecording]) -> Option<u64> {
        self.preempter.wake_at(recordings)
    }

    /// When to call [`Sweeper::collect`]; `None`: no answer is to come.
    pub fn collect_at(&self) -> Option<u64> {
        self.timers.expire_at().into_iter().chain(self.preempter.collect_at()).min()
    }

    /// Takes the stacks that running threads have left.
    pub fn collect(&mut self, recordings: &mut [RunningRecording]) {
        let Sweeper { threads, tables, timers, preempter, counters, unknown_code, .. } = self;
        preempter.collect(threads, timers, tables, counters, |thread, answer| {
            *unknown_code |= answer.stack.is_in_unknown_code();
            for recording in of(recordings, answer.recordings & thread.recordings) {
                if let Some(account) = account_of(thread, recording) {
                    account.was_preempted(&answer.stack, answer.asked_ns);
                }
            }
        });
        let mut armed = timers.take_armed();
        let tick_ns = kernel_tick_ns();
        let now_ns = process::monotonic_ns();
        armed.retain(|&tid| {
            let Some(thread) = threads.get_mut(tid) else { return false };
            let (answer, stays) = timers.take(thread, now_ns, tables, counters);
            if let Some(answer) = answer {
                *unknown_code |= answer.stack.is_in_unknown_code();
                let asked = answer.recordings & thread.recordings;
                for recording in of(recordings, asked) {
                    if let Some(account) = account_of(thread, recording) {
                        account.ran(&answer.stack, answer.asked_ns, answer.hit_ns / tick_ns);
                        let most_ns = tick_ns.min(recording.interval_ns());
                        if account.is_of_new_thread() && answer.cpu_ns < most_ns {
                            account.weigh(most_ns as f64 / answer.cpu_ns.max(1) as f64);
                        }
                    }
                }
            }
            stays
        });
        timers.put_back(armed, now_ns);
    }

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
                if finalize::ask_the_rest(threads, recording, timers, counters, &mut observe_thread) {
                    return true;
                }
            }
            finalize::finalize_recording(threads, recording);
            false
        });
        if recordings.is_empty() {
            for thread in threads.iter_mut() {
                timers.remove(thread);
                thread.is_timer_set = false;
            }
        }
        if !recordings.iter().any(RunningRecording::preempts) {
            self.preempter.go_home();
        }
    }

    /// Ends all recordings now, without waiting for answers: the agent is stopped.
    pub fn end(&mut self, recordings: &mut [RunningRecording]) {
        let now = process::monotonic_ns();
        for recording in recordings.iter_mut().filter_map(|it| it.has_ended(now).then_some(it)) {
            finalize::finalize_recording(&mut self.threads, recording);
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.threads.iter_mut().for_each(|thread| self.timers.remove(thread));
    }
}

/// A timer goes when its thread has not run for so long.
const LONGEST_REST_NS: u64 = 10_000_000_000;

fn of(recordings: &mut [RunningRecording], bits: u8) -> impl Iterator<Item = &mut RunningRecording> {
    recordings.iter_mut().filter(move |recording| recording.bit() & bits != 0)
}

fn account_of<'a>(
    thread: &'a mut ThreadState,
    recording: &RunningRecording,
) -> Option<&'a mut super::account::Account> {
    thread.accounts.get_mut(recording.place())?.as_deref_mut()
}

/// Arms the timer of a thread that does not run, unless that was tried, or many were made.
fn arm_waiting(
    thread: &mut ThreadState,
    timers: &mut Timers,
    due: Due,
    made: &mut usize,
    counters: &AgentCounters,
) -> TimerState {
    if due.may_wait && !thread.is_timer_set && (thread.timer.is_some() || *made < MAX_MADE) {
        *made += usize::from(thread.timer.is_none());
        thread.is_timer_set = timers.arm_waiting(thread, due.tick_ns, counters);
    }
    TimerState::No
}

/// Takes the stack that a thread has left at the first kernel tick at which it ran. That tick is
/// always hit, others only where a sweep comes shortly before them. So one hit counts of as many as
/// there. Returns whether the stack is in unknown code.
fn take_waited_hit(
    thread: &mut ThreadState,
    timers: &mut Timers,
    tables: &Tables,
    counters: &AgentCounters,
    recordings: &mut [RunningRecording],
) -> bool {
    let Some(hit) = timers.take_waited(thread, tables, counters) else { return false };
    let (bits, tick_ns) = (thread.recordings, kernel_tick_ns());
    for recording in of(recordings, bits).filter(|recording| !recording.preempts()) {
        if mixed(hit.hit_ns) % recording.interval_ns() < tick_ns
            && let Some(account) = account_of(thread, recording)
        {
            account.ran(&hit.stack, hit.hit_ns, hit.hit_ns / tick_ns);
        }
    }
    hit.stack.is_in_unknown_code()
}

/// Reads a thread's name again, by which recordings may select it.
fn refresh_name(thread: &mut ThreadState, recordings: &mut [RunningRecording]) {
    if !thread.refresh_name() {
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

/// Records whether the thread has run since the last observation. Of one that is blocked at the
/// first, this is not known. It gets no timer yet: of thousands most wait for long.
fn set_activity(thread: &mut ThreadState, backoff: &mut IdleBackoff, cpu_before_ns: u64, due: Due) {
    let is_first = thread.looked_ns == 0;
    let has_run = thread.cpu_ns != cpu_before_ns || is_first && thread.blocked.is_none();
    thread.looked_ns = due.tick_ns;
    if has_run || is_first {
        thread.add_delay_ns();
    }
    if has_run {
        backoff.has_run();
        thread.ran_ns = due.tick_ns;
        thread.is_timer_set = false;
    } else {
        backoff.was_idle(thread.tid(), due.sweeps_per_check);
    }
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
    let now = moment(thread, recording, tick_ns);
    let Some(account) = account_of(thread, recording) else { return };
    let news = account.news(now);
    account.observe(now, found, asked);
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
    Moment { ns, cpu_ns: thread.cpu_ns, kernel_ns, delay_ns: thread.delay_ns, ticks, late }
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

fn count_thread(thread: &mut ThreadState, recording: &mut RunningRecording) {
    if thread.counted & recording.bit() == 0 {
        recording.counters().threads.add(1);
        thread.counted |= recording.bit();
    }
}
