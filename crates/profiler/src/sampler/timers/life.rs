//! Makes and removes timers, and tells which threads may have one.

use super::{ThreadTimer, Timers};
use crate::sampler::threads::ThreadState;
use swipr_os::cpu_timers::CpuTimer;
use swipr_os::{memory, signals, threads, timer_delivery};
use swipr_unwind::slot::{self, CHUNK_BYTES, CHUNKS, StackBounds, Ticket};

/// How long a reading of a thread's signal mask and sandbox holds. The thread may enter a sandbox
/// by a system call that the agent does not see.
const STATE_AGAIN_NS: u64 = 1_000_000_000;

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

impl Timers {
    pub(super) fn new_timer(&mut self, thread: &ThreadState) -> Option<ThreadTimer> {
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
        Some(ThreadTimer::new(timer, ticket))
    }

    /// Whether a running thread is known not to block the signal. It may block all by a
    /// system call of its own; a thread that has just started does so for a moment, and one that
    /// forks. While a handler runs, the kernel shows its mask, in which all signals are blocked.
    pub fn can_be_asked(&mut self, thread: &mut ThreadState, now_ns: u64) -> bool {
        let is_old = now_ns.saturating_sub(thread.state_read_ns) >= STATE_AGAIN_NS;
        let timers = [&thread.timer, &thread.preempted];
        let shows_mask = |timer: &ThreadTimer| !slot::is_begun(timer.ticket) && !timer.is_forking();
        if timers.into_iter().flatten().all(shows_mask) && (thread.blocks_signal || is_old) {
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
        self.has_met_sandbox |= thread.is_sandboxed;
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

    pub(super) fn retire(&mut self, timer: Option<ThreadTimer>) {
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
}
