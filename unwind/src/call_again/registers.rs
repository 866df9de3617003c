//! The interrupted thread's registers, in the `ucontext` that the kernel passed to the handler.

use super::calls::{self, Wait};
use super::doubts::Doubt;
use super::number::{At, SYSTEM_CALL, is_nameless, number_before};
use super::{
    GOES_ON, INTERRUPTED, OURS, Remedy, Since, gone_on, library, may_leave, once, others, remedy, remembered,
};
use crate::arch::{Arch, X86_64};
use crate::memory::guarded_copy;
use crate::slot::Ticket;
use crate::{handler, system_call};
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;

/// rax: the result of a call, before it its number.
pub const RESULT: u8 = 0;
/// rdi, rsi, rdx, r10, r8, r9, by their DWARF numbers.
const ARGUMENTS: [u8; 6] = [5, 4, 1, 10, 8, 9];
const MSG_DONTWAIT: usize = 0x40;
const MSG_WAITALL: usize = 0x100;
/// `-EAGAIN`: nothing came, without waiting or in the time of a socket (socket(7), SO_RCVTIMEO).
const NOTHING: u64 = -11i64 as u64;

/// Where a register is. The offsets are inside of a ucontext and aligned (tested in `arch::x86_64`).
#[inline(always)]
pub fn place(context: *mut c_void, register: u8) -> *mut u64 {
    let offset = X86_64::context_offset(register).unwrap_or(0);
    context.cast::<u8>().wrapping_add(offset as usize).cast::<u64>()
}

/// Sends the thread back to the call that was cut short, or ends it, if that is right. Apart from the handler, which needs less stack.
///
/// `ticket`: as a signal's value, in one register. Returns whether the handler is to end with [`super::leave_for_call`], as the kernel goes on with the call.
///
/// # Safety
/// As [`super::call_again`].
#[cold]
#[inline(never)]
pub unsafe fn make_again(context: *mut c_void, ticket: u64) -> bool {
    // SAFETY: the caller vouches for the ucontext.
    let found = unsafe { number_of_call(context) };
    // SAFETY: as above.
    if unsafe { goes_on(found, context) } {
        return true;
    }
    if let Some(number) = found {
        // SAFETY: as above.
        unsafe { begin_again(number, context, ticket) };
    }
    false
}

/// Whether the kernel goes on with the call.
///
/// # Safety
/// As [`super::call_again`].
pub unsafe fn is_remembered(context: *mut c_void) -> bool {
    // SAFETY: the caller's contract.
    unsafe { goes_on(number_of_call(context), context) }
}

/// Whether the kernel goes on with the call, of this number if it has been found.
///
/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn goes_on(number: Option<u32>, context: *mut c_void) -> bool {
    // SAFETY: the caller vouches for the ucontext.
    let register = |number| unsafe { place(context, number).read() };
    let argument = |at| ARGUMENTS.get(at).map_or(0, |&number| register(number));
    let number = match number {
        Some(number) => remembered::is_remembered(number, argument).then_some(number),
        None => remembered::nameless(argument, two_words).filter(|_| {
            library::has(register(X86_64::PC)) && is_nameless(register(X86_64::PC), guarded_copy)
        }),
    };
    let Some(number) = number.filter(|_| GOES_ON.load(Relaxed)) else { return false };
    // SAFETY: as above.
    if !unsafe { may_leave(context) } {
        return false;
    }
    gone_on::note(register(X86_64::PC), number);
    true
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn may_leave(context: *mut c_void) -> bool {
    // SAFETY: the caller's contract.
    handler::is_called_by_kernel(OURS.load(Relaxed)) && unsafe { may_leave::may_leave(context) }
}

/// Whether the thread stands before a `syscall` instruction by which the kernel wants to go on with a call: our return would make it forget the call. Then
/// the thread's registers are as if that call had just been cut short.
///
/// # Safety
/// As [`super::call_again`].
#[cold]
#[inline(never)]
pub unsafe fn is_about_to_go_on(context: *mut c_void) -> bool {
    let at = place(context, X86_64::PC);
    // SAFETY: the caller vouches for the ucontext.
    let pc = unsafe { at.read() };
    let mut code = [0; SYSTEM_CALL.len()];
    if guarded_copy(pc, &mut code) != code.len() || code != SYSTEM_CALL {
        return false;
    }
    // SAFETY: as above.
    if !unsafe { may_leave(context) } {
        return false;
    }
    // SAFETY: as above.
    unsafe {
        at.write(pc.wrapping_add(SYSTEM_CALL.len() as u64));
        place(context, RESULT).write(INTERRUPTED);
    }
    true
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn begin_again(number: u32, context: *mut c_void, ticket: u64) {
    let ticket = Ticket::from_value(ticket);
    // SAFETY: the caller vouches for the ucontext.
    let Some(wait) = (unsafe { wait(number, context) }) else { return };
    // SAFETY: as above.
    let (remedy, in_doubt) = unsafe { remedy_for(wait, number, context, ticket) };
    if let Remedy::Once(time_ns) | Remedy::Over(time_ns) = remedy {
        // SAFETY: as above.
        let register = |number| unsafe { place(context, number).read() };
        if !once::begins(register(X86_64::PC), register(X86_64::SP), time_ns) {
            return;
        }
    }
    let waits_again = matches!(remedy, Remedy::Again | Remedy::Once(_));
    // SAFETY: as above.
    if waits_again && in_doubt && !unsafe { doubts(context) } {
        return;
    }
    let result = match remedy {
        Remedy::None => return,
        Remedy::Again | Remedy::Once(_) => {
            let pc = place(context, X86_64::PC);
            // SAFETY: as above.
            unsafe { pc.write(pc.read().wrapping_sub(SYSTEM_CALL.len() as u64)) };
            u64::from(number)
        }
        Remedy::Over(_) => NOTHING,
        Remedy::Received(result) => result,
    };
    // SAFETY: as above.
    unsafe { place(context, RESULT).write(result) };
}

/// The thread is about to make its call again, which may be wrong; whether it may.
///
/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn doubts(context: *mut c_void) -> bool {
    // SAFETY: the caller vouches for the ucontext.
    let (pc, sp) = unsafe { (place(context, X86_64::PC).read(), place(context, X86_64::SP).read()) };
    let tid = system_call::thread_id() as u32;
    others::now().is_some_and(|now| Doubt { tid, pc, sp, at_ns: now.at_ns, cpu_ns: now.cpu_ns }.open())
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn number_of_call(context: *mut c_void) -> Option<u32> {
    // SAFETY: the caller vouches for the ucontext.
    let register = |number| unsafe { place(context, number).read() };
    if !library::has(register(X86_64::PC)) {
        return None;
    }
    let at = At { pc: register(X86_64::PC), sp: register(X86_64::SP), fp: register(X86_64::FP) };
    number_before(at, guarded_copy)
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn wait(number: u32, context: *mut c_void) -> Option<Wait> {
    // SAFETY: the caller vouches for the ucontext.
    let register = |number| unsafe { place(context, number).read() };
    let argument = |at| ARGUMENTS.get(at).map_or(0, |&number| register(number));
    // SAFETY: as above.
    calls::wait(number, unsafe { blocked(context) }, argument, two_words, others::receive_time_ns)
}

/// The signals that the thread blocks, but for what the call alone lets in.
///
/// # Safety
/// As [`super::call_again`].
unsafe fn blocked(context: *mut c_void) -> u64 {
    // SAFETY: the caller vouches for the ucontext; the mask is behind the registers (tested in `others`).
    unsafe { context.cast::<u8>().wrapping_add(others::MASK).cast::<u64>().read() }
}

/// A timeval, a timespec, a mask and what follows it.
fn two_words(address: u64) -> Option<[u64; 2]> {
    let mut words = [0; 16];
    let [a, b, c, d, e, f, g, h, high @ ..] =
        (guarded_copy(address, &mut words) == words.len()).then_some(words)?;
    Some([u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u64::from_ne_bytes(high)])
}

/// Makes a call that receives, without waiting: its result, unless there is nothing. The host's buffers are written as by the call itself.
///
/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn received(number: u32, context: *mut c_void) -> Option<u64> {
    let flags = calls::flags_of_receiving(number)?;
    // SAFETY: the caller vouches for the ucontext.
    let mut arguments = ARGUMENTS.map(|register| unsafe { place(context, register).read() } as usize);
    let flags = arguments.get_mut(flags)?;
    // Who wants all of something gets no part of it.
    if *flags & MSG_WAITALL != 0 {
        return None;
    }
    *flags |= MSG_DONTWAIT;
    // SAFETY: the host's own call, on whose behalf the thread stands there, but for the flag.
    let result = unsafe { system_call::receive(number, arguments) };
    (result != NOTHING && result != INTERRUPTED).then_some(result)
}

/// What the thread did since it was seen awake.
#[inline(never)]
fn since(ticket: Option<Ticket>) -> Since {
    let looked = ticket.and_then(Ticket::slot).map(|slot| &slot.looked);
    let when = looked.and_then(|looked| looked.seen().zip(looked.when_it_came()));
    when.map_or(Since::Unknown, |(seen, now)| seen.until(now))
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn remedy_for(
    wait: Wait,
    number: u32,
    context: *mut c_void,
    ticket: Option<Ticket>,
) -> (Remedy, bool) {
    // SAFETY: the caller's contract.
    let mask = unsafe { blocked(context) };
    // SAFETY: as above.
    let received = || unsafe { received(number, context) };
    remedy(wait, || others::others(OURS.load(Relaxed), mask), || since(ticket), received)
}
