//! Slots: where a handler leaves the stack it walked.
//!
//! Constraint: the sampler must never wait for a thread, and a thread may answer late or never
//! (signals blocked, no CPU time under a quota, gone). Idea: each timer has a slot. The slot's
//! number and generation come with the timer's signal. A slot's state is one word of phase and
//! generation, changed by compare-and-swap only:
//!
//! ```text
//! Free(g) --acquire--> Lent(g) --handler--> Written(g) --handler--> Done(g) --again--> Lent(g)
//!                      `--cancel--> Free(g+1)                        `--release--> Free(g+1)
//! ```
//!
//! The handler of a deleted timer finds another generation, and writes nothing. A handler that runs
//! before its last answer was taken finds another phase. Slots' memory is mapped in chunks on
//! demand and stays mapped, so a late handler never meets unmapped memory.
//!
//! Orderings: `Lent -> Written` is SeqCst, see `published`. `-> Done` releases what the handler
//! wrote; the sampler acquires it. `-> Lent` releases the bounds that the sampler wrote for the
//! handler.

mod bounds;
mod state;

pub use bounds::StackBounds;

use crate::frames::Storage;
use crate::walk::Workspace;
use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use state::State;

/// Slots in one chunk of memory.
pub const CHUNK: usize = 32;
/// Chunks there can be.
pub const CHUNKS: usize = 128;
/// Slots there can be: timers there can be at the same time.
pub const SLOTS: usize = CHUNK * CHUNKS;

/// Bytes of another stack that are read at once: some ten frames.
const WINDOW: usize = 2048;

/// Request and answer of one sample.
#[derive(Debug)]
#[repr(C)]
pub struct Slot {
    /// Sampler to handler: [`StackBounds`], in the order of its fields.
    bounds: [AtomicU64; 4],
    /// The thread's id and the number of its timer, see [`Slot::set_owner`].
    owner: AtomicU64,
    /// Handler to sampler: how long the handler took, in [`crate::arch::ticks`].
    pub held: AtomicU32,
    /// Handler to sampler: the overruns of its timer (timer_getoverrun(2)).
    pub overrun: AtomicU32,
    /// Handler to sampler: when it came, in [`crate::arch::ticks`].
    pub at: AtomicU64,
    /// Handler to sampler: the stack pointer, so that the sampler can learn the bounds.
    pub sp: AtomicU64,
    /// The same for [`crate::arch::thread_pointer`].
    pub thread_pointer: AtomicU64,
    /// Why the walk stopped (`walk::Stop`).
    pub stop: AtomicU32,
    /// Frames of the stack, kept or not.
    pub total: AtomicU32,
    /// Thread to sampler: when it began to fork, in [`crate::arch::ticks`], if it is in fork(2), or
    /// was when the handler came; else 0.
    pub fork_from: AtomicU64,
    /// Its CPU clock then, in nanoseconds.
    pub fork_cpu_ns: AtomicU64,
    /// Sampler to thread: sweeps arm the timer; one has armed it.
    pub is_for_sweeps: AtomicBool,
    /// See `is_for_sweeps`.
    pub is_armed: AtomicBool,
    /// Sampler to handler: the thread's name is wanted, too. It may end before the sampler sees it.
    pub wants_name: AtomicBool,
    /// Handler to sampler: that name (PR_GET_NAME of prctl(2)).
    pub name: [AtomicU64; 2],
    /// Sampler to handler: room for the frames of an interpreter; null: there is none. Its content
    /// belongs to the handler between [`begin`] and [`end`]. The memory stays for ever.
    pub room: AtomicPtr<c_void>,
    /// The frames.
    pub frames: Storage,
    /// The handler's own, between [`begin`] and [`end`].
    workspace: UnsafeCell<Workspace>,
    window: UnsafeCell<[u8; WINDOW]>,
}

// SAFETY: all else are atomics; the two are reached through `Slot::workspace` and `Slot::window`
// only, whose caller is alone.
unsafe impl Sync for Slot {}

impl Slot {
    /// Room for the walk.
    ///
    /// # Safety
    /// The calling handler has marked this slot as being written ([`begin`]), and keeps no other
    /// reference to it.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn workspace(&self) -> &mut Workspace {
        // SAFETY: one handler at a time marks a slot, and it is the caller.
        unsafe { &mut *self.workspace.get() }
    }

    /// Room for pieces of stacks that the thread is not on.
    ///
    /// # Safety
    /// As [`Slot::workspace`].
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn window(&self) -> &mut [u8] {
        // SAFETY: one handler at a time marks a slot, and it is the caller.
        unsafe { &mut *self.window.get() }
    }

    /// Sampler: sets the thread, and the kernel's number of the timer whose signals are for it. To
    /// be called while the slot is lent: until then no signal is answered.
    pub fn set_owner(&self, tid: u32, timer: i32) {
        self.owner.store(u64::from(tid) << 32 | u64::from(timer as u32), Relaxed);
    }

    /// The thread whose stack is in it.
    pub fn tid(&self) -> u32 {
        (self.owner.load(Relaxed) >> 32) as u32
    }

    /// Handler: whether the signal of this timer is for this slot.
    #[inline(always)]
    fn is_of(&self, timer: i32) -> bool {
        let owner = self.owner.load(Relaxed);
        owner >> 32 != 0 && owner as u32 == timer as u32
    }

    /// Sampler, while the slot is free or answered: the bounds for the next answer.
    fn set_bounds(&self, bounds: StackBounds) {
        let StackBounds { low, high, own_low, own_high } = bounds;
        let values = [low, high, own_low, own_high];
        self.bounds.iter().zip(values).for_each(|(bound, value)| bound.store(value, Relaxed));
    }

    /// The bounds that [`acquire`] or [`again`] set.
    #[inline(always)]
    pub fn bounds(&self) -> StackBounds {
        let [low, high, own_low, own_high] = self.bounds.each_ref().map(|bound| bound.load(Relaxed));
        StackBounds { low, high, own_low, own_high }
    }
}

/// Bytes of one chunk; must be zero when it is given to [`add_chunk`].
pub const CHUNK_BYTES: usize = CHUNK * size_of::<Slot>();

static STATES: [State; SLOTS] = [const { State(AtomicU64::new(0)) }; SLOTS];
static MEMORY: [AtomicPtr<Slot>; CHUNKS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS];

/// A slot's number, and the generation in which it was lent: what comes with a timer's signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    index: u16,
    generation: u32,
}

/// Marks the signal's value as the agent's ("sw").
const MAGIC: u64 = 0x7377 << 48;

impl Ticket {
    /// As a signal's value.
    pub fn to_value(self) -> u64 {
        MAGIC | u64::from(self.index) << 32 | u64::from(self.generation)
    }

    /// From a signal's value; `None` if it is not the agent's.
    pub fn from_value(value: u64) -> Option<Ticket> {
        let index = (value >> 32) as u16;
        (value >> 48 == MAGIC >> 48 && usize::from(index) < SLOTS)
            .then_some(Ticket { index, generation: value as u32 })
    }

    /// The slot's number: a hint for [`acquire`].
    pub fn index(self) -> usize {
        usize::from(self.index)
    }

    fn state(self) -> Option<&'static State> {
        STATES.get(self.index())
    }

    /// The slot's memory, if its chunk is there.
    pub fn slot(self) -> Option<&'static Slot> {
        let index = self.index();
        let chunk = MEMORY.get(index / CHUNK)?.load(Acquire);
        if chunk.is_null() {
            return None;
        }
        // SAFETY: `add_chunk`'s caller gave CHUNK slots of zeroed memory for ever; all fields are
        // atomics, but for the workspace and the window, for which zeroes are good.
        Some(unsafe { &*chunk.add(index % CHUNK) })
    }
}

/// Gives the slots of `chunk` their memory. `false` if there is memory already.
///
/// # Safety
/// `memory` is [`CHUNK_BYTES`] of zeroed, 8-aligned memory that nothing else uses and that stays
/// mapped for as long as the process lives.
pub unsafe fn add_chunk(chunk: usize, memory: *mut u8) -> bool {
    match MEMORY.get(chunk) {
        Some(place) => place.compare_exchange(core::ptr::null_mut(), memory.cast(), AcqRel, Relaxed).is_ok(),
        None => false,
    }
}

/// Whether the slots of `chunk` have their memory.
pub fn has_chunk(chunk: usize) -> bool {
    MEMORY.get(chunk).is_some_and(|place| !place.load(Acquire).is_null())
}

/// Lends a free slot whose memory is there, the first from `hint` on, with these bounds and without
/// an owner yet.
pub fn acquire(hint: usize, bounds: StackBounds) -> Option<Ticket> {
    let chunks = MEMORY.iter().take_while(|chunk| !chunk.load(Relaxed).is_null()).count();
    let slots = chunks * CHUNK;
    (0..slots).find_map(|n| {
        let index = (hint % slots + n) % slots;
        let state = STATES.get(index)?;
        let ticket = Ticket { index: index as u16, generation: state.free()? };
        let slot = ticket.slot()?;
        slot.owner.store(0, Relaxed);
        slot.wants_name.store(false, Relaxed);
        slot.is_armed.store(false, Relaxed);
        slot.is_for_sweeps.store(false, Relaxed);
        slot.fork_from.store(0, Relaxed);
        slot.set_bounds(bounds);
        state.acquire(ticket.generation).then_some(ticket)
    })
}

/// Handler: claims the slot for writing, for a signal of `timer`. `false`: write nothing.
#[inline(always)]
pub fn begin(ticket: Ticket, timer: i32) -> bool {
    ticket.slot().is_some_and(|slot| slot.is_of(timer))
        && ticket.state().is_some_and(|state| state.begin(ticket.generation))
}

/// Handler: the answer is complete.
#[inline(always)]
pub fn end(ticket: Ticket) {
    if let Some(state) = ticket.state() {
        state.end(ticket.generation);
    }
}

/// Sampler: whether the answer is there. The slot's content stays until [`release`].
pub fn is_done(ticket: Ticket) -> bool {
    ticket.state().is_some_and(|state| state.is_done(ticket.generation))
}

/// Sampler: whether a handler is writing the answer, or has written it. While the handler runs, the
/// kernel shows the thread's signals as blocked.
pub fn is_begun(ticket: Ticket) -> bool {
    ticket.state().is_some_and(|state| state.is_written() || state.is_done(ticket.generation))
}

/// Sampler: the answer was taken; the slot is lent for the next one.
pub fn again(ticket: Ticket, bounds: StackBounds) {
    if let (Some(slot), Some(state)) = (ticket.slot(), ticket.state()) {
        slot.set_bounds(bounds);
        state.again(ticket.generation);
    }
}

/// Sampler: takes back the slot of a deleted timer. `false`: a handler is writing its answer.
pub fn release(ticket: Ticket) -> bool {
    ticket.state().is_some_and(|state| state.cancel(ticket.generation) || state.release(ticket.generation))
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    let chunks = MEMORY.iter().map(|chunk| chunk.load(Acquire)).take_while(|chunk| !chunk.is_null());
    // SAFETY: as in `Ticket::slot`.
    chunks.flat_map(|chunk| (0..CHUNK).map(move |n| unsafe { &*chunk.add(n) }))
}

/// The kernel's numbers of the timers of thread `tid`.
pub fn timers_of(tid: u32) -> impl Iterator<Item = i32> {
    let owners = slots().map(|slot| slot.owner.load(Relaxed));
    owners.filter(move |owner| (owner >> 32) as u32 == tid).map(|owner| owner as u32 as i32)
}

/// The same for those whose slots are lent and not answered, with the slots.
pub fn lent_to(tid: u32) -> impl Iterator<Item = (i32, &'static Slot)> {
    let lent = STATES.iter().zip(slots()).filter(|(state, _)| state.is_lent()).map(|(_, slot)| slot);
    let owners = lent.map(|slot| (slot.owner.load(Relaxed), slot));
    let own = owners.filter(move |(owner, _)| (owner >> 32) as u32 == tid);
    own.map(|(owner, slot)| (owner as u32 as i32, slot))
}

/// Whether any handler is between [`begin`] and [`end`] right now.
pub fn any_written() -> bool {
    STATES.iter().any(State::is_written)
}

/// After fork, in the child: frees all slots, as none of their timers exists here. Slots without
/// memory were never lent: their states' pages stay the parent's.
pub fn reset_after_fork() {
    STATES.iter().zip(slots()).for_each(|(state, slot)| {
        state.reset();
        slot.set_owner(0, 0);
    });
}

#[cfg(test)]
mod tests;
