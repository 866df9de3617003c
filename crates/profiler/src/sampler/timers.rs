//! Timers on the threads' CPU clocks, and the slots in which their handlers leave stacks.
//!
//! A thread that ran lately has a timer. A sweep, at a random moment, arms it to expire at the next
//! kernel tick at which the thread runs. It is disarmed one tick later. So each sweep picks one
//! kernel tick, and hits the threads that run then. This does not depend on what a thread does:
//! none of its moments is hit more often than others.
//!
//! Of many threads most do not run. Their timers stay armed until they run. The first tick after
//! the pause then hits the thread for certain. As many of these hits are kept, at random, as there
//! are at other ticks.

use super::threads::ThreadState;
use crate::counters::AgentCounters;
use crate::interpreters::Interpreters;
use crate::mappings::Tables;
use crate::signal_exclusion;
use crate::stack::RawStack;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use swipr_os::cpu_timers::{CpuTimer, kernel_tick_ns};
use swipr_os::threads::{Activity, Sandbox};
use swipr_os::{memory, process, signals, threads, timer_delivery};
use swipr_unwind::arch;
use swipr_unwind::slot::{self, CHUNK_BYTES, CHUNKS, StackBounds, Ticket};
use swipr_unwind::walk::Stop;

/// How long a reading of a thread's signal mask and sandbox holds. The thread may enter a sandbox
/// by a system call that the agent does not see.
const STATE_AGAIN_NS: u64 = 1_000_000_000;
/// How long a thread that was hit may wait for a CPU before its signal is raised.
const PUT_OFF_NS: u64 = 1_000_000_000;
/// So many timers are made for threads that do not run. Each has a slot and counts as a queued
/// signal of the user.
const MAX_WAITING: usize = 512;
/// How late a kernel tick may be.
const TICK_LATE_NS: u64 = 200_000;

/// Converts [`arch::ticks`] to nanoseconds, by comparison with the system's clock since this was
/// made.
#[derive(Debug)]
struct TickScale {
    started_ticks: u64,
    started_ns: u64,
}

impl Default for TickScale {
    fn default() -> TickScale {
        TickScale { started_ticks: arch::ticks(), started_ns: process::monotonic_ns() }
    }
}

impl TickScale {
    fn ns(&self, ticks: u64) -> u64 {
        let passed = arch::ticks().wrapping_sub(self.started_ticks).max(1);
        let ns = process::monotonic_ns().saturating_sub(self.started_ns);
        (u128::from(ticks) * u128::from(ns) / u128::from(passed)) as u64
    }
}

/// A thread's timer.
#[derive(Debug)]
pub struct ThreadTimer {
    timer: CpuTimer,
    ticket: Ticket,
    /// Until when it is armed; 0: it is not.
    expires_ns: u64,
    /// It is armed while its thread does not run, for however long.
    waits: bool,
    /// When it was armed last, and for which recordings.
    asked_ns: u64,
    recordings: u8,
    /// When the timer was armed and had not expired yet, and the thread's CPU clock then.
    armed_ns: u64,
    armed_cpu_ns: u64,
}

/// What raised a timer's signal.
#[derive(Clone, Copy, Debug)]
enum Raised {
    /// The kernel: the timer has expired.
    AtTick,
    /// The sampler, see [`Timers::raise`].
    ByUs,
}

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
    /// Slots whose timers are gone but to which a handler still writes.
    leaving: Vec<Ticket>,
    /// Threads whose timers are armed, and when to check for their stacks at the latest.
    armed: Vec<u32>,
    expires_ns: u64,
}

/// A running thread was hit.
#[derive(Debug)]
pub struct TimerHit {
    /// The recordings that it is for.
    pub recordings: u8,
    /// When the timer was armed or the signal sent.
    pub asked_ns: u64,
    /// When the thread was hit.
    pub hit_ns: u64,
    /// Its CPU clock then, as far as known: as if it had run since.
    pub cpu_ns: u64,
    /// Where.
    pub stack: Arc<RawStack>,
}

/// Whether a thread whose clock is at `cpu_ns` waits for a CPU.
fn is_put_off(thread: &ThreadState, cpu_ns: u64) -> bool {
    let waits = match thread.activity() {
        Ok(activity) => activity == Activity::Running,
        Err(_) => threads::is_awake(thread.tid()),
    };
    waits && threads::cpu_ns(thread.tid()) == Some(cpu_ns)
}

/// A running thread is hit within this time.
pub fn hit_within_ns() -> u64 {
    kernel_tick_ns() + TICK_LATE_NS
}

/// A slot for a thread's timer. To be called by the sampler only.
pub fn acquire_slot(tid: u32, bounds: StackBounds) -> Option<Ticket> {
    let hint = tid as usize;
    slot::acquire(hint, bounds).or_else(|| {
        let chunk = (0..CHUNKS).find(|&chunk| !slot::has_chunk(chunk))?;
        let memory = memory::map_forever(CHUNK_BYTES)?;
        // SAFETY: zeroed pages, mapped for ever, given away here.
        unsafe { slot::add_chunk(chunk, memory) };
        slot::acquire(hint, bounds)
    })
}

impl ThreadTimer {
    /// Whether it is armed for as long as its thread does not run.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Whether it still is if the thread's clock is at `cpu_ns`, and may expire: a thread that has
    /// run for two ticks blocks the signal.
    pub fn may_expire(&self, cpu_ns: u64, tick_ns: u64) -> bool {
        self.waits && cpu_ns.saturating_sub(self.armed_cpu_ns) <= 2 * tick_ns
    }
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
            leaving: vec![],
            armed: vec![],
            expires_ns: 0,
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
            (timer.expires_ns != 0 || timer.waits)
                && !slot::is_done(timer.ticket)
                && thread.cpu_ns.saturating_sub(timer.armed_cpu_ns) > 2 * self.valid_ns
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
            let is_armed = timer.expires_ns != 0 && !slot::is_done(timer.ticket);
            if !is_armed {
                timer.recordings = 0;
                (timer.armed_ns, timer.armed_cpu_ns) = (now_ns, thread.cpu_ns);
                if !timer.timer.arm() {
                    return None;
                }
                counters.signals.add(1);
            }
            let is_new = timer.expires_ns == 0;
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
        if thread.timer.as_ref().is_some_and(|timer| timer.expires_ns != 0) {
            return false;
        }
        if thread.timer.is_none() && self.made >= MAX_WAITING || !self.can_be_asked(thread, now_ns) {
            return true;
        }
        signal_exclusion::unless_excluded(thread.tid(), || {
            if thread.timer.is_none() {
                thread.timer = self.new_timer(thread);
            }
            let (armed_cpu_ns, timer) = (thread.cpu_ns, thread.timer.as_mut());
            if let Some(timer) = timer.filter(|timer| !slot::is_done(timer.ticket)) {
                timer.waits = timer.timer.arm();
                (timer.armed_ns, timer.armed_cpu_ns) = (now_ns, armed_cpu_ns);
                counters.signals.add(u64::from(timer.waits));
            }
        });
        true
    }

    /// The stack that a thread has left since [`Timers::arm_waiting`].
    pub fn take_waited(
        &mut self,
        thread: &mut ThreadState,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> Option<TimerHit> {
        let timer = thread.timer.as_mut().filter(|timer| timer.waits && slot::is_done(timer.ticket))?;
        timer.waits = false;
        let armed_cpu_ns = timer.armed_cpu_ns;
        let hit = self.answer(thread, Raised::AtTick, tables, counters)?;
        // It had run for longer before: it blocked the signal, and was hit as it unblocked it.
        let since_ns = process::monotonic_ns().saturating_sub(hit.hit_ns);
        let used_ns = thread.cpu_ns.saturating_sub(since_ns).saturating_sub(armed_cpu_ns);
        (used_ns <= 2 * self.valid_ns).then_some(hit)
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
        let sent = signal_exclusion::unless_excluded(tid, || {
            if thread.preempted.is_none() {
                thread.preempted = self.new_timer(thread);
                counters.refused.add(u64::from(thread.preempted.is_none()));
            }
            let timer = thread.preempted.as_mut().filter(|timer| timer.expires_ns == 0)?;
            let now_ns = process::monotonic_ns();
            (timer.asked_ns, timer.expires_ns) = (now_ns, now_ns + PUT_OFF_NS);
            (timer.recordings, timer.armed_ns, timer.armed_cpu_ns) = (recordings, now_ns, cpu_ns);
            timer
                .timer
                .raise(tid, signals::SAMPLING, timer.ticket.to_value())
                .then(|| counters.signals.add(1))
        });
        sent.flatten().is_some()
    }

    /// The stack left by a thread to which [`Timers::raise`] sent a signal, and whether it is still
    /// to come.
    pub fn take_raised(
        &mut self,
        thread: &mut ThreadState,
        now_ns: u64,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> (Option<TimerHit>, bool) {
        let Some(timer) = &mut thread.preempted else { return (None, false) };
        if slot::is_done(timer.ticket) {
            timer.expires_ns = 0;
            return (self.answer(thread, Raised::ByUs, tables, counters), false);
        }
        let cpu_ns = threads::cpu_ns(thread.thread.tid).unwrap_or(u64::MAX);
        let stays = now_ns < timer.expires_ns && cpu_ns.saturating_sub(timer.armed_cpu_ns) <= self.valid_ns;
        if !stays {
            // The thread has blocked the signal, or has had no CPU for long: it would answer from
            // another place.
            thread.state_read_ns = 0;
            let late = thread.preempted.take();
            self.retire(late);
        }
        (None, stays)
    }

    fn new_timer(&mut self, thread: &ThreadState) -> Option<ThreadTimer> {
        if self.room <= 0 {
            return None;
        }
        let ticket = acquire_slot(thread.tid(), thread.stack_bounds)?;
        let Ok(timer) = CpuTimer::new(
            timer_delivery::clock(thread.tid()),
            thread.tid(),
            signals::SAMPLING,
            ticket.to_value(),
        ) else {
            slot::release(ticket);
            return None;
        };
        let slot = ticket.slot()?;
        self.interpreters.prepare(slot, thread.tid());
        slot.set_owner(thread.tid(), timer.id());
        self.room -= 1;
        self.made += 1;
        let (expires_ns, waits, asked_ns, recordings, armed_ns, armed_cpu_ns) = Default::default();
        Some(ThreadTimer { timer, ticket, expires_ns, waits, asked_ns, recordings, armed_ns, armed_cpu_ns })
    }

    /// Whether a running thread is known not to block the signal. It may block all by a
    /// system call of its own; a thread that has just begun does so for a moment. While a handler
    /// runs, the kernel shows its mask, in which all signals are blocked.
    pub fn can_be_asked(&mut self, thread: &mut ThreadState, now_ns: u64) -> bool {
        let is_old = now_ns.saturating_sub(thread.state_read_ns) >= STATE_AGAIN_NS;
        let timers = [&thread.timer, &thread.preempted];
        let is_answering = timers.into_iter().flatten().any(|timer| slot::is_begun(timer.ticket));
        if !is_answering && (thread.blocks_signal || is_old) {
            thread.state_read_ns = now_ns;
            self.read_state(thread);
        }
        !thread.blocks_signal && !thread.is_sandboxed
    }

    /// Reads a thread's signal mask and sandbox, and how many signals its user may queue. If more
    /// are queued than half of that, the thread's timers go.
    fn read_state(&mut self, thread: &mut ThreadState) {
        let state = threads::signal_state(thread.tid()).unwrap_or_default();
        thread.is_sandboxed = state.sandbox.is_stricter_than(self.sandbox);
        thread.blocks_signal = state.is_blocked;
        self.room = state.queue_room.unwrap_or(self.room);
        if self.room < 0 {
            self.remove(thread);
        }
    }

    /// Removes a thread's timers.
    pub fn remove(&mut self, thread: &mut ThreadState) {
        self.retire(thread.timer.take());
        self.retire(thread.preempted.take());
    }

    fn retire(&mut self, timer: Option<ThreadTimer>) {
        let Some(ThreadTimer { ticket, timer, .. }) = timer else { return };
        // The timer's number may be that of a host's timer from now on: no thread may disarm it.
        if let Some(slot) = ticket.slot() {
            slot.set_owner(0, 0);
        }
        drop(timer);
        self.room = self.room.saturating_add(1);
        self.made = self.made.saturating_sub(1);
        self.leaving.push(ticket);
        self.leaving.retain(|&ticket| !slot::release(ticket));
    }

    /// When to check for stacks at the latest; `None`: no timer is armed.
    pub fn expire_at(&self) -> Option<u64> {
        (!self.armed.is_empty()).then_some(self.expires_ns)
    }

    /// Takes the list of threads with armed timers, for [`Timers::take`]. The threads whose timers
    /// stay armed go to [`Timers::put_back`].
    pub fn take_armed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.armed)
    }

    /// Puts back the threads whose timers stay armed. If their time is over, they are checked one
    /// tick later, not at once: the sampler would use the very CPU that the threads wait for.
    pub fn put_back(&mut self, armed: Vec<u32>, now_ns: u64) {
        self.armed = armed;
        if self.expires_ns <= now_ns {
            self.expires_ns = now_ns + self.valid_ns;
        }
    }

    /// The stack that a thread has left, and whether its timer stays armed. It does not for longer
    /// than a kernel tick, unless the thread has run and now waits for a CPU.
    pub fn take(
        &mut self,
        thread: &mut ThreadState,
        now_ns: u64,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> (Option<TimerHit>, bool) {
        let Some(timer) = &mut thread.timer else { return (None, false) };
        if !slot::is_done(timer.ticket) {
            let mut stays = timer.expires_ns > now_ns || slot::is_begun(timer.ticket);
            if !stays && timer.expires_ns != 0 {
                let cpu_ns = threads::cpu_ns(thread.thread.tid).unwrap_or(0);
                let used_ns = cpu_ns.saturating_sub(timer.armed_cpu_ns);
                if used_ns >= self.valid_ns - 2 * TICK_LATE_NS {
                    thread.state_read_ns = 0; // it ran all the time: it may have blocked the signal
                }
                // The tick that hits a thread may give its CPU to another one: the signal is raised
                // when the thread runs again.
                stays = used_ns > 0
                    && now_ns.saturating_sub(timer.asked_ns) < PUT_OFF_NS
                    && is_put_off(thread, cpu_ns);
                let Some(timer) = &mut thread.timer else { return (None, false) };
                if !stays {
                    timer.timer.disarm();
                    timer.expires_ns = 0;
                }
            }
            return (None, stays);
        }
        timer.expires_ns = 0;
        (self.answer(thread, Raised::AtTick, tables, counters), false)
    }

    /// Reads the slot of one of a thread's timers.
    fn answer(
        &self,
        thread: &mut ThreadState,
        raised: Raised,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> Option<TimerHit> {
        let timer = match raised {
            Raised::AtTick => thread.timer.as_ref()?,
            Raised::ByUs => thread.preempted.as_ref()?,
        };
        let slot = timer.ticket.slot()?;
        let stop = Stop::from_number(slot.stop.load(Relaxed));
        let total = slot.total.load(Relaxed) as usize;
        let interpreted = self.interpreters.take(slot, thread.tid(), counters);
        let stack = RawStack::new(&slot.frames, total, stop, tables.mappings(), interpreted);
        let sp = slot.sp.load(Relaxed);
        let held = u64::from(slot.held.load(Relaxed));
        let ago_ns = self.scale.ns(arch::ticks().wrapping_sub(slot.at.load(Relaxed)));
        // Where process_vm_readv(2) is refused, a stack can be read only if its bounds are known:
        // they are from the next hit on.
        if !thread.stack_bounds.contains(sp) {
            thread.stack_bounds = tables.stack_of(sp).unwrap_or_default();
        }
        self.interpreters.prepare(slot, thread.tid());
        slot::again(timer.ticket, thread.stack_bounds);
        counters.answered.add(1);
        counters.held.add(self.scale.ns(held));
        counters.stopped(stop);
        thread.blocks_signal = false;
        let (recordings, asked_ns) = (timer.recordings, timer.asked_ns);
        let hit_ns = process::monotonic_ns().saturating_sub(ago_ns);
        let least_ns = timer.armed_cpu_ns;
        let most_ns = least_ns + hit_ns.saturating_sub(timer.armed_ns);
        let clock_ns = (least_ns < self.valid_ns).then(|| threads::cpu_ns(thread.tid())).flatten();
        let cpu_ns = clock_ns.map_or(most_ns, |ns| ns.saturating_sub(ago_ns).clamp(least_ns, most_ns));
        Some(TimerHit { recordings, asked_ns, hit_ns, cpu_ns, stack: Arc::new(stack) })
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
        timers.put_back(vec![1], now_ns);
        assert_eq!(timers.expire_at(), Some(now_ns + hit_within_ns()));
        let armed = timers.take_armed();
        timers.put_back(armed, now_ns + 1);
        assert_eq!(timers.expire_at(), Some(now_ns + hit_within_ns()), "it has not expired");
    }
}
