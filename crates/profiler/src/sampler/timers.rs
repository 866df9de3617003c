//! Timers on the threads' CPU clocks, and the slots in which their handlers leave stacks.
//!
//! A thread that ran lately has a timer. A sweep, at a random moment, arms it to expire at the next
//! kernel tick at which the thread runs. It is disarmed one tick later. So each sweep picks one
//! kernel tick, and hits the threads that run then. This does not depend on what a thread does:
//! none of its moments is hit more often than others.
//!
//! A tick raises the signal only as the thread returns to user mode. The timer stays armed while
//! that may be still to come: the thread waits for a CPU, or is in a system call that computes for
//! longer than a tick, or in fork(2), until the C library lets signals through again. To arm the
//! timer again would undo what the tick has done. The hit at the end of a call represents all the
//! ticks that sweeps would have picked.
//!
//! The kernel does not say whether a tick has found a thread that waits for a CPU. Linux gives and
//! ends turns at ticks, so a timer that stays armed hits the next turn at its first tick, a whole
//! tick after its start. The signal says by the timer's overruns how long the thread has run. If it
//! has not run on, the picked tick had found it. Else another tick has, and the hit counts only if
//! a sweep has picked that one.
//!
//! Of many threads most do not run. Their timers stay armed until they run. The first tick after
//! the pause then hits the thread for certain. Only hits at ticks that a sweep has picked count.
//! New threads arm such a timer themselves, as they start.

mod hit_at;
mod hits;
mod life;
mod new_threads;
mod thread_timer;
mod tick_scale;

pub use hit_at::HitAt;
pub use hits::TimerHit;
pub use life::acquire_slot;
pub use new_threads::LastHit;
pub use thread_timer::ThreadTimer;

use super::threads::ThreadState;
use crate::counters::AgentCounters;
use crate::interpreters::Interpreters;
use crate::signal_exclusion;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use swipr_os::cpu_timers::kernel_tick_ns;
use swipr_os::threads::Sandbox;
use swipr_os::{process, signals, threads};
use swipr_unwind::slot::{self, Ticket};
use thread_timer::Clocks;
use tick_scale::TickScale;

/// How long a thread that was hit may wait for a CPU before its signal is raised.
const PUT_OFF_NS: u64 = 1_000_000_000;
/// So many timers are made for threads that do not run. Each has a slot and counts as a queued
/// signal of the user.
const MAX_WAITING: usize = 512;
/// How late a kernel tick may be.
const TICK_LATE_NS: u64 = 200_000;
/// A thread's timer is armed within this time after its clock was read, or the sampler was held up.
const HELD_UP_NS: u64 = 250_000;

/// What all threads' timers share.
#[derive(Debug)]
pub struct Timers {
    interpreters: Arc<Interpreters>,
    scale: TickScale,
    valid_ns: u64,
    /// How many more timers may be made; less than 0: so many are to go. Each counts as a queued
    /// signal of the user (`RLIMIT_SIGPENDING`). Where no more can be queued, glibc's setuid(3)
    /// does not reach the other threads, and they keep what the program gives up.
    room: i64,
    /// How many there are.
    made: usize,
    /// The sandbox in which the sampler's system calls work.
    sandbox: Sandbox,
    /// A thread was found in another one: what it starts may not make timers.
    has_met_sandbox: bool,
    /// Slots whose timers are gone but to which a handler still writes.
    leaving: Vec<Ticket>,
    /// Threads whose timers are armed, and when to check for their stacks at the latest.
    armed: Vec<u32>,
    expires_ns: u64,
    /// One of them was hit and waits for a CPU.
    is_any_put_off: bool,
    /// The slots that are offered to new threads have room for an interpreter's frames.
    offers_have_room: bool,
}

/// A running thread is hit within this time.
pub fn hit_within_ns() -> u64 {
    kernel_tick_ns() + TICK_LATE_NS
}

impl Timers {
    /// No timer yet.
    pub fn new(interpreters: Arc<Interpreters>) -> Timers {
        let sandbox = |tid| threads::signal_state(tid).map(|state| state.sandbox).unwrap_or_default();
        // The sampler's own file is read only if the first thread is in a sandbox, see
        // `process::open_own`. Else a filter that the sampler has from the thread that started it
        // counts as one of the program's.
        let first = sandbox(process::pid());
        Timers {
            interpreters,
            scale: TickScale::default(),
            valid_ns: hit_within_ns(),
            room: i64::MAX,
            made: 0,
            sandbox: if first == Sandbox::default() { first } else { sandbox(process::tid()) },
            has_met_sandbox: false,
            leaving: vec![],
            armed: vec![],
            expires_ns: 0,
            is_any_put_off: false,
            offers_have_room: false,
        }
    }

    /// Arms the thread's timer for these recordings: the next kernel tick hits the thread, if it
    /// runs then. `false`: it cannot be armed.
    pub fn arm(
        &mut self,
        thread: &mut ThreadState,
        recordings: u8,
        now_ns: u64,
        counters: &AgentCounters,
    ) -> bool {
        let passed_over = |timer: &ThreadTimer| {
            (timer.is_armed() || timer.waits)
                && !slot::is_done(timer.ticket)
                && !timer.is_overdue
                && thread.cpu_ns.saturating_sub(timer.armed.cpu_ns) > 2 * self.valid_ns
        };
        if thread.timer.as_ref().is_some_and(passed_over) {
            thread.state_read_ns = 0; // it may have blocked the signal
        }
        if !self.can_be_asked(thread, now_ns) {
            self.remove(thread);
            return false;
        }
        let tid = thread.tid();
        let armed = signal_exclusion::unless_excluded(tid, || {
            if thread.timer.is_none() {
                thread.timer = self.new_timer(thread);
                counters.refused.add(u64::from(thread.timer.is_none() && threads::cpu_ns(tid).is_some()));
            }
            let timer = thread.timer.as_mut()?;
            timer.waits = false;
            let is_armed = timer.is_armed() && !slot::is_done(timer.ticket);
            if !is_armed {
                timer.armed = Clocks { ns: now_ns, cpu_ns: thread.cpu_ns, delay_ns: thread.delay_ns };
                timer.awake_from = timer.armed;
                timer.arm().then(|| counters.signals.add(1))?;
                // Else the sampler was held up, as by a fork of the process, which locks all
                // memory: the clock is not that of this moment.
                timer.is_clock_sure = process::monotonic_ns().saturating_sub(now_ns) < HELD_UP_NS;
            }
            let is_new = !timer.is_armed();
            timer.recordings |= recordings;
            (timer.asked_ns, timer.expires_ns) = (now_ns, now_ns + self.valid_ns);
            Some(is_new)
        });
        match armed {
            Some(Some(is_new)) => {
                if is_new {
                    self.armed.push(tid);
                }
                self.expires_ns = now_ns + self.valid_ns;
                true
            }
            // The thread is excluded, there is no timer, or the timer is that of an ended thread
            // whose id is another one's now.
            Some(None) | None => {
                self.remove(thread);
                false
            }
        }
    }

    /// Arms the timer of a thread that does not run. It stays armed until the thread runs at a
    /// kernel tick, however much later: see [`Timers::take_waited`]. `false`: it is still armed for
    /// the last sweep.
    pub fn arm_waiting(&mut self, thread: &mut ThreadState, now_ns: u64, counters: &AgentCounters) -> bool {
        if thread.timer.as_ref().is_some_and(ThreadTimer::is_armed) {
            return false;
        }
        if thread.timer.is_none() && self.made >= MAX_WAITING || !self.can_be_asked(thread, now_ns) {
            return true;
        }
        signal_exclusion::unless_excluded(thread.tid(), || {
            if thread.timer.is_none() {
                thread.timer = self.new_timer(thread);
            }
            let now = Clocks { ns: now_ns, cpu_ns: thread.cpu_ns, delay_ns: thread.delay_ns };
            let timer = thread.timer.as_mut();
            if let Some(timer) = timer.filter(|timer| !slot::is_done(timer.ticket)) {
                timer.ticket.slot().inspect(|slot| slot.is_armed.store(true, SeqCst));
                timer.waits = timer.timer.arm();
                (timer.armed, timer.awake_from) = (now, now);
                counters.signals.add(u64::from(timer.waits));
            }
        });
        true
    }

    /// Whether the sampler may send the signal: it must not be in a stricter sandbox than when it
    /// began.
    pub fn may_raise(&self) -> bool {
        let state = threads::signal_state(process::tid());
        state.is_some_and(|state| !state.sandbox.is_stricter_than(self.sandbox))
    }

    /// Signals a thread that was preempted when its clock was at `cpu_ns`, for these recordings.
    /// The signal is that of a second timer, which is never armed (`preempt.rs`). `false`: the
    /// thread cannot be signalled, or has not answered the last signal yet.
    pub fn raise(
        &mut self,
        thread: &mut ThreadState,
        recordings: u8,
        cpu_ns: u64,
        counters: &AgentCounters,
    ) -> bool {
        let tid = thread.tid();
        let sent = signal_exclusion::unless_excluded_from_signals(tid, || {
            if thread.preempted.is_none() {
                thread.preempted = self.new_timer(thread);
                counters.refused.add(u64::from(thread.preempted.is_none()));
            }
            let timer = thread.preempted.as_mut().filter(|timer| !timer.is_armed())?;
            let now_ns = process::monotonic_ns();
            (timer.asked_ns, timer.expires_ns) = (now_ns, now_ns + PUT_OFF_NS);
            (timer.recordings, timer.armed) = (recordings, Clocks { ns: now_ns, cpu_ns, delay_ns: 0 });
            timer
                .timer
                .raise(tid, signals::SAMPLING, timer.ticket.to_value())
                .then(|| counters.signals.add(1))
        });
        sent.flatten().is_some()
    }

    /// When to check for stacks at the latest; `None`: no timer is armed.
    pub fn expire_at(&self) -> Option<u64> {
        (!self.armed.is_empty()).then_some(self.expires_ns)
    }

    /// Takes the list of threads with armed timers, for [`Timers::take`]. The threads whose timers
    /// still are go to [`Timers::put_back`].
    pub fn take_armed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.armed)
    }

    /// Puts back the threads whose timers are still armed. If their time is over, those that wait
    /// for a CPU are checked one tick later, not at once: the sampler would use the very CPU that
    /// they wait for. Those that are overdue are checked at the next sweep.
    pub fn put_back(&mut self, armed: Vec<u32>, now_ns: u64) {
        self.armed = armed;
        if self.expires_ns <= now_ns {
            self.expires_ns = if self.is_any_put_off { now_ns + self.valid_ns } else { u64::MAX };
        }
        self.is_any_put_off = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the sampler checked without a pause whether a thread that waited for a CPU had
    /// been hit. On an overloaded machine that took a tenth of a CPU.
    #[test]
    fn a_hit_that_was_put_off_is_looked_for_one_tick_later() {
        let mut timers = Timers::new(Arc::default());
        let now_ns = process::monotonic_ns();
        assert_eq!(timers.expire_at(), None);
        timers.is_any_put_off = true;
        timers.put_back(vec![1], now_ns);
        assert_eq!(timers.expire_at(), Some(now_ns + hit_within_ns()));
        let armed = timers.take_armed();
        timers.put_back(armed, now_ns + 1);
        assert_eq!(timers.expire_at(), Some(now_ns + hit_within_ns()), "it has not expired");
        let armed = timers.take_armed();
        timers.put_back(armed, now_ns + 2 * hit_within_ns());
        assert_eq!(timers.expire_at(), Some(u64::MAX), "none waits for a CPU");
    }
}
