//! What is known of a thread.

use super::recent_stacks::RecentStacks;
use super::woken_share::WokenShare;
use crate::interpreters::Interpreters;
use crate::sampler::account::Account;
use crate::sampler::preempt::Preempted;
use crate::sampler::timers::ThreadTimer;
use crate::stack::RawStack;
use std::io;
use std::sync::Arc;
use swipr_formats::model::{State, Thread};
use swipr_os::run_delay::RunDelay;
use swipr_os::threads::{self, Activity, ActivityFile};
use swipr_server::recording::MAX_RECORDINGS;
use swipr_unwind::slot::{StackBounds, Ticket};

/// See [`ThreadState::is_young`].
const YOUNG_NS: u64 = 250_000_000;

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
    /// How often it has got a CPU, since it is known.
    pub turns: u64,
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
    /// Its CPU timer, unless it has not run for long.
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
    /// Whether the last sweep has found it running, if it was looked at, and when.
    pub seen_running: Option<(u64, bool)>,
    /// When last checked, it ran with the sampling signal blocked: it is sampled in system calls
    /// only.
    pub blocks_signal: bool,
    /// When its signal mask and sandbox were last read.
    pub state_read_ns: u64,
    /// A sandbox may kill it for returning from a signal handler: it is sampled in system calls
    /// only.
    pub is_sandboxed: bool,
    /// The tick of the last observation; 0: there was none.
    pub observed_ns: u64,
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
    /// Its CPU clock when its name was last read.
    named_cpu_ns: u64,
    /// The name is the program's own.
    has_own_name: bool,
}

impl ThreadState {
    pub(super) fn new(tid: u32, keep: bool) -> Option<ThreadState> {
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
            turns: 0,
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
            seen_running: None,
            blocks_signal: false,
            state_read_ns: 0,
            is_sandboxed: false,
            observed_ns: 0,
            stood_still_ns: 0,
            recent: RecentStacks::default(),
            woken: WokenShare::default(),
            run_delay: RunDelay::default(),
            readable,
            activity: activity.ok().filter(|_| keep),
            observations: 0,
            named_cpu_ns: cpu_ns,
            has_own_name: false,
        })
    }

    /// The thread's id.
    pub fn tid(&self) -> u32 {
        self.thread.tid
    }

    /// The slot of its timer, if that waits until the thread runs.
    pub fn waiting_ticket(&self) -> Option<Ticket> {
        self.timer.as_ref().and_then(ThreadTimer::waiting_ticket)
    }

    /// What the kernel says it is doing.
    pub fn activity(&self) -> io::Result<Activity> {
        match &self.activity {
            Some(file) => file.read(),
            None if self.readable => ActivityFile::open(self.tid())?.read(),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Whether it has started so lately that it is sampled at ticks, for recordings that preempt as
    /// well: they know it too late for its first moments.
    pub fn is_young(&self, now_ns: u64) -> bool {
        self.began_armed_ns.is_some_and(|ns| now_ns.saturating_sub(ns) < YOUNG_NS)
    }

    /// Adds to [`ThreadState::delay_ns`] and [`ThreadState::turns`] what the kernel has counted
    /// since the last call.
    pub fn add_delay(&mut self) {
        let (tid, keep) = (self.tid(), self.activity.is_some());
        let more = self.run_delay.more(tid, keep);
        self.delay_ns += more.ns;
        self.turns += more.turns;
    }

    /// Whether the kernel says what this thread is doing.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether it is time to read the name again: at each of the first four calls, later at every
    /// fourth if the thread has run since, as it names itself, and at every sixteenth.
    pub fn is_name_old(&mut self) -> bool {
        self.observations = self.observations.wrapping_add(1);
        let every = if self.cpu_ns == self.named_cpu_ns { 16 } else { 4 };
        self.observations <= 4 || self.observations.is_multiple_of(every)
    }

    /// Whether its name has been read again once at the most.
    pub fn is_new(&self) -> bool {
        self.observations <= 1
    }

    /// Reads the name again: the program's own, or what the kernel has. `true` if it changed.
    pub fn refresh_name(&mut self, interpreters: &Interpreters) -> bool {
        self.named_cpu_ns = self.cpu_ns;
        match self.take_own_name(interpreters) {
            Some(changed) => changed,
            None if self.has_own_name => false, // it cannot be read at any moment
            None => self.set_name(threads::name(self.tid())),
        }
    }

    /// Takes the program's own name, and returns whether it is another one; `None`: there is none.
    pub fn take_own_name(&mut self, interpreters: &Interpreters) -> Option<bool> {
        let name = interpreters.thread_name(self.tid())?;
        self.has_own_name = true;
        Some(self.set_name(name))
    }

    fn set_name(&mut self, name: String) -> bool {
        let changed = !name.is_empty() && name != self.thread.name;
        if changed {
            self.thread = Arc::new(Thread { tid: self.tid(), name });
        }
        changed
    }
}
