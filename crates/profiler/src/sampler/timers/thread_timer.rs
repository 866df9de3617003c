//! A thread's timer.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use swipr_os::cpu_timers::CpuTimer;
use swipr_unwind::slot::Ticket;

/// A thread that was blocked for less than one part in so many counts as not blocked: interrupts
/// and hypervisors take time, too.
const BLOCKED_PART: u64 = 8;

/// A moment, by a thread's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    pub ns: u64,
    pub cpu_ns: u64,
    /// How long it had waited for CPUs.
    pub delay_ns: u64,
}

impl Clocks {
    pub fn has_blocked_since(self, then: Clocks) -> bool {
        let passed_ns = self.ns.saturating_sub(then.ns);
        let awake_ns = self.cpu_ns.saturating_sub(then.cpu_ns) + self.delay_ns.saturating_sub(then.delay_ns);
        awake_ns < passed_ns - passed_ns / BLOCKED_PART
    }
}

/// A thread's timer.
#[derive(Debug)]
pub struct ThreadTimer {
    pub(super) timer: CpuTimer,
    pub(super) ticket: Ticket,
    /// Until when it is armed; 0: it is not.
    pub(super) expires_ns: u64,
    /// It is armed while its thread does not run, for however long.
    pub(super) waits: bool,
    /// When it was armed last, and for which recordings.
    pub(super) asked_ns: u64,
    pub(super) recordings: u8,
    /// When the timer was armed and had not expired yet.
    pub(super) armed: Clocks,
    /// Since when the thread is known not to have blocked.
    pub(super) awake_from: Clocks,
    /// See [`ThreadTimer::is_overdue`].
    pub(super) is_overdue: bool,
    /// The clock at arming is sure.
    pub(super) is_clock_sure: bool,
}

impl ThreadTimer {
    /// One that is not armed.
    pub(super) fn new(timer: CpuTimer, ticket: Ticket) -> ThreadTimer {
        ThreadTimer {
            timer,
            ticket,
            expires_ns: 0,
            waits: false,
            asked_ns: 0,
            recordings: 0,
            armed: Clocks::default(),
            awake_from: Clocks::default(),
            is_overdue: false,
            is_clock_sure: false,
        }
    }

    /// Whether it is armed for as long as its thread does not run.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Its slot, if it waits.
    pub fn waiting_ticket(&self) -> Option<Ticket> {
        self.waits.then_some(self.ticket)
    }

    /// Whether it still is if the thread's clock is at `cpu_ns`, and may expire: a thread that has
    /// run for two ticks blocks the signal.
    pub fn may_expire(&self, cpu_ns: u64, tick_ns: u64) -> bool {
        self.waits && cpu_ns.saturating_sub(self.armed.cpu_ns) <= 2 * tick_ns
    }

    /// Whether the sampler waits for its thread to be hit.
    pub fn is_armed(&self) -> bool {
        self.expires_ns != 0
    }

    /// Arms it to expire at the next tick, for no recording yet.
    pub(super) fn arm(&mut self) -> bool {
        (self.recordings, self.is_overdue) = (0, false);
        let Some(slot) = self.ticket.slot() else { return false };
        slot.is_for_sweeps.store(true, Relaxed);
        slot.is_armed.store(true, SeqCst);
        self.timer.arm()
    }

    /// Disarms it, unless the thread forks, and counts on it.
    pub(super) fn disarm(&mut self) {
        (self.expires_ns, self.is_overdue) = (0, false);
        let slot = self.ticket.slot();
        slot.inspect(|slot| slot.is_armed.store(false, SeqCst));
        self.timer.disarm();
        if slot.is_some_and(|slot| slot.fork_from.load(SeqCst) != 0) {
            self.timer.arm();
        }
    }

    /// Whether the thread has run for longer than a tick since it was armed, has not blocked, and
    /// was not hit: it is in a system call that long, or shares its CPU. The hit that comes stands
    /// for that time.
    pub fn is_overdue(&self) -> bool {
        self.is_overdue
    }

    /// Whether the thread is in fork(2), where the C library blocks all signals.
    pub(super) fn is_forking(&self) -> bool {
        self.ticket.slot().is_some_and(|slot| slot.fork_from.load(Relaxed) != 0)
    }
}
