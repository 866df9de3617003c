//! Takes the stacks that handlers have left in the timers' slots.

use super::{PUT_OFF_NS, TICK_LATE_NS, Timers};
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

/// Whether a thread whose clock is at `cpu_ns` waits for a CPU.
fn is_put_off(thread: &ThreadState, cpu_ns: u64) -> bool {
    let waits = match thread.activity() {
        Ok(activity) => activity == Activity::Running,
        Err(_) => threads::is_awake(thread.tid()),
    };
    waits && threads::cpu_ns(thread.tid()) == Some(cpu_ns)
}

impl Timers {
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
        let (stack, ago_ns) = self.read(slot, thread.tid(), tables, counters);
        let sp = slot.sp.load(Relaxed);
        // Where process_vm_readv(2) is refused, a stack can be read only if its bounds are known:
        // they are from the next hit on.
        if !thread.stack_bounds.contains(sp) {
            thread.stack_bounds = tables.stack_of(sp).unwrap_or_default();
        }
        self.interpreters.prepare(slot, thread.tid());
        slot::again(timer.ticket, thread.stack_bounds);
        thread.blocks_signal = false;
        let (recordings, asked_ns) = (timer.recordings, timer.asked_ns);
        let hit_ns = process::monotonic_ns().saturating_sub(ago_ns);
        let least_ns = timer.armed_cpu_ns;
        let most_ns = least_ns + hit_ns.saturating_sub(timer.armed_ns);
        let clock_ns = (least_ns < self.valid_ns).then(|| threads::cpu_ns(thread.tid())).flatten();
        let cpu_ns = clock_ns.map_or(most_ns, |ns| ns.saturating_sub(ago_ns).clamp(least_ns, most_ns));
        Some(TimerHit { recordings, asked_ns, hit_ns, cpu_ns, stack })
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
