//! The signal handler: takes the interrupted registers, walks, leaves the stack in
//! the slot that came with the signal. It waits for nothing, takes no lock, touches no errno.
//!
//! Other signals of the same number go to the handler that was there before.

use crate::arch::{self, Arch, Native};
use crate::frame_runs::NativeFrames;
use crate::frames::{self, Frames};
use crate::memory::OwnStack;
use crate::published;
use crate::published::interpreter::{self, Interpreter, Interrupted};
use crate::registers::of_context;
use crate::slot::{self, Slot, Ticket};
use crate::system_call;
use crate::walk::{Stop, walk_interrupted};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// `si_code` of signals that timers raise.
const SI_TIMER: i32 = -2;
/// Bytes of `ucontext` that are read: all general registers.
const CONTEXT_BYTES: u64 = 512;

/// The start of Linux' `siginfo_t` for the signals of timers (sigaction(2)).
#[derive(Debug)]
#[repr(C)]
pub struct TimerSignal {
    signal: i32,
    errno: i32,
    code: i32,
    padding: i32,
    timer: i32,
    overrun: i32,
    value: u64,
}

impl TimerSignal {
    /// That of a timer of this number which was made with `value`.
    pub const fn new(signal: i32, timer: i32, value: u64) -> TimerSignal {
        TimerSignal { signal, errno: 0, code: SI_TIMER, padding: 0, timer, overrun: 0, value }
    }
}

/// The handler that was there before; 0: none.
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
static PREVIOUS_TAKES_INFO: AtomicBool = AtomicBool::new(false);

/// Remembers the handler that was there before: signals that are not the agent's go there. Call
/// before [`on_signal`] is installed.
pub fn set_previous(handler: usize, takes_info: bool) {
    PREVIOUS_TAKES_INFO.store(takes_info, Relaxed);
    PREVIOUS.store(handler, Release);
}

/// The handler to install with `SA_SIGINFO` and all signals blocked.
///
/// # Safety
/// To be called by the kernel only, as a signal handler with `SA_SIGINFO` and a mask of all
/// signals.
pub unsafe extern "C" fn on_signal(signal: c_int, info: *mut TimerSignal, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo, at least as long as `TimerSignal`.
    let (code, timer, overrun, value) =
        unsafe { ((*info).code, (*info).timer, (*info).overrun, (*info).value) };
    if code == SI_TIMER
        && let Some(ticket) = Ticket::from_value(value)
    {
        if slot::begin(ticket, timer) {
            // SAFETY: `context` is the kernel's ucontext of this thread, the ticket is being
            // written, and all signals are blocked.
            unsafe { answer(ticket, overrun, context as u64) };
            slot::end(ticket);
        }
        return;
    }
    // SAFETY: as this function's own.
    unsafe { chain_to_host(signal, info, context) };
}

/// # Safety
/// `context` is the address of this handler's ucontext; the slot of `ticket` is
/// marked as being written, by this thread; all signals are blocked.
unsafe fn answer(ticket: Ticket, overrun: i32, context: u64) {
    let started = arch::ticks();
    let Some(slot) = ticket.slot() else { return };
    // SAFETY: the slot is marked as being written, by this handler.
    let window = unsafe { slot.window() };
    // SAFETY: the context holds at least CONTEXT_BYTES (the kernel's frame is larger).
    let mut memory = unsafe { OwnStack::of_context(context, CONTEXT_BYTES, window) };
    let mut total = 0;
    let mut stop = Stop::NotReady;
    // SAFETY: the slot is marked as being written.
    let rules = unsafe { published::current() };
    if let (Some(mut rules), Some(sp)) = (rules, of_context::<Native, _>(&mut memory, context, Native::SP)) {
        let bounds = slot.bounds().grown_to(sp, system_call::is_mapped);
        // SAFETY: from sp to the end of its own stack are this thread's frames. It needs them to
        // resume, so they stay mapped.
        unsafe { memory.set_stack(sp, bounds.own_low, bounds.own_high) };
        let mut frames = Frames::new(&slot.frames);
        // SAFETY: the slot is marked as being written, by this handler.
        let room = unsafe { slot.workspace() };
        rules.stack = room.reading_stack_top();
        // SAFETY: all signals are blocked.
        stop = unsafe {
            walk_interrupted::<Native, _>(&rules, &mut memory, context, bounds.high, &mut frames, room)
        };
        total = frames.total();
        slot.sp.store(sp, Relaxed);
        slot.thread_pointer.store(arch::thread_pointer(), Relaxed);
        // SAFETY: the slot is marked as being written.
        if let Some(interpreter) = unsafe { interpreter::current() } {
            // SAFETY: the slot is marked as being written, by this handler, and the walk is over.
            unsafe { read_interpreter(interpreter, slot, total, stop) };
        }
    }
    if slot.wants_name.load(Relaxed) {
        system_call::thread_name(&slot.name);
    }
    slot.overrun.store(overrun as u32, Relaxed);
    slot.at.store(started, Relaxed);
    slot.total.store(total as u32, Relaxed);
    slot.stop.store(stop as u32, Relaxed);
    slot.held.store(arch::ticks().wrapping_sub(started).min(u64::from(u32::MAX)) as u32, Relaxed);
}

/// Reads the frames of an interpreter, unless the native ones say that there are none.
///
/// # Safety
/// The slot is marked as being written, by this thread, and nothing else uses its workspace.
#[cold]
#[inline(never)]
unsafe fn read_interpreter(interpreter: &Interpreter, slot: &Slot, total: usize, stop: Stop) {
    let room = slot.room.load(Relaxed);
    // SAFETY: says the caller.
    let workspace = unsafe { slot.workspace() };
    let top = workspace.stack_top();
    let runs = workspace.runs();
    let mut words = frames::kept(&slot.frames, total);
    let pc = frames::kept(&slot.frames, total).next().unwrap_or(0) & !frames::EXACT;
    let may_run = match interpreter.is_native {
        true => !runs.kept().is_empty(),
        false => stop != Stop::Root || words.any(|word| interpreter.may_run(word & !frames::EXACT)),
    };
    if room.is_null() || !may_run {
        return;
    }
    let (data, thread_pointer, tid) = (interpreter.data, arch::thread_pointer(), slot.tid());
    let native = NativeFrames { storage: &slot.frames, total, runs, sp: slot.sp.load(Relaxed) };
    let mut interrupted = Interrupted { data, room, thread_pointer, pc, tid, native };
    // SAFETY: the stack is the workspace's own, which nothing else uses now; all signals are
    // blocked. What was published is for this argument.
    unsafe { arch::call_on_stack(top, interpreter.read, (&raw mut interrupted).cast()) };
}

/// # Safety
/// As [`on_signal`].
#[cold]
unsafe fn chain_to_host(signal: c_int, info: *mut TimerSignal, context: *mut c_void) {
    let previous = PREVIOUS.load(Acquire);
    if previous == 0 {
        return;
    }
    if PREVIOUS_TAKES_INFO.load(Relaxed) {
        // SAFETY: sigaction reported this address as a handler with SA_SIGINFO.
        let handler: unsafe extern "C" fn(c_int, *mut TimerSignal, *mut c_void) =
            unsafe { core::mem::transmute(previous) };
        // SAFETY: called with the kernel's own arguments.
        unsafe { handler(signal, info, context) };
    } else {
        // SAFETY: sigaction reported this address as a handler without SA_SIGINFO.
        let handler: unsafe extern "C" fn(c_int) = unsafe { core::mem::transmute(previous) };
        // SAFETY: called with the kernel's own argument.
        unsafe { handler(signal) };
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn the_kernels_siginfo_has_the_value_where_we_read_it() {
        assert_eq!(offset_of!(TimerSignal, code), offset_of!(libc::siginfo_t, si_code));
        // SAFETY: siginfo_t is plain data.
        let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
        let ours = (&raw mut info).cast::<TimerSignal>();
        // SAFETY: a siginfo_t is larger than our view of it.
        unsafe {
            (*ours).timer = 4711;
            (*ours).overrun = 12;
            (*ours).value = 0x1234_5678_9abc_def0;
            assert_eq!((info.si_timerid(), info.si_overrun()), (4711, 12));
            assert_eq!(info.si_value().sival_ptr as u64, 0x1234_5678_9abc_def0);
        }
    }
}
