//! The signal handler: takes the interrupted registers, walks, leaves the stack in
//! the slot that came with the signal. It waits for nothing, takes no lock, touches no errno.
//!
//! Signals of the same number that are not ours go to the handler that was there before.

use crate::arch::{self, Arch, Native};
use crate::call_again::{call_again, goes_on, leave_for_call, note_coming, note_signal, undo_leaving};
use crate::frames::Frames;
use crate::memory::{self, OwnStack};
use crate::published;
use crate::registers::of_context;
use crate::slot::{self, Ticket};
#[cfg(target_arch = "x86_64")]
use crate::system_call;
use crate::walk::{Stop, walk_interrupted};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

/// `si_code` of signals sent by sigqueue(3) and its kin.
pub const SI_QUEUE: i32 = -1;
/// Bytes of `ucontext` that are read: all general registers.
const CONTEXT_BYTES: u64 = 512;

/// The start of Linux' `siginfo_t` for queued signals (sigaction(2)).
#[derive(Debug)]
#[repr(C)]
pub struct QueuedSignal {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    pid: i32,
    uid: u32,
    value: u64,
}

/// Signals there are (signal(7)), and the unused number 0.
const SIGNALS: usize = 65;
/// The host's handlers, by signal.
static PREVIOUS: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
static PREVIOUS_TAKES_INFO: [AtomicU32; SIGNALS] = [const { AtomicU32::new(0) }; SIGNALS];
static HANDLED: AtomicU32 = AtomicU32::new(0);

/// Remembers the host's own handler (0: default or ignored) of a signal number, for signals that are
/// not ours. Call before [`on_signal`] is installed for it.
pub fn set_previous(signal: i32, handler: usize, takes_info: bool) {
    let at = signal as usize;
    if let (Some(previous), Some(takes)) = (PREVIOUS.get(at), PREVIOUS_TAKES_INFO.get(at)) {
        takes.store(u32::from(takes_info), Relaxed);
        previous.store(handler, Release);
    }
}

/// Whether the host had a handler of its own for this signal.
pub fn has_previous(signal: i32) -> bool {
    PREVIOUS.get(signal as usize).is_none_or(|previous| previous.load(Relaxed) != 0)
}

/// Whether it is the kernel that calls [`on_signal`] for this signal, and not a handler of the host's that has taken its place and passes signals on.
#[cfg(target_arch = "x86_64")]
pub(crate) fn is_called_by_kernel(signal: i32) -> bool {
    let ours = on_signal as unsafe extern "C" fn(_, _, _) as usize;
    system_call::action(signal).is_ok_and(|action| action.handler == ours)
}

/// Signals of ours that were handled, whether or not in time; wraps around.
pub fn handled() -> u32 {
    HANDLED.load(Relaxed)
}

/// The handler to install with `SA_SIGINFO` and all signals blocked.
///
/// # Safety
/// To be called by the kernel only, as a signal handler with `SA_SIGINFO` and a mask of all signals.
pub unsafe extern "C" fn on_signal(signal: c_int, info: *mut QueuedSignal, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo, at least as long as our view of it.
    let (code, pid, value) = unsafe { ((*info).code, (*info).pid, (*info).value) };
    if code == SI_QUEUE
        && pid == memory::process_id()
        && let Some(ticket) = Ticket::from_value(value)
    {
        note_signal(signal);
        // SAFETY: `context` is the kernel's ucontext of this thread.
        unsafe { undo_leaving(context) };
        let goes_on = if slot::begin(ticket) {
            // SAFETY: as above.
            unsafe { note_coming(context, ticket) };
            // SAFETY: as above, the ticket is being written, and all signals are blocked.
            unsafe { answer(ticket, context as u64) };
            // SAFETY: the kernel's ucontext; all signals are blocked. Before the slot goes back: it tells when the thread was seen.
            let goes_on = unsafe { call_again(context, value) };
            slot::end(ticket);
            goes_on
        } else {
            // SAFETY: as above.
            unsafe { late(context) }
        };
        HANDLED.fetch_add(1, Relaxed);
        if goes_on {
            // SAFETY: as above; nothing is left to do.
            unsafe { leave_for_call(context) };
        }
        return;
    }
    if code == SI_QUEUE && pid == memory::process_id() && value == slot::INTERRUPT {
        // SAFETY: `context` is the kernel's ucontext of this thread, and all signals are blocked.
        unsafe { interrupt(context) };
        return;
    }
    // SAFETY: as this function's own.
    unsafe { pass_on(signal, info, context) };
}

/// # Safety
/// `context` is the address of this handler's ucontext; the slot of `ticket` is
/// marked as being written, by this thread; all signals are blocked.
unsafe fn answer(ticket: Ticket, context: u64) {
    let started = arch::ticks();
    let Some(slot) = ticket.slot() else { return };
    // SAFETY: the context holds at least CONTEXT_BYTES (the kernel's frame is larger).
    let mut memory = unsafe { OwnStack::of_context(context, CONTEXT_BYTES) };
    let mut total = 0;
    let mut stop = Stop::NotReady;
    // SAFETY: the slot is marked as being written.
    let rules = unsafe { published::current() };
    if let (Some(rules), Some(sp)) = (rules, of_context::<Native, _>(&mut memory, context, Native::SP)) {
        let bounds = slot.bounds();
        let in_use = bounds.in_use_up_to(sp, arch::thread_pointer());
        // SAFETY: frames between sp and the end of what is in use are this thread's, which cannot go on without them.
        unsafe { memory.set_stack(sp, bounds.low, in_use) };
        let mut frames = Frames::new(&slot.frames);
        // SAFETY: the slot is marked as being written, by this handler.
        let room = unsafe { slot.workspace() };
        // SAFETY: all signals are blocked.
        stop = unsafe {
            walk_interrupted::<Native, _>(&rules, &mut memory, context, bounds.high, &mut frames, room)
        };
        total = frames.total();
        slot.sp.store(sp, Relaxed);
    }
    slot.total.store(total as u32, Relaxed);
    slot.stop.store(stop as u32, Relaxed);
    slot.held.store(arch::ticks().wrapping_sub(started).min(u64::from(u32::MAX)) as u32, Relaxed);
}

/// # Safety
/// As [`call_again`].
#[cold]
#[inline(never)]
unsafe fn late(context: *mut c_void) -> bool {
    // SAFETY: the caller's contract.
    unsafe { call_again(context, 0) }
}

/// Whoever has left the call that was meant for another one with which the kernel goes on, goes on.
///
/// # Safety
/// As [`call_again`].
#[cold]
#[inline(never)]
unsafe fn interrupt(context: *mut c_void) {
    // SAFETY: the caller's contract.
    unsafe {
        undo_leaving(context);
        if goes_on(context) {
            leave_for_call(context);
        }
    }
}

/// # Safety
/// As [`on_signal`].
#[cold]
unsafe fn pass_on(signal: c_int, info: *mut QueuedSignal, context: *mut c_void) {
    let at = signal as usize;
    let (Some(previous), Some(takes_info)) = (PREVIOUS.get(at), PREVIOUS_TAKES_INFO.get(at)) else { return };
    let previous = previous.load(Acquire);
    if previous == 0 {
        return;
    }
    if takes_info.load(Relaxed) != 0 {
        // SAFETY: sigaction reported this address as a handler with SA_SIGINFO.
        let handler: unsafe extern "C" fn(c_int, *mut QueuedSignal, *mut c_void) =
            unsafe { core::mem::transmute(previous) };
        // SAFETY: called with what the kernel passed to us.
        unsafe { handler(signal, info, context) };
    } else {
        // SAFETY: sigaction reported this address as a handler without SA_SIGINFO.
        let handler: unsafe extern "C" fn(c_int) = unsafe { core::mem::transmute(previous) };
        // SAFETY: called with what the kernel passed to us.
        unsafe { handler(signal) };
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn the_kernels_siginfo_has_the_value_where_we_read_it() {
        assert_eq!(offset_of!(QueuedSignal, code), offset_of!(libc::siginfo_t, si_code));
        // SAFETY: siginfo_t is plain data.
        let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
        let ours = (&raw mut info).cast::<QueuedSignal>();
        // SAFETY: a siginfo_t is larger than our view of it.
        unsafe {
            (*ours).pid = 4711;
            (*ours).uid = 12;
            (*ours).value = 0x1234_5678_9abc_def0;
            assert_eq!((info.si_pid(), info.si_uid()), (4711, 12));
            assert_eq!(info.si_value().sival_ptr as u64, 0x1234_5678_9abc_def0);
        }
    }
}
