//! A thread's timer.

use super::{TICK_LATE_NS, hit_within_ns};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use swipr_os::cpu_timers::{CpuTimer, OVERRUN_NS};
use swipr_unwind::slot::{Slot, Ticket};

/// A thread that was blocked for less than one part in so many counts as not blocked: interrupts
/// and hypervisors take time, too.
const BLOCKED_PART: u64 = 8;
/// A thread that a tick has found leaves its stack within so much CPU time of its next turn.
const AT_ONCE_NS: u64 = TICK_LATE_NS;

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

/// What was seen of a thread that was awake and was not hit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unhit {
    from_ns: u64,
    to: Clocks,
    /// It waited for a CPU at `to`. If it is hit before it runs on, a tick had found it between the
    /// two.
    waits: bool,
    /// It had run for longer than a tick: only in a system call is a thread not hit then.
    is_in_call: bool,
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
    /// Since the timer was armed.
    pub(super) unhit: Option<Unhit>,
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
            unhit: None,
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

    /// Arms it to expire at the next tick, for no recording yet. It expires again at each tick
    /// until the hit is taken: only such a timer says how long its thread has run.
    pub(super) fn arm(&mut self) -> bool {
        (self.recordings, self.is_overdue, self.unhit) = (0, false, None);
        let Some(slot) = self.ticket.slot() else { return false };
        slot.is_for_sweeps.store(true, Relaxed);
        slot.is_armed.store(true, SeqCst);
        self.timer.arm_counting()
    }

    /// Disarms it, unless the thread forks, and counts on it.
    pub(super) fn disarm(&mut self) {
        (self.expires_ns, self.is_overdue, self.unhit) = (0, false, None);
        self.ticket.slot().inspect(|slot| self.stop(slot));
    }

    /// Has it expire no more, unless the thread forks.
    pub(super) fn stop(&self, slot: &Slot) {
        slot.is_armed.store(false, SeqCst);
        self.timer.disarm();
        if slot.fork_from.load(SeqCst) != 0 {
            self.timer.arm();
        }
    }

    /// Whether the thread has run for longer than a tick since it was armed, has not blocked, and
    /// was not hit: it is in a system call that long, or shares its CPU. The hit that comes stands
    /// for that time.
    pub fn is_overdue(&self) -> bool {
        self.is_overdue
    }

    /// The thread is awake, and was not hit since the timer was armed.
    pub(super) fn note_unhit(&mut self, now: Clocks, waits: bool) {
        let from_ns = match self.unhit {
            None => self.armed.ns,
            Some(Unhit { to, .. }) if waits && to.cpu_ns != now.cpu_ns && to.ns < self.asked_ns => to.ns,
            Some(_) => return,
        };
        let passed_ns = now.ns.saturating_sub(self.armed.ns);
        let used_ns = now.cpu_ns.saturating_sub(self.armed.cpu_ns);
        let is_in_call = used_ns >= passed_ns - passed_ns / BLOCKED_PART;
        self.unhit = Some(Unhit { from_ns, to: now, waits, is_in_call });
    }

    /// Whether several ticks may have found the thread, if it was hit then.
    pub(super) fn is_late(&self, hit_ns: u64) -> bool {
        self.asked_ns != self.armed.ns || hit_ns.saturating_sub(self.armed.ns) >= hit_within_ns()
    }

    /// The thread's clock when it was hit, if its timer had so many overruns.
    pub(super) fn hit_cpu_ns(&self, overruns: u32) -> u64 {
        self.armed.cpu_ns + u64::from(overruns) * OVERRUN_NS
    }

    /// Whether a thread that was hit late was in a system call since an earlier tick. Else a tick
    /// would have hit it after less CPU time.
    pub(super) fn was_in_call(&self, hit_cpu_ns: u64) -> bool {
        let ran_ns = |from_ns| hit_cpu_ns.saturating_sub(from_ns);
        match self.unhit {
            Some(unhit) => unhit.is_in_call || ran_ns(unhit.to.cpu_ns) > hit_within_ns(),
            None => ran_ns(self.armed.cpu_ns) > 2 * hit_within_ns(),
        }
    }

    /// When the tick was that has found the thread, from and to, if it was hit late.
    pub(super) fn found_ns(&self, hit_ns: u64, hit_cpu_ns: u64, was_in_call: bool) -> (u64, u64) {
        let is_first = hit_ns.saturating_sub(self.armed.ns) < hit_within_ns();
        match self.unhit {
            _ if was_in_call => (self.awake_from.ns, hit_ns),
            Some(Unhit { from_ns, to, waits: true, .. }) if hit_cpu_ns < to.cpu_ns + AT_ONCE_NS => {
                (from_ns, to.ns)
            }
            _ if is_first => (self.armed.ns, hit_ns),
            _ => (hit_ns, hit_ns),
        }
    }

    /// Whether the thread is in fork(2), where the C library blocks all signals.
    pub(super) fn is_forking(&self) -> bool {
        self.ticket.slot().is_some_and(|slot| slot.fork_from.load(Relaxed) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::timers::acquire_slot;
    use swipr_os::{process, signals, threads};
    use swipr_unwind::slot::{self, StackBounds};

    const MS: u64 = 1_000_000;

    fn clocks(ms: u64, cpu_ms: u64) -> Clocks {
        Clocks { ns: ms * MS, cpu_ns: cpu_ms * MS, delay_ns: 0 }
    }

    /// A timer of this thread that was armed at 100 ms.
    fn armed() -> ThreadTimer {
        let (tid, ticket) = (process::tid(), acquire_slot(0, StackBounds::default()).unwrap());
        let timer = CpuTimer::new(threads::cpu_clock(tid), tid, signals::SAMPLING, 0).unwrap();
        let armed = clocks(100, 5);
        ThreadTimer { armed, asked_ns: armed.ns, ..ThreadTimer::new(timer, ticket) }
    }

    /// Regression: a thread that was preempted before the picked tick was hit at the first tick of
    /// its next turn, as if a sweep had picked that. Functions at the end of turns had 30 % of 25.
    #[test]
    fn a_thread_that_waited_for_a_cpu_was_found_by_the_picked_tick_if_it_is_hit_at_once() {
        let mut timer = armed();
        assert!(!timer.is_late(103 * MS) && timer.is_late(105 * MS));
        timer.note_unhit(clocks(105, 7), true);
        let found_ns = |timer: &ThreadTimer, overruns| {
            let hit_cpu_ns = timer.hit_cpu_ns(overruns);
            timer.found_ns(120 * MS, hit_cpu_ns, timer.was_in_call(hit_cpu_ns))
        };
        assert_eq!(found_ns(&timer, 2_005), (100 * MS, 105 * MS));
        assert_eq!(found_ns(&timer, 4_900), (120 * MS, 120 * MS));
        // It has not run since, then it has, and a sweep has armed its timer meanwhile.
        timer.note_unhit(clocks(109, 7), true);
        timer.asked_ns = 110 * MS;
        timer.note_unhit(clocks(114, 8), true);
        assert_eq!(found_ns(&timer, 3_005), (105 * MS, 114 * MS));
        slot::release(timer.ticket);
    }

    #[test]
    fn a_thread_that_runs_for_longer_than_a_tick_without_a_hit_is_in_a_system_call() {
        let mut timer = ThreadTimer { awake_from: clocks(100, 5), ..armed() };
        timer.note_unhit(clocks(105, 7), false);
        let tick_ns = hit_within_ns();
        assert_eq!([tick_ns, tick_ns + 1].map(|ns| timer.was_in_call(7 * MS + ns)), [false, true]);
        assert_eq!(timer.found_ns(120 * MS, 9 * MS, true), (100 * MS, 120 * MS));
        timer.unhit = None;
        timer.note_unhit(clocks(105, 10), false);
        assert!(timer.was_in_call(10 * MS));
        slot::release(timer.ticket);
    }
}
