//! What the signal handler calls after it has walked the native stack.

use crate::blocks::{BlockMemory, Pool};
use crate::known::KnownKeys;
use crate::python::ThreadKey;
use crate::room::{End, Room};
use crate::runtime::Runtime;
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;
use swipr_unwind::published::interpreter::Interrupted;

/// What handlers read a runtime's frames with, as published.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// The runtime.
    pub runtime: Runtime,
    /// Functions that need not be copied.
    pub known: KnownKeys<'a>,
    /// Blocks for the walk.
    pub pool: &'a Pool,
}

/// For [`swipr_unwind::published::interpreter::Interpreter::read`].
///
/// # Safety
/// `interrupted` is a valid [`Interrupted`], its `data` a valid [`Reader`], and its `room` a
/// [`Room`] of which the caller alone uses the chain, or null.
pub unsafe extern "C" fn read(interrupted: *mut c_void) {
    // SAFETY: says the caller.
    let asked = unsafe { &*interrupted.cast::<Interrupted<'_>>() };
    // SAFETY: says the caller.
    let (reader, room) = unsafe { (&*asked.data.cast::<Reader<'_>>(), asked.room.cast::<Room>().as_mut()) };
    let Some(room) = room else { return };
    room.thread_pointer.store(asked.thread_pointer, Relaxed);
    let state = room.state.load(Relaxed);
    let thread = ThreadKey { tid: asked.tid, pointer: asked.thread_pointer, pc: asked.pc };
    let (chain, guess) = (&mut room.chain, &mut room.guess);
    let walked = reader.pool.with(|blocks| {
        let mut memory = BlockMemory::new(blocks, -1);
        memory.expect(guess);
        reader.runtime.walk(state, (thread, asked.native), &mut memory, reader.known, chain);
        memory.learn(guess);
    });
    if walked.is_none() {
        chain.begin();
        chain.finish(End::NoPages);
    }
}
