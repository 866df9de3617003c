//! Threads that arm a timer for themselves as they start.
//!
//! The sampler finds a new thread at its next sweep, and its timer then hits the kernel's next
//! tick. Of a thread that lives no longer than a tick, that is hardly ever one, and rather one of
//! its last moments than of its first. So the sampler offers slots beforehand. A thread that starts
//! takes one, makes a timer on its own CPU clock and arms it: the first tick at which it runs hits
//! it, at any moment of its life. The sampler takes these timers over at its next sweep.
//!
//! Where the library is preloaded or linked, `interpose/pthread_create.rs` of the shared library
//! brings new threads here. No lock, no allocation: a creator takes an offer by compare-and-swap,
//! and the place also carries the function that the thread was created for.

use crate::{last_thread, signal_exclusion};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};
use swipr_os::cpu_timers::CpuTimer;
use swipr_os::{process, signals, threads};
use swipr_unwind::slot::Ticket;

/// So many threads that start between two sweeps are hit.
pub const PLACES: usize = 16;

/// Nothing is offered.
const EMPTY: u32 = 0;
/// A slot is offered.
const OFFERED: u32 = 1;
/// A thread is being created that will use it, or the sampler changes the place.
const TAKEN: u32 = 2;
/// The thread has armed its timer.
const ARMED: u32 = 3;

/// One offer, from the sampler to a thread that starts, and back.
#[derive(Debug)]
pub struct Place {
    phase: AtomicU32,
    /// The slot, as it comes with the timer's signal.
    ticket: AtomicU64,
    /// The thread's function and its argument.
    routine: AtomicUsize,
    argument: AtomicUsize,
    /// The thread, and the kernel's number of its timer.
    tid: AtomicU32,
    timer: AtomicI32,
}

/// A thread that has armed a timer as it started.
#[derive(Debug)]
pub struct Armed {
    /// Its id.
    pub tid: u32,
    /// Its timer.
    pub timer: CpuTimer,
    /// The timer's slot.
    pub ticket: Ticket,
}

static PLACE: [Place; PLACES] = [const { Place::new() }; PLACES];
/// Threads that start are to arm timers.
static OPEN: AtomicBool = AtomicBool::new(false);
/// Where the next creator begins to look.
static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Place {
    const fn new() -> Place {
        Place {
            phase: AtomicU32::new(EMPTY),
            ticket: AtomicU64::new(0),
            routine: AtomicUsize::new(0),
            argument: AtomicUsize::new(0),
            tid: AtomicU32::new(0),
            timer: AtomicI32::new(0),
        }
    }

    fn changes(&self, from: u32, to: u32) -> bool {
        self.phase.compare_exchange(from, to, AcqRel, Relaxed).is_ok()
    }

    /// The thread was not created, or it does not arm a timer.
    pub fn give_back(&self) {
        self.phase.store(OFFERED, Release);
    }

    /// The function and the argument of the thread that was created. Until that gives the place
    /// back or arms its timer, they are its own.
    pub fn body(&self) -> [usize; 2] {
        [self.routine.load(Relaxed), self.argument.load(Relaxed)]
    }

    /// To be called by the thread that was created: arms its timer. `None`: there is no timer, and
    /// the place is to be given back.
    pub fn arm(&self) -> Option<()> {
        if !OPEN.load(Relaxed) {
            return None;
        }
        let ticket = Ticket::from_value(self.ticket.load(Relaxed))?;
        let (slot, tid) = (ticket.slot()?, process::tid());
        let clock = threads::cpu_clock(tid);
        let timer = CpuTimer::new(clock, tid, signals::SAMPLING, ticket.to_value()).ok()?;
        slot.set_owner(tid, timer.id());
        if !timer.arm() {
            slot.set_owner(0, 0);
            return None;
        }
        self.tid.store(tid, Relaxed);
        self.timer.store(timer.into_id(), Relaxed);
        self.phase.store(ARMED, Release);
        Some(())
    }
}

/// To be called by a thread that creates one, with the new one's function and argument. `None`: the
/// new thread arms no timer.
pub fn take(routine: usize, argument: usize) -> Option<&'static Place> {
    let is_ours = || threads::is_ours(routine) || last_thread::is_ours(routine);
    if !OPEN.load(Relaxed) || is_ours() || !signal_exclusion::may_new_threads_arm() {
        return None;
    }
    offered(routine, argument)
}

fn offered(routine: usize, argument: usize) -> Option<&'static Place> {
    let first = NEXT.fetch_add(1, Relaxed);
    let place = (0..PLACES)
        .filter_map(|n| PLACE.get(first.wrapping_add(n) % PLACES))
        .find(|place| place.changes(OFFERED, TAKEN))?;
    place.routine.store(routine, Relaxed);
    place.argument.store(argument, Relaxed);
    Some(place)
}

/// Sampler: offers slots in all places that are empty. `slot`: one without an owner, if there is
/// one.
pub fn offer(mut slot: impl FnMut() -> Option<Ticket>) {
    OPEN.store(true, Relaxed);
    for place in PLACE.iter().filter(|place| place.phase.load(Relaxed) == EMPTY) {
        let Some(ticket) = slot() else { return };
        place.ticket.store(ticket.to_value(), Relaxed);
        place.phase.store(OFFERED, Release);
    }
}

/// Sampler: takes the offers back that nobody has taken.
pub fn withdraw(mut give_back: impl FnMut(Ticket)) {
    OPEN.store(false, Relaxed);
    for place in PLACE.iter().filter(|place| place.changes(OFFERED, TAKEN)) {
        Ticket::from_value(place.ticket.load(Relaxed)).into_iter().for_each(&mut give_back);
        place.phase.store(EMPTY, Release);
    }
}

/// Sampler: the timers that threads have armed since the last call.
pub fn take_armed() -> impl Iterator<Item = Armed> {
    PLACE.iter().filter(|place| place.changes(ARMED, TAKEN)).filter_map(|place| {
        let ticket = Ticket::from_value(place.ticket.load(Relaxed));
        let (tid, timer) = (place.tid.load(Relaxed), CpuTimer::from_id(place.timer.load(Relaxed)));
        place.phase.store(EMPTY, Release);
        Some(Armed { tid, timer, ticket: ticket? })
    })
}

/// In the child of a fork: it has neither the timers nor the threads.
pub fn reset_after_fork() {
    OPEN.store(false, Relaxed);
    PLACE.iter().for_each(|place| place.phase.store(EMPTY, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::acquire_slot;
    use swipr_unwind::slot::{self, StackBounds};

    fn count(phase: u32) -> usize {
        PLACE.iter().filter(|place| place.phase.load(Relaxed) == phase).count()
    }

    #[test]
    fn a_thread_that_starts_takes_an_offer_and_leaves_its_timer() {
        assert!(offered(1, 2).is_none());
        offer(|| acquire_slot(0, StackBounds::default()));
        assert_eq!(count(OFFERED), PLACES);
        // The signal has a handler: a default action would end the process.
        std::thread::spawn(signals::install).join().unwrap().unwrap();
        let place = offered(1, 2).unwrap();
        assert_eq!(place.body(), [1, 2]);
        let armed = std::thread::spawn(|| (place.arm(), process::tid()).1).join().unwrap();
        let failed = offered(3, 4).unwrap();
        failed.give_back();
        let mut taken = take_armed();
        let timer = taken.next().unwrap();
        assert_eq!((timer.tid, taken.next().is_none(), count(EMPTY)), (armed, true, 1));
        drop(timer.timer);
        assert!(slot::release(timer.ticket));
        let mut back = 0;
        withdraw(|ticket| back += usize::from(slot::release(ticket)));
        assert_eq!((back, count(EMPTY)), (PLACES - 1, PLACES));
        assert!(offered(1, 2).is_none() && take(1, 2).is_none());
    }
}
