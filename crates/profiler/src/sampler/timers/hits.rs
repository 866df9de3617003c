//! Takes the stacks that handlers have left in the timers' slots.

use super::{PUT_OFF_NS, TICK_LATE_NS, ThreadTimer, Timers};
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::sampler::threads::ThreadState;
use crate::stack::RawStack;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use swipr_os::threads::Activity;
use swipr_os::{process, signals, threads};
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
    /// What the hit stands for.
    pub at: HitAt,
    /// Where.
    pub stack: Arc<RawStack>,
}

/// Where a hit found the thread, with the CPU time that it had been there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitAt {
    /// Anywhere.
    Tick,
    /// At the end of a system call, longer than a tick after the timer was armed.
    Return(u64),
    /// At the end of a fork, since its beginning: the thread has armed its timer itself.
    Fork(u64),
}

impl HitAt {
    /// How many hits there would be if signals came in system calls, too, or sweeps were not held
    /// up by the fork: one at each interval, or tick if that is longer. A timer that is armed at
    /// each tick is armed right after one; others at any moment between two.
    pub fn hits(self, interval_ns: u64, tick_ns: u64) -> u32 {
        let each_ns = interval_ns.max(tick_ns).max(1);
        let first_ns = if interval_ns <= tick_ns { tick_ns - tick_ns / 16 } else { tick_ns / 2 };
        let hits = match self {
            HitAt::Tick => 1,
            HitAt::Return(ns) => 1 + ns.saturating_sub(first_ns) / each_ns,
            // What is less than an interval counts as often as its length says.
            HitAt::Fork(ns) => ns / each_ns + u64::from(pseudo_random(ns) % each_ns < ns % each_ns),
        };
        hits.try_into().unwrap_or(u32::MAX)
    }
}

/// The low bits of a clock, mixed (the multiplier of Knuth's hash).
fn pseudo_random(ns: u64) -> u64 {
    ns.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// What raised a timer's signal.
#[derive(Clone, Copy, Debug)]
enum Raised {
    /// The kernel: the timer has expired.
    AtTick,
    /// The sampler, see [`Timers::raise`].
    ByUs,
}

/// Whether a thread whose clock is at `cpu_ns` waits for a CPU.
fn is_put_off(thread: &ThreadState, cpu_ns: u64) -> bool {
    let waits = match thread.activity() {
        Ok(activity) => activity == Activity::Running,
        Err(_) => threads::is_awake(thread.tid()),
    };
    waits && threads::cpu_ns(thread.tid()) == Some(cpu_ns)
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
        let armed_cpu_ns = timer.armed_cpu_ns;
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
        let is_soon = now_ns < timer.expires_ns && cpu_ns.saturating_sub(timer.armed_cpu_ns) <= self.valid_ns;
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

    /// The stack that a thread has left, and whether its timer stays armed. It does not for longer
    /// than a kernel tick, unless that tick has found the thread in the kernel, or the thread waits
    /// for a CPU since.
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
            let passed_ns = now_ns.saturating_sub(timer.armed_ns);
            if timer.expires_ns != 0 && passed_ns >= self.valid_ns && !slot::is_begun(timer.ticket) {
                let cpu_ns = threads::cpu_ns(thread.thread.tid).unwrap_or(0);
                let used_ns = cpu_ns.saturating_sub(timer.armed_cpu_ns).min(passed_ns);
                let asked_ns = timer.asked_ns;
                let has_run_all_time = used_ns >= self.valid_ns - 2 * TICK_LATE_NS;
                let is_in_kernel = has_run_all_time && timer.has_stayed_in_kernel(thread.thread.tid, cpu_ns);
                if has_run_all_time && !is_in_kernel {
                    thread.state_read_ns = 0; // it may have blocked the signal
                }
                stays |= is_in_kernel;
                // The tick that hits a thread may give its CPU to another one: the signal is raised
                // when the thread runs again.
                let is_recent = now_ns.saturating_sub(asked_ns) < PUT_OFF_NS;
                if !stays && used_ns > 0 && is_recent && is_put_off(thread, cpu_ns) {
                    self.is_any_put_off = true;
                    stays = true;
                }
                if let Some(timer) = thread.timer.as_mut().filter(|_| !stays) {
                    timer.timer.disarm();
                    (timer.expires_ns, timer.is_in_kernel) = (0, false);
                    timer.ticket.slot().inspect(|slot| slot.is_armed.store(false, Relaxed));
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
        let (stack, ago_ns) = self.read(slot, thread.tid(), tables, counters);
        let sp = slot.sp.load(Relaxed);
        // Where process_vm_readv(2) is refused, a stack can be read only if its bounds are known:
        // they are from the next hit on.
        if !thread.stack_bounds.contains(sp) {
            thread.stack_bounds = tables.stack_of(sp).unwrap_or_default();
        }
        self.interpreters.prepare(slot, thread.tid());
        let forked_at = slot.fork_from.swap(0, Relaxed);
        let forked_ns = self.scale.ns(slot.at.load(Relaxed).saturating_sub(forked_at));
        slot.is_armed.store(false, Relaxed);
        slot::again(timer.ticket, thread.stack_bounds);
        thread.blocks_signal = false;
        let (recordings, asked_ns) = (timer.recordings, timer.asked_ns);
        let hit_ns = process::monotonic_ns().saturating_sub(ago_ns);
        let least_ns = timer.armed_cpu_ns;
        let most_ns = least_ns + hit_ns.saturating_sub(timer.armed_ns);
        let in_kernel = timer.is_in_kernel || forked_at != 0;
        let is_needed = in_kernel || least_ns < self.valid_ns;
        let now_cpu_ns = is_needed.then(|| threads::cpu_ns(thread.tid())).flatten();
        let cpu_ns = match now_cpu_ns {
            // It ran until it was hit, and may have blocked since.
            Some(ns) if in_kernel => ns.clamp(least_ns, most_ns),
            Some(ns) => ns.saturating_sub(ago_ns).clamp(least_ns, most_ns),
            None => most_ns,
        };
        let used_ns = cpu_ns - least_ns;
        let forked_ns = forked_ns.min(now_cpu_ns.unwrap_or(0).saturating_sub(least_ns));
        let at = match forked_at {
            0 if in_kernel && timer.is_clock_sure && used_ns > self.valid_ns => HitAt::Return(used_ns),
            1.. if forked_ns > self.valid_ns => HitAt::Fork(forked_ns),
            _ => HitAt::Tick,
        };
        if let (Raised::AtTick, Some(timer)) = (raised, &mut thread.timer) {
            timer.is_in_kernel = false;
        }
        Some(TimerHit { recordings, asked_ns, hit_ns, cpu_ns, at, stack })
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
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_call_of_several_ticks_has_a_hit_at_each_and_one_of_several_intervals_at_each_of_those() {
        let hits = |ns, interval_ns| HitAt::Return(ns).hits(interval_ns, 4 * MS);
        assert_eq!([4 * MS + 200_000, 7 * MS, 8 * MS, 40 * MS].map(|ns| hits(ns, MS)), [1, 1, 2, 10]);
        assert_eq!([5 * MS, 11 * MS, 12 * MS, 102 * MS].map(|ns| hits(ns, 10 * MS)), [1, 1, 2, 11]);
        assert_eq!(HitAt::Tick.hits(10 * MS, 4 * MS), 1);
    }

    #[test]
    fn forks_have_as_many_hits_as_their_time_has_intervals() {
        let forks = || (0..10_000).map(|n| 5 * MS + n * 1_777);
        let hits: u64 = forks().map(|ns| u64::from(HitAt::Fork(ns).hits(10 * MS, 4 * MS))).sum();
        let expected = forks().sum::<u64>() / (10 * MS);
        assert!(hits.abs_diff(expected) < expected / 50, "{hits} of {expected}");
    }
}
