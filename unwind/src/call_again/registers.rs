//! The interrupted thread's registers, in the `ucontext` that the kernel passed to the handler.

use super::calls::{Call, SYSTEM_CALL, Wait};
use super::{OURS, Since, is_made_again, others};
use crate::arch::{Arch, X86_64};
use crate::memory::guarded_copy;
use crate::slot::{Slot, Ticket};
use core::ffi::c_void;
use core::sync::atomic::Ordering::Relaxed;

/// rax: the result of a call, before it its number.
pub const RESULT: u8 = 0;
/// rdi, rsi, rdx, r10, r8, r9, by their DWARF numbers.
const ARGUMENTS: [u8; 6] = [5, 4, 1, 10, 8, 9];

/// Where a register is. The offsets are inside of a ucontext and aligned (tested in `arch::x86_64`).
#[inline(always)]
pub fn place(context: *mut c_void, register: u8) -> *mut u64 {
    let offset = X86_64::context_offset(register).unwrap_or(0);
    context.cast::<u8>().wrapping_add(offset as usize).cast::<u64>()
}

/// Sends the thread back to the call that was cut short, if that is right. Apart from the handler, which needs less stack.
///
/// `ticket`: as a signal's value, in one register.
///
/// # Safety
/// As [`super::call_again`].
#[cold]
#[inline(never)]
pub unsafe fn make_again(context: *mut c_void, ticket: u64) {
    // SAFETY: the caller vouches for the ucontext.
    let Some(call) = (unsafe { interrupted_call(context) }) else { return };
    // SAFETY: as above.
    if unsafe { is_right(call.wait, context, Ticket::from_value(ticket)) } {
        let pc = place(context, X86_64::PC);
        // SAFETY: as above.
        unsafe {
            pc.write(pc.read().wrapping_sub(SYSTEM_CALL.len() as u64));
            place(context, RESULT).write(u64::from(call.number));
        }
    }
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn interrupted_call(context: *mut c_void) -> Option<Call> {
    // SAFETY: the caller vouches for the ucontext.
    let register = |number| unsafe { place(context, number).read() };
    let argument = |at| ARGUMENTS.get(at).map_or(0, |&number| register(number));
    Call::before(register(X86_64::PC), argument, guarded_copy, others::receive_time_ns)
}

/// # Safety
/// As [`super::call_again`].
#[inline(never)]
unsafe fn is_right(wait: Wait, context: *mut c_void, ticket: Option<Ticket>) -> bool {
    // SAFETY: the caller vouches for the ucontext; the mask is behind the registers (tested in `others`).
    let mask = unsafe { context.cast::<u8>().wrapping_add(others::MASK).cast::<u64>().read() };
    let since = || match (ticket.and_then(Ticket::slot).and_then(Slot::seen), others::now()) {
        (Some(seen), Some(now)) => seen.until(now),
        _ => Since::Unknown,
    };
    is_made_again(wait, || others::others(OURS.load(Relaxed), mask), since)
}
