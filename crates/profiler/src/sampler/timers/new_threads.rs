//! Timers that threads arm themselves as they start (`thread_start.rs`).

use super::life::acquire_slot;
use super::{Clocks, ThreadTimer, Timers};
use crate::counters::AgentCounters;
use crate::mappings::Tables;
use crate::sampler::threads::ThreadState;
use crate::stack::RawStack;
use crate::thread_start::{self, Armed, PLACES};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use swipr_formats::model::Thread;
use swipr_os::{process, threads, timer_delivery};
use swipr_unwind::slot::{self, StackBounds, Ticket};

/// Timers of new threads come on top of those that the sampler makes.
const LEAST_ROOM: i64 = 4 * PLACES as i64;

/// The hit of a thread that has ended before a sweep saw it.
#[derive(Debug)]
pub struct LastHit {
    /// Its id, and its name then.
    pub thread: Arc<Thread>,
    /// When it was hit.
    pub hit_ns: u64,
    /// Where.
    pub stack: Arc<RawStack>,
}

impl Timers {
    /// Offers slots to threads that are to start, or takes the offers back. None is offered where a
    /// timer could cut a system call short, in a sandbox, or where the user may queue few signals.
    pub fn offer(&mut self, is_wanted: bool) {
        let may_arm = self.room >= LEAST_ROOM && !self.has_met_sandbox;
        let take_back = || thread_start::withdraw(|ticket| _ = slot::release(ticket));
        if is_wanted && may_arm && timer_delivery::is_task_work() {
            // An interpreter was found: slots that were offered before have no room for its frames.
            if self.interpreters.is_read() && !mem::replace(&mut self.offers_have_room, true) {
                take_back();
            }
            thread_start::offer(|| self.new_offer());
        } else {
            take_back();
            let armed = self.take_armed_by_themselves();
            armed.into_iter().for_each(|(_, timer)| self.retire(Some(timer)));
        }
    }

    fn new_offer(&self) -> Option<Ticket> {
        let ticket = acquire_slot(0, StackBounds::default())?;
        let slot = ticket.slot()?;
        self.interpreters.prepare(slot, 0);
        slot.wants_name.store(true, Relaxed);
        Some(ticket)
    }

    /// The timers that threads have armed since the last call, and the threads' ids.
    pub fn take_armed_by_themselves(&mut self) -> Vec<(u32, ThreadTimer)> {
        let armed = Clocks { ns: process::monotonic_ns(), ..Clocks::default() };
        let timer = |Armed { tid, timer, ticket }| {
            self.room = self.room.saturating_sub(1);
            self.made += 1;
            (tid, ThreadTimer { waits: true, armed, ..ThreadTimer::new(timer, ticket) })
        };
        thread_start::take_armed().map(timer).collect()
    }

    /// Gives a thread the timer that it has armed, which waits as after [`Timers::arm_waiting`]. It
    /// takes the place of one that a sweep has made meanwhile.
    pub fn adopt(&mut self, thread: &mut ThreadState, timer: ThreadTimer) {
        if let Some(slot) = timer.ticket.slot() {
            slot.wants_name.store(false, Relaxed);
        }
        let other = thread.timer.replace(timer);
        self.retire(other);
        thread.is_timer_set = true;
        thread.began_armed_ns = Some(process::monotonic_ns());
    }

    /// Removes the timer of a thread that has ended; what it has left.
    pub fn take_last(
        &mut self,
        tid: u32,
        timer: ThreadTimer,
        tables: &Tables,
        counters: &AgentCounters,
    ) -> Option<LastHit> {
        let hit = timer.ticket.slot().filter(|_| slot::is_done(timer.ticket)).map(|slot| {
            let (stack, ago_ns) = self.read(slot, tid, tables, counters);
            let bytes = [&slot.name[0], &slot.name[1]].map(|word| word.load(Relaxed).to_ne_bytes());
            let name = bytes.as_flattened().split(|&byte| byte == 0).next().unwrap_or_default();
            let thread = Arc::new(Thread { tid, name: threads::text_of_name(name) });
            LastHit { thread, hit_ns: process::monotonic_ns().saturating_sub(ago_ns), stack }
        });
        self.retire(Some(timer));
        hit
    }
}
