//! Asking a running thread for its stack, and taking the answer.

use super::MAX_PENDING_TICKS;
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::platform::{process, signals};
use crate::sampler::threads::{Pending, PendingTick, Sampled};
use crate::stack::RawStack;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use swipr_unwind::slot::{self, CHUNK_BYTES, CHUNKS, Ticket};
use swipr_unwind::walk::Stop;

/// The slots that are lent.
#[derive(Debug, Default)]
pub struct Slots {
    next: usize,
    pending: usize,
}

impl Slots {
    /// Whether any signal is unanswered.
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// One slot came back without an answer.
    pub fn one_less(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }

    fn lend(&mut self, (low, high): (u64, u64)) -> Option<Ticket> {
        self.next = self.next.wrapping_add(1);
        slot::lend(self.next, low, high).or_else(|| {
            let chunk = (0..CHUNKS).find(|&chunk| !slot::has_chunk(chunk))?;
            let memory = process::map_forever(CHUNK_BYTES)?;
            // SAFETY: zeroed pages, mapped for ever, given away here.
            unsafe { slot::add_chunk(chunk, memory) };
            slot::lend(self.next, low, high)
        })
    }

    /// Asks for a stack, or adds the tick to the question that is under way.
    /// `Err`: the tick is lost for these recordings.
    pub fn ask(
        &mut self,
        thread: &mut Sampled,
        tick: PendingTick,
        signal: i32,
        counters: &AgentCounters,
    ) -> Result<(), u8> {
        let lost = Err(tick.recordings);
        if let Some(pending) = &mut thread.pending {
            if pending.ticks.len() >= MAX_PENDING_TICKS {
                return lost;
            }
            pending.ticks.push(tick);
            return Ok(());
        }
        let Some(ticket) = self.lend(thread.stack_bounds) else { return lost };
        if signals::ask(thread.tid(), signal, ticket).is_err() {
            slot::revoke(ticket);
            thread.gone = true;
            return lost;
        }
        counters.signals.add(1);
        self.pending += 1;
        thread.pending = Some(Pending { ticket, ticks: vec![tick] });
        Ok(())
    }

    /// The answer of a thread, if it is there.
    pub fn take_answer(&mut self, thread: &mut Sampled, tables: &Tables) -> Option<(Pending, Arc<RawStack>)> {
        let ticket = thread.pending.as_ref()?.ticket;
        if !slot::is_done(ticket) {
            return None;
        }
        let slot = ticket.slot()?;
        let stop = Stop::from_number(slot.stop.load(Relaxed));
        let total = slot.total.load(Relaxed) as usize;
        let stack = RawStack::new(&slot.frames, total, stop, tables.mappings());
        let sp = slot.sp.load(Relaxed);
        let (low, high) = thread.stack_bounds;
        if !(low..high).contains(&sp) {
            thread.stack_bounds = tables.stack_of(sp).unwrap_or((0, 0));
        }
        slot::release(ticket);
        self.one_less();
        Some((thread.pending.take()?, Arc::new(stack)))
    }
}
