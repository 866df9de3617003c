//! A call that our signal cut short is gone on with or made again: the host sees no `EINTR` where it would see none without us.
//!
//! The sampler signals threads that run, but a thread may go to sleep between its look and the signal. Many calls
//! then end with `EINTR`, `SA_RESTART` or not (signal(7)), and many programs that expect no signal take that for an error, or for the
//! end of a wait.
//!
//! **Gone on with.** Of poll(2), sleeps and futex(2) with a time-out the kernel remembers when they end and what they wait for, until a handler returns ([`remembered`]). So ours does not return
//! where it has cut one of them short: it lets the kernel go on ([`leave`]). That is right whatever the program does, and however long the call has waited: it
//! ends when it would have ended, and with `EINTR` if a handler of the host's has run. Even the number of the call need not be known: syscall(2)'s futex is found by its arguments.
//! The kernel itself goes on like that with the calls of a thread that was stopped; when our signal comes at that moment the handler lets it, too.
//! Not where there is a seccomp(2) filter, which may not know the call, and not where [`leave`] cannot give back all that belongs to the thread.
//!
//! **Made again**: what the kernel does not remember, or may not go on with. Idea: the handler goes back to the `syscall` instruction. For the program that is as if the thread had been kept from running
//! for a moment right before the call, which can happen to any program at any time, provided that
//!
//! 1. *the call has done nothing yet, and nobody calls it to wait for a handler*: true of the calls in [`calls`] and no others. connect(2), close(2),
//!    read(2) and write(2) (files in user space) are not among them, nor pause(2), sigsuspend(2) and polls with a mask, but for a moment in a
//!    program that has no handlers;
//! 2. *it has not waited long*, or does not count from its beginning. Calls without a time-out or with a point in time are made again as they
//!    are; the kernel itself writes the rest of the time to where select(2), ppoll(2) and many sleeps have it. Others count from their beginning. The sampler
//!    saw the thread awake a moment before the signal, mostly not in this call, so that only that moment is added. Mostly: a thread may be woken in its
//!    call for nothing, by what another thread takes, by a broken datagram, by a debugger, by the work of a ring of io_uring. So the same call is begun again once
//!    at the most ([`once`]; twice where its time is a moment; where other threads write to its stack a few times), and then lasts up to twice its time; with rings nothing is made again. (Job control and freezers stop the whole process:
//!    nobody is asked for a while behind a stop that the sampler felt itself.)
//!    - Sleeps are not ended by what wakes them for nothing. Who was waiting for a CPU, and had not got one when the signal was there ([`Since::Waited`]), was
//!      woken in its sleep by somebody else, who may want it to end.
//!    - poll(2) and sockets say `EINTR` even when their time is over, as a thread finds that was woken at its end and has to wait for a CPU; to begin them again
//!      would double their time. Their end does not come between two looks where the time is long, unless the thread ran just then;
//!      where it is a moment, poll is gone on with or fails. For a socket, and who waited for a CPU until the signal was there, the time is over: that is what
//!      the host is told, a moment too early at the worst (woken for what another thread received), and once in that time.
//!    - Sockets say `EINTR` even when there is something to receive, for which the thread was woken. So that is received first, in the handler, without waiting;
//!      for the host the signal came a moment later.
//! 3. *it was our signal*. A handler of the host may have cut it short, which is what the program waits for, and have kept
//!    ours blocked until it returned: to go on would be to wait for ever. So the host's handlers are looked at ([`others`]), those that there are and those that the sampler has seen
//!    before: with one that blocks our signal, nothing is made again; with any, nothing is whose signal is pending, and 4 is wanted;
//! 4. *no handler of the host's has just returned*, with our signal on its way, which takes tens of microseconds where there is a hypervisor. Nothing proves it: clocks do not where a hypervisor takes CPUs away, counts of
//!    switches do not where a handler sleeps. But a thread that has computed for a while since the sampler saw it, or slept, or waited for a CPU until our signal was there, has more likely just begun its call than just left a
//!    long handler. So it makes its call again, in doubt ([`doubts`]): if it is still in there a moment later, the sampler cuts it short, and the host sees the `EINTR` that it would have seen at once. Who has hardly
//!    computed, as after a short handler, sees it at once.
//!
//! What is left of 4: a handler's effect may be seen [`SHORT_NS`] later, hardly ever. With handlers, waits of more than that see `EINTR` as under any signal.
//!
//! Polls that only ask, with a time-out of zero and no mask, are made again in any case: they return anyway.
//!
//! x86-64 only: on aarch64 the result of the call lies where its first argument was. Only where the number of the call is known ([`number`]): it was made by one of glibc's wrappers, not by syscall(2).

pub mod calls;
pub mod doubts;
#[cfg(target_arch = "x86_64")]
mod gone_on;
#[cfg(target_arch = "x86_64")]
mod leave;
#[cfg(target_arch = "x86_64")]
mod library;
#[cfg(target_arch = "x86_64")]
mod may_leave;
#[cfg(target_arch = "x86_64")]
mod number;
#[cfg(target_arch = "x86_64")]
mod once;
#[cfg(target_arch = "x86_64")]
mod others;
#[cfg(target_arch = "x86_64")]
mod registers;
mod remedy;
#[cfg(target_arch = "x86_64")]
mod remembered;
mod seen;
#[cfg(target_arch = "x86_64")]
mod stacks;
#[cfg(target_arch = "x86_64")]
mod ucontext;

pub use remedy::{Others, Remedy, remedy};
pub use seen::{Awake, Now, Seen, Since};

use crate::slot::{StackBounds, Ticket};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

/// The kernel's `-EINTR` in the result register.
#[cfg(target_arch = "x86_64")]
const INTERRUPTED: u64 = -4i64 as u64;
/// restart_syscall(2)'s number, in the same register: of a thread that was stopped (`SIGSTOP`, ptrace(2)) in a call with which the kernel goes on.
#[cfg(target_arch = "x86_64")]
const RESTARTED: u64 = 219;
/// A moment for which a program may be kept from running at any time. An older look says nothing of the call, and a wait that may have been longer is
/// begun again once at the most.
pub const SHORT_NS: u64 = 20_000_000;

/// The signal that is ours. Not carried through the handler: that would cost it stack.
static OURS: AtomicI32 = AtomicI32::new(0);

/// Whether calls are gone on with.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// What the kernel does for the host.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// It writes down the rest of the time of calls (personality(2)).
    pub writes_times: bool,
    /// It allows every system call: no seccomp(2) filter.
    pub allows_all: bool,
}

/// Sampler: looks at the host's handlers, to be remembered when they are gone. At the beginning of a recording, and every now and then.
pub fn note_host(signal: i32, kernel: Kernel) {
    GOES_ON.store(kernel.allows_all, Relaxed);
    #[cfg(target_arch = "x86_64")]
    may_leave::note_processor();
    #[cfg(target_arch = "x86_64")]
    others::note(signal, kernel.writes_times);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (signal, kernel);
}

/// Sampler: where the C library's code is, `at` 0 or 1 as it may be in two files. Calls are made again in there only: elsewhere what looks like its
/// wrappers may be other instructions, or the end of several calls with one `syscall` instruction.
pub fn note_library(at: usize, code: core::ops::Range<u64>) {
    #[cfg(target_arch = "x86_64")]
    library::note(at, code);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, code);
}

/// Sampler: the program has rings of io_uring(7).
pub fn note_rings() {
    #[cfg(target_arch = "x86_64")]
    others::note_rings();
}

/// Sampler: a thread, whose stack is there, is about to be asked.
pub fn note_stack(tid: u32, bounds: StackBounds) {
    #[cfg(target_arch = "x86_64")]
    stacks::note(tid, bounds);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (tid, bounds);
}

/// The signal by which the handler was called. Before [`call_again`].
#[inline(always)]
pub fn note_signal(signal: i32) {
    OURS.store(signal, Relaxed);
}

/// Sampler: the call in which a thread is that stands at `pc`, if the kernel goes on with it for us.
pub fn number_gone_on_with(tid: u32, pc: u64) -> Option<u32> {
    #[cfg(target_arch = "x86_64")]
    return gone_on::number(tid, pc);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (tid, pc);
        None
    }
}

/// Handler: when it came to a call that was cut short. What the thread does from now on says nothing of the call.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to this handler, which has marked the slot of `ticket` as being written.
#[inline(always)]
pub unsafe fn note_coming(context: *mut core::ffi::c_void, ticket: Ticket) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for the ucontext.
    if unsafe { registers::place(context, registers::RESULT).read() } == INTERRUPTED {
        others::note_coming(ticket);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (context, ticket);
}

/// Lets the thread whose `ucontext` this is make its call again, where that is right. `ticket`: the signal's value,
/// if the slot that it names is being written; else 0. Returns whether the handler is to end with [`leave_for_call`].
///
/// # Safety
/// `context` is the ucontext that the kernel passed to a handler of the signal that was noted; all signals are blocked while that
/// handler runs, so that another one arrives as if right before the call.
#[inline(always)]
pub unsafe fn call_again(context: *mut core::ffi::c_void, ticket: u64) -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the caller vouches for the ucontext.
        let result = unsafe { registers::place(context, registers::RESULT).read() };
        match result {
            // SAFETY: as the caller's.
            INTERRUPTED => return unsafe { registers::make_again(context, ticket) },
            // SAFETY: as the caller's.
            RESTARTED => return unsafe { registers::is_about_to_go_on(context) },
            _ => {}
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (context, ticket);
    false
}

/// Whether the kernel goes on with the call of the thread whose `ucontext` this is; the handler is to end with [`leave_for_call`], then.
///
/// # Safety
/// As [`call_again`].
pub unsafe fn goes_on(context: *mut core::ffi::c_void) -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's contract.
    return unsafe {
        registers::place(context, registers::RESULT).read() == INTERRUPTED
            && registers::is_remembered(context)
    };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = context;
        false
    }
}

/// A signal of ours may come while a thread leaves the handler for a call: it is then as if it had come in that call.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to this handler.
#[inline(always)]
pub unsafe fn undo_leaving(context: *mut core::ffi::c_void) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's contract.
    unsafe {
        if leave::is_leaving(registers::place(context, <crate::arch::X86_64 as crate::arch::Arch>::PC).read())
        {
            leave::undo(context);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = context;
}

/// Ends the handler: the thread goes on with the call that was cut short.
///
/// # Safety
/// [`call_again`] has said so, of this `context`; nothing is left to do in the handler.
#[inline(always)]
pub unsafe fn leave_for_call(context: *mut core::ffi::c_void) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's contract.
    unsafe {
        leave::leave(context);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = context;
}
