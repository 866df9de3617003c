//! The threads that are sampled, and what is known of each.

mod recent_stacks;
mod woken_share;

use crate::agent_threads;
use crate::sampler::account::Account;
use crate::sampler::idle_backoff::IdleBackoff;
use crate::sampler::preempt::Preempted;
use crate::sampler::timers::ThreadTimer;
use crate::stack::RawStack;
use recent_stacks::RecentStacks;
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use swipr_formats::model::{State, Thread};
use swipr_os::descriptors;
use swipr_os::own_threads;
use swipr_os::process::{self, monotonic_ns};
use swipr_os::run_delay::RunDelay;
use swipr_os::threads::{self, Activity, ActivityFile, TaskDirectory};
use swipr_server::recording::MAX_RECORDINGS;
use swipr_unwind::slot::StackBounds;
use woken_share::WokenShare;

/// The agent's threads are unregistered for a moment at their start and exit, longer if starved of
/// CPU. A thread with such a name that is still unregistered after this time is the program's.
const PROBATION_NS: u64 = 10_000_000_000;

/// Ages at which a new thread's name is read again: its creator may name it after it has begun.
const NAMED_BY_NS: [u64; 3] = [2_000_000, 20_000_000, 200_000_000];

/// See [`ThreadState::is_young`].
const YOUNG_NS: u64 = 250_000_000;

/// Descriptors that are not used for threads' files.
const SPARE_DESCRIPTORS: usize = 24;
/// `syscall` and `schedstat`.
const FILES_OF_A_THREAD: usize = 2;

/// A stack that holds as long as the CPU clock does not move.
#[derive(Clone, Debug)]
pub struct BlockedStack {
    /// The clock when it was taken.
    pub cpu_ns: u64,
    /// What the thread waits in.
    pub state: State,
    /// The stack.
    pub stack: Arc<RawStack>,
}

/// One thread.
#[derive(Debug)]
pub struct ThreadState {
    /// Id and name.
    pub thread: Arc<Thread>,
    /// The CPU clock at the last observation.
    pub cpu_ns: u64,
    /// How long it has waited for CPUs, since it is known.
    pub delay_ns: u64,
    /// When it was last seen to have run.
    pub ran_ns: u64,
    /// Its samples so far, for each recording.
    pub accounts: [Option<Box<Account>>; MAX_RECORDINGS],
    /// Recordings whose filter lets this thread through.
    pub recordings: u8,
    /// Recordings that have counted this thread.
    pub counted: u8,
    /// The last stack taken while it was blocked.
    pub blocked: Option<BlockedStack>,
    /// Its one-shot CPU timer, unless it has not run for long.
    pub timer: Option<ThreadTimer>,
    /// When the timer was found that it has armed itself as it started: no tick of its life was
    /// missed.
    pub began_armed_ns: Option<u64>,
    /// Since it last ran, its timer was armed for when it runs again, or could not be.
    pub is_timer_set: bool,
    /// A timer that is never armed: its signal is sent for recordings that preempt the thread.
    pub preempted: Option<ThreadTimer>,
    /// What `preempt.rs` knows of it.
    pub preempt: Preempted,
    /// The mapping its stack pointer was last seen in.
    pub stack_bounds: StackBounds,
    /// When last checked, it ran with the sampling signal blocked: it is sampled in system calls
    /// only.
    pub blocks_signal: bool,
    /// When its signal mask and sandbox were last read.
    pub state_read_ns: u64,
    /// A sandbox may kill it for returning from a signal handler: it is sampled in system calls
    /// only.
    pub is_sandboxed: bool,
    /// The tick of the last observation; 0: there was none.
    pub looked_ns: u64,
    /// The last tick at which its clock alone was read, and stood still.
    pub stood_still_ns: u64,
    /// Where it was blocked lately.
    pub recent: RecentStacks,
    /// How it has left its CPUs.
    pub woken: WokenShare,
    run_delay: RunDelay,
    /// Kept open where there are enough descriptors, else opened for each observation.
    activity: Option<ActivityFile>,
    readable: bool,
    observations: u32,
}

impl ThreadState {
    fn new(tid: u32, keep: bool) -> Option<ThreadState> {
        let cpu_ns = threads::cpu_ns(tid)?;
        let activity = ActivityFile::open(tid);
        // A lack of descriptors is temporary.
        let lasting = [libc::EACCES, libc::EPERM, libc::ENOENT];
        let refused = |error: &io::Error| error.raw_os_error().is_some_and(|code| lasting.contains(&code));
        let readable = !activity.as_ref().is_err_and(refused);
        Some(ThreadState {
            thread: Arc::new(Thread { tid, name: threads::name(tid) }),
            cpu_ns,
            delay_ns: 0,
            ran_ns: 0,
            accounts: [const { None }; MAX_RECORDINGS],
            recordings: 0,
            counted: 0,
            blocked: None,
            timer: None,
            began_armed_ns: None,
            is_timer_set: false,
            preempted: None,
            preempt: Preempted::default(),
            stack_bounds: StackBounds::default(),
            blocks_signal: false,
            state_read_ns: 0,
            is_sandboxed: false,
            looked_ns: 0,
            stood_still_ns: 0,
            recent: RecentStacks::default(),
            woken: WokenShare::default(),
            run_delay: RunDelay::default(),
            readable,
            activity: activity.ok().filter(|_| keep),
            observations: 0,
        })
    }

    /// The thread's id.
    pub fn tid(&self) -> u32 {
        self.thread.tid
    }

    /// What the kernel says it is doing.
    pub fn activity(&self) -> io::Result<Activity> {
        match &self.activity {
            Some(file) => file.read(),
            None if self.readable => ActivityFile::open(self.tid())?.read(),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Whether it has begun so lately that it is sampled at ticks, for recordings that preempt as
    /// well: they know it too late for its first moments.
    pub fn is_young(&self, now_ns: u64) -> bool {
        self.began_armed_ns.is_some_and(|ns| now_ns.saturating_sub(ns) < YOUNG_NS)
    }

    /// Adds to [`ThreadState::delay_ns`] what the kernel has counted since the last call.
    pub fn add_delay_ns(&mut self) {
        let (tid, keep) = (self.tid(), self.activity.is_some());
        self.delay_ns += self.run_delay.more_ns(tid, keep);
    }

    /// Whether the kernel says what this thread is doing.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether it is time to read the name again: at each of the first four calls, later at every
    /// fourth.
    pub fn is_name_old(&mut self) -> bool {
        self.observations = self.observations.wrapping_add(1);
        self.observations <= 4 || self.observations.is_multiple_of(4)
    }

    /// Whether its name has been read again once at the most.
    pub fn is_new(&self) -> bool {
        self.observations <= 1
    }

    /// Reads the name again. `true` if it changed.
    pub fn refresh_name(&mut self) -> bool {
        let name = threads::name(self.tid());
        let changed = !name.is_empty() && name != self.thread.name;
        if changed {
            self.thread = Arc::new(Thread { tid: self.tid(), name });
        }
        changed
    }
}

/// All threads but the agent's own.
#[derive(Debug)]
pub struct Threads {
    directory: TaskDirectory,
    known: FxHashMap<u32, ThreadState>,
    /// Not part of `known`: a sweep reads all of these, and little else of idle threads.
    visits: Vec<(u32, IdleBackoff)>,
    newborn: Vec<u32>,
    /// New threads, when they were found, and how often their names have been read again.
    young: Vec<(u32, u64, usize)>,
    count: Option<u64>,
    tids: Vec<u32>,
    /// Threads that may be the agent's, see [`PROBATION_NS`], and since when they are known.
    suspects: HashMap<u32, u64>,
    /// Threads whose files are kept open.
    keep: usize,
}

impl Threads {
    /// Fails where /proc is not there.
    pub fn new() -> io::Result<Threads> {
        let directory = TaskDirectory::open()?;
        let limit = descriptors::limit();
        let keep = limit.saturating_sub(SPARE_DESCRIPTORS) / FILES_OF_A_THREAD;
        let (known, visits, suspects, newborn, young) = <_>::default();
        Ok(Threads { directory, known, visits, newborn, young, count: None, tids: vec![], suspects, keep })
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ThreadState> {
        self.known.values_mut()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &ThreadState> {
        self.known.values()
    }

    /// The next [`Threads::refresh`] looks for new threads, even if there are as many as before.
    pub fn look_again(&mut self) {
        self.count = None;
    }

    /// One of them.
    pub fn get_mut(&mut self, tid: u32) -> Option<&mut ThreadState> {
        self.known.get_mut(&tid)
    }

    /// The next thread, from `place` on, that the sweep is to observe.
    pub fn next_due(
        &mut self,
        sweep: u64,
        place: &mut usize,
    ) -> Option<(&mut IdleBackoff, &mut ThreadState)> {
        let due = self.visits.get_mut(*place..)?.iter_mut().position(|(_, backoff)| backoff.is_due(sweep))?;
        let (tid, backoff) = self.visits.get_mut(*place + due)?;
        *place += due + 1;
        Some((backoff, self.known.get_mut(tid)?))
    }

    /// The next sweep observes all threads.
    pub fn end_rests(&mut self) {
        self.visits.iter_mut().for_each(|(_, backoff)| backoff.end());
    }

    /// The threads that were found since the last call.
    pub fn take_newborn(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.newborn)
    }

    /// The new threads whose names are to be read again at `now_ns`.
    pub fn take_young(&mut self, now_ns: u64) -> Vec<u32> {
        let mut due = vec![];
        self.young.retain_mut(|(tid, found_ns, reads)| {
            let age_ns = now_ns.saturating_sub(*found_ns);
            let passed = NAMED_BY_NS.iter().filter(|&&age| age <= age_ns).count();
            if passed > *reads {
                due.push(*tid);
                *reads = passed;
            }
            passed < NAMED_BY_NS.len()
        });
        due
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The ids of all threads, also those of the agent. Where the first is the host's only one,
    /// that is all that is said: what lists a directory in `/proc` makes the kernel keep an entry
    /// for each thread. While the last of the agent's threads forgets its own, the parent's
    /// waitpid(2) spins, on a busy machine for tenths of seconds.
    fn list(&mut self) -> io::Result<()> {
        if agent_threads::host_certainly_has_one_thread(|| self.directory.count())
            && !threads::first_has_ended()
        {
            self.tids.clear();
            self.tids.push(process::pid());
            return Ok(());
        }
        self.directory.list(&mut self.tids)
    }

    /// Finds new threads, if the number of threads changed or some are `gone`. Returns the
    /// latter.
    pub fn refresh(&mut self, gone: &[u32]) -> Vec<ThreadState> {
        let ended: Vec<ThreadState> = gone.iter().filter_map(|tid| self.known.remove(tid)).collect();
        if !ended.is_empty() {
            self.visits.retain(|(tid, _)| self.known.contains_key(tid));
        }
        let count = self.directory.count();
        let unchanged =
            ended.is_empty() && self.suspects.is_empty() && count.is_some() && count == self.count;
        if unchanged || self.list().is_err() {
            return ended;
        }
        self.count = count;
        let is_first_list = self.known.is_empty();
        let now = monotonic_ns();
        let before = std::mem::take(&mut self.suspects);
        for &tid in &self.tids {
            if self.known.contains_key(&tid) || own_threads::contains(tid) {
                continue;
            }
            let since = before.get(&tid).copied().unwrap_or(now);
            if now - since < PROBATION_NS && own_threads::has_agent_name(&threads::name(tid)) {
                self.suspects.insert(tid, since);
                continue;
            }
            if let Some(thread) = ThreadState::new(tid, self.known.len() < self.keep) {
                self.known.insert(tid, thread);
                self.visits.push((tid, IdleBackoff::default()));
                self.newborn.push(tid);
                // Of those that were there before, most have their names for long.
                if !is_first_list {
                    self.young.push((tid, now, 0));
                }
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests;
