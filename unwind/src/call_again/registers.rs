//! The interrupted thread's registers, in the `ucontext` that the kernel passed to the handler.

use super::calls::{self, Wait};
use super::number::{At, SYSTEM_CALL, number_before};
use super::{GOES_ON, OURS, Remedy, Since, library, once, others, remedy};
use crate::arch::{Arch, X86_64};
use crate::memory::guarded_copy;
use crate::slot::{self, Slot, Ticket};
use crate::system_call;
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;

/// rax: the result of a call, before it its number.
pub const RESULT: u8 = 0;
/// rdi, rsi, rdx, r10, r8, r9, by their DWARF numbers.
const ARGUMENTS: [u8; 6] = [5, 4, 1, 10, 8, 9];
/// The first of them, of calls that receive.
const SOCKET: u8 = ARGUMENTS[0];
/// `-EAGAIN`: nothing came in the time of a socket (socket(7), SO_RCVTIMEO).
const TIME_IS_OVER: u64 = -11i64 as u64;

/// Where a register is. The offsets are inside of a ucontext and aligned (tested in `arch::x86_64`).
#[inline(always)]
pub fn place(context: *mut c_void, register: u8) -> *mut u64 {
    let offset = X86_64::context_offset(register).unwrap_or(0);
    context.cast::<u8>().wrapping_add(offset as usize).cast::<u64>()
}

/// Sends the thread back to the call that was cut short, or ends it, if that is right. Apart from the handler, which needs less stack.
///
/// `ticket`: as a signal's value, in one register.
///
/// # Safety
/// As [`super::call_again`].
#[cold]
#[inline(never)]
pub unsafe fn make_again(context: *mut c_void, ticket: u64) {
    let ticket = Ticket::from_value(ticket);
    // SAFETY: the caller vouches for the ucontext.
    let Some(number) = (unsafe { number_of_call(context) }) else { return };
    // SAFETY: as above.
    let Some(wait) = (unsafe { wait(number, context) }) else { return };
    // SAFETY: as above.
    let remedy = unsafe { remedy_for(wait, context, ticket) };
    if let Remedy::Once(time_ns) = remedy {
        // SAFETY: as above.
        let register = |number| unsafe { place(context, number).read() };
        let slot = ticket.and_then(Ticket::slot);
        if !slot.is_some_and(|slot| once::begins(slot, register(X86_64::PC), register(X86_64::SP), time_ns)) {
            return;
        }
    }
    let result = match remedy {
        Remedy::None => return,
        Remedy::Again | Remedy::Once(_) => {
            let pc = place(context, X86_64::PC);
            // SAFETY: as above.
            unsafe { pc.write(pc.read().wrapping_sub(SYSTEM_CALL.len() as u64)) };
            u64::from(number)
        }
        Remedy::GoOn => {
            // The answer is complete, and need not wait.
            ticket.into_iter().for_each(slot::end);
            let Ok(result) = system_call::go_on() else { return };
            result as u64
        }
        Remedy::Over => TIME_IS_OVER,
    };
    // SAFETY: as above.
    unsafe { place(context, RESULT).write(result) };
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
    calls::wait(number, argument, two_words, others::receive_time_ns)
}

/// A timeval or a timespec.
fn two_words(address: u64) -> Option<[u64; 2]> {
    let mut words = [0; 16];
    let [a, b, c, d, e, f, g, h, high @ ..] =
        (guarded_copy(address, &mut words) == words.len()).then_some(words)?;
    Some([u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u64::from_ne_bytes(high)])
}

/// Whether a call that receives would not wait now.
///
/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn is_ready(context: *mut c_void) -> bool {
    // SAFETY: the caller vouches for the ucontext.
    let socket = unsafe { place(context, SOCKET).read() };
    system_call::can_receive(socket as i32) == Ok(true)
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn remedy_for(wait: Wait, context: *mut c_void, ticket: Option<Ticket>) -> Remedy {
    // SAFETY: the caller vouches for the ucontext; the mask is behind the registers (tested in `others`).
    let mask = unsafe { context.cast::<u8>().wrapping_add(others::MASK).cast::<u64>().read() };
    let since = || match (ticket.and_then(Ticket::slot).and_then(Slot::seen), others::now()) {
        (Some(seen), Some(now)) => seen.until(now),
        _ => Since::Unknown,
    };
    // SAFETY: as above.
    let is_ready = || unsafe { is_ready(context) };
    remedy(wait, GOES_ON.load(Relaxed), || others::others(OURS.load(Relaxed), mask), since, is_ready)
}
