//! Takes the stacks that handlers have left in the timers' slots.

use super::hit_at::HitAt;
use super::{Clocks, PUT_OFF_NS, TICK_LATE_NS, ThreadTimer, Timers};
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::sampler::threads::ThreadState;
use crate::stack::RawStack;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use swipr_os::threads::Activity;
use swipr_os::{process, signals, threads, timer_delivery};
use swipr_unwind::arch;
use swipr_unwind::slot::{self, Slot};
use swipr_unwind::walk::Stop;

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
    /// When the tick was that found the thread, from and to: the hit counts for the recordings that
    /// have picked it. `None`: it was the one that all of them have picked.
    pub found_ns: Option<(u64, u64)>,
    /// What the hit represents.
    pub at: HitAt,
    /// Where.
    pub stack: Arc<RawStack>,
}

/// What raised a timer's signal.
#[derive(Clone, Copy, Debug)]
enum Raised {
    /// The kernel: the timer has expired.
    AtTick,
    /// The sampler, see [`Timers::raise`].
    ByUs,
}

/// Whether a thread runs or waits for a CPU.
fn is_awake(thread: &ThreadState) -> bool {
    thread
        .activity()
        .map_or_else(|_| threads::is_awake(thread.tid()), |activity| activity == Activity::Running)
}

impl Timers {
    /// The stack that a thread has left since [`Timers::arm_waiting`], or as it forked.
    pub fn take_waited(
        &mut self,
        thread: &mut ThreadState,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> Option<TimerHit> {
        let may_have = |timer: &&mut ThreadTimer| timer.waits || timer.expires_ns == 0;
        let timer = thread.timer.as_mut().filter(may_have).filter(|timer| slot::is_done(timer.ticket))?;
        let has_waited = std::mem::take(&mut timer.waits);
        let armed_cpu_ns = timer.armed.cpu_ns;
        let hit = self.answer(thread, Raised::AtTick, tables, counters)?;
        if !has_waited {
            // Shorter forks are hit where sweeps have armed the timer.
            return Some(hit).filter(|hit| matches!(hit.at, HitAt::Fork(_)));
        }
        // It had run for longer before: it blocked the signal, and was hit as it unblocked it.
        let since_ns = process::monotonic_ns().saturating_sub(hit.hit_ns);
        let used_ns = thread.cpu_ns.saturating_sub(since_ns).saturating_sub(armed_cpu_ns);
        (used_ns <= 2 * self.valid_ns).then_some(hit)
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
        let is_soon = now_ns < timer.expires_ns && cpu_ns.saturating_sub(timer.armed.cpu_ns) <= self.valid_ns;
        // A handler that walks thousands of frames, or reads an interpreter's, takes milliseconds.
        let stays = is_soon || slot::is_begun(timer.ticket);
        if !stays {
            // The thread has blocked the signal, or has had no CPU for long: it would answer from
            // another place.
            thread.state_read_ns = 0;
            let late = thread.preempted.take();
            self.retire(late);
        }
        (None, stays)
    }

    /// The stack that a thread has left. If there is none, and a tick has passed, the timer is
    /// disarmed, unless that tick may have found the thread.
    pub fn take(
        &mut self,
        thread: &mut ThreadState,
        now_ns: u64,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> Option<TimerHit> {
        let timer = thread.timer.as_mut()?;
        if slot::is_done(timer.ticket) {
            timer.expires_ns = 0;
            return self.answer(thread, Raised::AtTick, tables, counters);
        }
        let has_passed = now_ns.saturating_sub(timer.armed.ns) >= self.valid_ns;
        if timer.is_armed() && has_passed && !slot::is_begun(timer.ticket) {
            let is_last = timer.expires_ns <= now_ns;
            if !self.may_have_expired(thread, now_ns) && is_last {
                thread.timer.as_mut()?.disarm();
            }
        }
        None
    }

    /// Whether a tick may have found a thread that was not hit: it waits for a CPU, or it has not
    /// blocked since the timer was armed, and is in a system call. To arm the timer again would
    /// undo that.
    fn may_have_expired(&mut self, thread: &mut ThreadState, now_ns: u64) -> bool {
        let (Some(timer), Some(cpu_ns)) = (&thread.timer, threads::cpu_ns(thread.tid())) else {
            return false;
        };
        let is_awake = cpu_ns != timer.armed.cpu_ns && is_awake(thread);
        let waits = is_awake && threads::cpu_ns(thread.tid()) == Some(cpu_ns);
        if is_awake {
            thread.add_delay();
        }
        let now = Clocks { ns: now_ns, cpu_ns, delay_ns: thread.delay_ns };
        let Some(timer) = &mut thread.timer else { return false };
        // How long a thread has waited so far is not known.
        if !is_awake || !waits && now.has_blocked_since(timer.awake_from) {
            (timer.awake_from, timer.is_overdue, timer.unhit) = (now, false, None);
            return false;
        }
        timer.note_unhit(now, waits);
        let used_ns = cpu_ns.saturating_sub(timer.awake_from.cpu_ns);
        let is_due = !waits && used_ns >= self.valid_ns - TICK_LATE_NS && timer_delivery::is_task_work();
        if is_due && !timer.is_overdue {
            timer.is_overdue = true;
            thread.state_read_ns = 0; // it may have blocked the signal
        }
        self.is_any_put_off |= !timer.is_overdue && now_ns.saturating_sub(timer.asked_ns) < PUT_OFF_NS;
        true
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
        let (stack, ago_ns) = self.read(slot, thread.tid(), tables, counters);
        let sp = slot.sp.load(Relaxed);
        // Where process_vm_readv(2) is refused, a stack can be read only if its bounds are known:
        // they are from the next hit on.
        if !thread.stack_bounds.contains(sp) {
            let thread_pointer = slot.thread_pointer.load(Relaxed);
            let bounds = tables.stack_of_thread(sp, thread.tid(), thread_pointer);
            thread.stack_bounds = bounds.unwrap_or_default();
        }
        self.interpreters.prepare(slot, thread.tid());
        let forked_at = slot.fork_from.swap(0, Relaxed);
        let forked_ns = self.scale.ns(slot.at.load(Relaxed).saturating_sub(forked_at));
        let fork_cpu_ns = slot.fork_cpu_ns.load(Relaxed);
        let overruns = slot.overrun.load(Relaxed);
        match raised {
            Raised::AtTick => timer.stop(slot),
            Raised::ByUs => slot.is_armed.store(false, Relaxed),
        }
        slot::again(timer.ticket, thread.stack_bounds);
        thread.blocks_signal = false;
        let (recordings, asked_ns) = (timer.recordings, timer.asked_ns);
        let hit_ns = process::monotonic_ns().saturating_sub(ago_ns);
        let least_ns = timer.armed.cpu_ns;
        let most_ns = least_ns + hit_ns.saturating_sub(timer.armed.ns);
        let is_needed = forked_at != 0 || least_ns < self.valid_ns;
        let now_cpu_ns = is_needed.then(|| threads::cpu_ns(thread.tid())).flatten();
        let cpu_ns = now_cpu_ns.map_or(most_ns, |ns| ns.saturating_sub(ago_ns).clamp(least_ns, most_ns));
        let forked_ns = forked_ns.min(now_cpu_ns.unwrap_or(0).saturating_sub(fork_cpu_ns));
        let is_late = matches!(raised, Raised::AtTick) && timer.is_late(hit_ns);
        let (was_in_call, found_ns) = match is_late {
            true => Self::found_late(thread, hit_ns, overruns, forked_at != 0)?,
            false => (false, None),
        };
        let at = match (raised, forked_at) {
            (Raised::AtTick, 0) if was_in_call => self.returned(thread, hit_ns).unwrap_or(HitAt::Tick),
            (_, 1..) if forked_ns > self.valid_ns => HitAt::Fork(forked_ns),
            _ => HitAt::Tick,
        };
        if let (Raised::AtTick, Some(timer)) = (raised, &mut thread.timer) {
            timer.is_overdue = false;
            timer.unhit = None;
        }
        Some(TimerHit { recordings, asked_ns, hit_ns, cpu_ns, found_ns, at, stack })
    }

    /// Of a thread that was hit late: whether it was in a system call since an earlier tick, and
    /// [`TimerHit::found_ns`].
    fn found_late(
        thread: &mut ThreadState,
        hit_ns: u64,
        overruns: u32,
        has_forked: bool,
    ) -> Option<(bool, Option<(u64, u64)>)> {
        thread.add_delay();
        let timer = thread.timer.as_ref()?;
        let cpu_ns = timer.hit_cpu_ns(overruns);
        let now = Clocks { ns: hit_ns, cpu_ns, delay_ns: thread.delay_ns };
        let stayed = timer.is_overdue || !now.has_blocked_since(timer.awake_from);
        let was_in_call = has_forked || stayed && timer.was_in_call(cpu_ns);
        Some((was_in_call, Some(timer.found_ns(hit_ns, cpu_ns, was_in_call))))
    }

    /// What a hit represents at the end of a system call that took longer than a tick: the thread
    /// has not blocked since its timer was armed.
    fn returned(&self, thread: &mut ThreadState, hit_ns: u64) -> Option<HitAt> {
        let timer = thread.timer.as_ref().filter(|timer| timer.is_clock_sure)?;
        let (from, was_overdue) = (timer.awake_from, timer.is_overdue);
        let passed_ns = hit_ns.saturating_sub(from.ns);
        if passed_ns <= self.valid_ns || !timer_delivery::is_task_work() {
            return None;
        }
        thread.add_delay();
        let cpu_ns = threads::cpu_ns(thread.tid())?;
        let now = Clocks { ns: hit_ns, cpu_ns, delay_ns: thread.delay_ns };
        if !was_overdue && now.has_blocked_since(from) {
            return None;
        }
        // It may have run, waited or blocked since.
        let awake_ns = passed_ns.saturating_sub(now.delay_ns.saturating_sub(from.delay_ns));
        let used_ns = cpu_ns.saturating_sub(from.cpu_ns).min(awake_ns);
        (used_ns > self.valid_ns).then_some(HitAt::Return { used_ns, passed_ns })
    }

    /// The stack in an answered slot, and how long ago it was left.
    pub(super) fn read(
        &self,
        slot: &Slot,
        tid: u32,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> (Arc<RawStack>, u64) {
        let stop = Stop::from_number(slot.stop.load(Relaxed));
        let total = slot.total.load(Relaxed) as usize;
        let interpreted = self.interpreters.take(slot, tid, counters);
        let stack = RawStack::new(&slot.frames, total, stop, tables.mappings(), interpreted);
        counters.answered.add(1);
        counters.held.add(self.scale.ns(slot.held.load(Relaxed).into()));
        counters.stopped(stop);
        let stack = stack.before_handler(signals::is_handler);
        (Arc::new(stack), self.scale.ns(arch::ticks().wrapping_sub(slot.at.load(Relaxed))))
    }
}

#[cfg(test)]
mod tests;
