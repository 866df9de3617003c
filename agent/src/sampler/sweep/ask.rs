//! Asking a running thread for its stack, and taking the answer.

use super::MAX_PENDING_TICKS;
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::not_asked;
use crate::platform::threads::Sandbox;
use crate::platform::{memory, process, signals, threads};
use crate::sampler::threads::{Pending, PendingTick, Sampled};
use crate::stack::RawStack;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use swipr_unwind::arch;
use swipr_unwind::call_again::{Awake, Seen, note_stack};
use swipr_unwind::slot::{self, CHUNK_BYTES, CHUNKS, Ticket};
use swipr_unwind::walk::Stop;

/// See [`Slots::use_signal`].
const LOOKS_WHERE_BLOCKED: u8 = 16;

/// How long what is known of a thread's signal mask and sandbox holds: it may enter one by a system
/// call that nobody sees.
const STATE_AGAIN_NS: u64 = 1_000_000_000;

/// What a tick of [`arch::ticks`] is worth, by comparison with the system's clock since the beginning.
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

/// The slots that are lent.
#[derive(Debug, Default)]
pub struct Slots {
    next: usize,
    scale: TickScale,
    pending: usize,
    /// How often a thread's mask must be seen to let the signal through before it is asked.
    clean_looks: u8,
    /// What this thread may do, which does with system calls as it likes.
    sandbox: Sandbox,
}

impl Slots {
    /// `signal` is used from now on. Where some thread blocks it for good, others may wait for signals.
    pub fn use_signal(&mut self, signal: i32) {
        self.sandbox =
            threads::signal_state(process::tid(), signal).map(|state| state.sandbox).unwrap_or_default();
        self.clean_looks = if signals::is_blocked_by_some(signal) { LOOKS_WHERE_BLOCKED } else { 1 };
    }

    /// Whether any signal is unanswered.
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// One slot came back without an answer.
    pub fn one_less(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    /// The slot that the thread had before, if it is free.
    fn lend(&mut self, thread: &mut Sampled, seen: Option<Seen>) -> Option<Ticket> {
        let hint = thread.slot.unwrap_or_else(|| {
            self.next = self.next.wrapping_add(1);
            self.next
        });
        let bounds = thread.stack_bounds;
        let ticket = slot::lend(hint, bounds, seen).or_else(|| {
            let chunk = (0..CHUNKS).find(|&chunk| !slot::has_chunk(chunk))?;
            let memory = memory::map_forever(CHUNK_BYTES)?;
            // SAFETY: zeroed pages, mapped for ever, given away here.
            unsafe { slot::add_chunk(chunk, memory) };
            slot::lend(hint, bounds, seen)
        })?;
        thread.slot = Some(ticket.index());
        Some(ticket)
    }

    /// Asks for a stack, or adds the ticks to the question that is under way. Returns those that are lost.
    pub fn ask(
        &mut self,
        thread: &mut Sampled,
        ticks: Vec<PendingTick>,
        signal: i32,
        counters: &AgentCounters,
    ) -> Vec<PendingTick> {
        if let Some(mut pending) = thread.pending.take() {
            let lost = self.ask_again(thread, &mut pending, ticks, signal, counters);
            thread.pending = Some(pending);
            return lost;
        }
        // Who blocks all signals may be waiting for them, with sigwait(3) or a signalfd(2), and would get ours.
        if !can_be_asked(thread, signal, self.clean_looks, self.sandbox) {
            return ticks;
        }
        let Some(ticket) = self.send(thread, thread.seen, signal, counters) else { return ticks };
        thread.pending = Some(Pending { ticket, ticks, again: false });
        vec![]
    }

    fn ask_again(
        &mut self,
        thread: &mut Sampled,
        pending: &mut Pending,
        ticks: Vec<PendingTick>,
        signal: i32,
        counters: &AgentCounters,
    ) -> Vec<PendingTick> {
        let tid = thread.tid();
        let stood_still = pending.ticks.last().is_some_and(|last| last.cpu_ns == thread.cpu_ns);
        if !stood_still {
            // It ran and did not take the signal: where it has blocked it, the answer will be no answer to this.
            let state = threads::signal_state(tid, signal).unwrap_or_default();
            thread.blocks_signal = state.is_blocked;
            if state.is_blocked {
                thread.clean_looks = 0;
                let earlier = std::mem::take(&mut pending.ticks);
                return earlier.into_iter().chain(ticks).collect();
            }
            if !state.is_pending && !slot::is_done(pending.ticket) {
                // The kernel dropped it: another one of the same number was under way.
                if let Some(slot) = pending.ticket.slot() {
                    slot.looked.forget();
                }
                let sent = not_asked::asking(tid, || signals::ask(tid, signal, pending.ticket).is_ok());
                counters.signals.add(u64::from(sent == Some(true)));
            }
        }
        if pending.ticks.len() >= MAX_PENDING_TICKS {
            return ticks;
        }
        ticks.into_iter().for_each(|tick| pending.add(tick));
        vec![]
    }

    fn send(
        &mut self,
        thread: &mut Sampled,
        seen: Option<Seen>,
        signal: i32,
        counters: &AgentCounters,
    ) -> Option<Ticket> {
        let ticket = self.lend(thread, seen)?;
        note_stack(thread.tid(), thread.stack_bounds);
        let sent = not_asked::asking(thread.tid(), || signals::ask(thread.tid(), signal, ticket));
        let Some(sent) = sent else {
            slot::revoke(ticket);
            return None;
        };
        if let Err(error) = sent {
            slot::revoke(ticket);
            // EAGAIN: too many signals are queued (RLIMIT_SIGPENDING); EPERM: a seccomp filter refuses the call.
            // ESRCH: it is gone, as the next look will find.
            counters.refused.add(u64::from(error.raw_os_error() != Some(libc::ESRCH)));
            return None;
        }
        if let (Some(seen), Some(slot)) = (seen, ticket.slot()) {
            let sent_ns = process::monotonic_ns();
            let waits_still =
                seen.awake == Awake::Waits && threads::cpu_ns(thread.tid()) == Some(thread.cpu_ns);
            slot.looked.was_sent(sent_ns, waits_still);
        }
        counters.signals.add(1);
        self.pending += 1;
        Some(ticket)
    }

    /// The answer of a thread, if it is there.
    pub fn take_answer(
        &mut self,
        thread: &mut Sampled,
        tables: &Tables,
        signal: i32,
        counters: &AgentCounters,
    ) -> Option<(Pending, Arc<RawStack>)> {
        let ticket = thread.pending.as_ref()?.ticket;
        if !slot::is_done(ticket) {
            return None;
        }
        let slot = ticket.slot()?;
        let stop = Stop::from_number(slot.stop.load(Relaxed));
        let total = slot.total.load(Relaxed) as usize;
        let stack = RawStack::new(&slot.frames, total, stop, tables.mappings());
        let sp = slot.sp.load(Relaxed);
        let held = u64::from(slot.held.load(Relaxed));
        slot::release(ticket);
        self.one_less();
        counters.answered.add(1);
        counters.held.add(self.scale.ns(held));
        let new_stack = !thread.stack_bounds.contains(sp);
        if new_stack {
            thread.stack_bounds = tables.stack_of(sp).unwrap_or_default();
        }
        // Where process_vm_readv is refused, a stack can be read only when its bounds are known: now they are.
        let pending = thread.pending.as_ref()?;
        if new_stack && stop == Stop::OutOfBounds && thread.stack_bounds.contains(sp) && !pending.again {
            let ticket = self.send(thread, None, signal, counters);
            if let (Some(ticket), Some(pending)) = (ticket, &mut thread.pending) {
                (pending.ticket, pending.again) = (ticket, true);
                return None;
            }
        }
        counters.stopped(stop);
        thread.blocks_signal = false;
        Some((thread.pending.take()?, Arc::new(stack)))
    }
}

/// Whether a thread that runs is known not to block the signal. While it waits in sigtimedwait(2) the kernel shows what it
/// waits for as not blocked, until it runs again: who was ever seen in there is not asked, and `wanted` looks must agree.
fn can_be_asked(thread: &mut Sampled, signal: i32, wanted: u8, ours: Sandbox) -> bool {
    let now_ns = process::monotonic_ns();
    let is_old = now_ns.saturating_sub(thread.state_read_ns) >= STATE_AGAIN_NS;
    if thread.clean_looks < wanted || is_old {
        thread.state_read_ns = now_ns;
        let state = threads::signal_state(thread.tid(), signal).unwrap_or_default();
        thread.is_sandboxed = state.sandbox.is_stricter_than(ours);
        thread.blocks_signal = state.is_blocked;
        thread.clean_looks = if thread.blocks_signal { 0 } else { thread.clean_looks.saturating_add(1) };
    }
    thread.clean_looks >= wanted && !thread.waits_for_signals && !thread.is_sandboxed
}
