//! Asking one thread for its stack with the product's own signal and slot, but by a signal from
//! here instead of the thread's timer: at a moment that the bench chooses.

use std::io;
use swipr_os::{memory, process};
use swipr_unwind::handler::TimerSignal;
use swipr_unwind::slot::{self, CHUNK_BYTES, StackBounds, Ticket};

/// A slot for a thread whose stack is there. There is one question at a time, so the first chunk is
/// enough.
pub fn lend(bounds: StackBounds) -> io::Result<Ticket> {
    if !slot::has_chunk(0) {
        let memory = memory::map_forever(CHUNK_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: zeroed pages, mapped for ever, given away here.
        unsafe { slot::add_chunk(0, memory) };
    }
    let ticket = slot::acquire(0, bounds).ok_or_else(|| io::Error::other("no slot is free"))?;
    if let Some(slot) = ticket.slot() {
        slot.set_owner(process::tid(), TIMER);
    }
    Ok(ticket)
}

/// A ticket that no handler can use, for measuring a queued signal alone.
pub fn ticket_of_nobody() -> io::Result<Ticket> {
    let ticket = lend(StackBounds::default())?;
    slot::release(ticket);
    Ok(ticket)
}

/// Sends a signal with tgkill(2).
pub fn send(tid: u32, signal: i32) {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_tgkill, process::pid() as i32, tid as i32, signal) };
}

/// The number of the timer that signals seem to come from.
const TIMER: i32 = 1;

/// Sends a signal with a slot, as a timer of the agent does (rt_tgsigqueueinfo(2)).
pub fn ask(tid: u32, signal: i32, ticket: Ticket) {
    /// Linux' siginfo_t, in full size.
    #[repr(C)]
    struct Info(TimerSignal, [u64; 12]);
    let info = Info(TimerSignal::new(signal, TIMER, ticket.to_value()), [0; 12]);
    let pid = process::pid() as i32;
    // SAFETY: `info` is a complete siginfo_t of 128 bytes.
    unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid as i32, signal, &raw const info) };
}

/// A signal handler as the kernel calls it.
pub type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Where a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// On the thread's alternate stack where it has one, as the agent's handler.
    Alternate,
    /// On the interrupted stack. framehop needs more than the alternate stacks that Rust gives its
    /// threads.
    Interrupted,
}

/// Installs `handler` with the same mask that the agent uses.
pub fn install(signal: i32, handler: Handler, stack: Stack) -> io::Result<()> {
    // SAFETY: plain data; the handler has SA_SIGINFO's signature.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        if stack == Stack::Alternate {
            action.sa_flags |= libc::SA_ONSTACK;
        }
        libc::sigfillset(&mut action.sa_mask);
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
