//! Whether a handler may end without returning ([`super::leave`]): what rt_sigreturn(2) would give back, and where there is room.

use super::stacks;
use super::ucontext::*;
use crate::slot::StackBounds;
use crate::{arch, system_call};
use core::arch::{asm, x86_64::__cpuid_count};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

const UC_FP_XSTATE: u64 = 1;
const SS_AUTODISARM: u32 = 1 << 31;
const CODE_OF_64_BITS: u16 = 0x33;
const TRAP: u64 = 1 << 8;

/// `struct _fpx_sw_bytes` in what FXSAVE leaves unused, and the header behind that.
const SOFTWARE: usize = 464;
const SIZE_OF_ALL: usize = SOFTWARE + 16;
const HEADER: usize = 512;
const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
/// XSAVE's component of the rights of protection keys (pkeys(7)).
const PKRU: u32 = 9;

/// Where XSAVE's standard format has the rights of protection keys; 0: it has none, [`UNKNOWN`]: nobody has asked yet.
static RIGHTS_AT: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = u32::MAX;

/// Asks the processor what [`may_leave`] needs to know. Slow where there is a hypervisor.
pub fn note_processor() {
    const STATE: u32 = 0xd;
    if RIGHTS_AT.load(Relaxed) == UNKNOWN {
        let has_leaf = __cpuid_count(0, 0).eax >= STATE;
        RIGHTS_AT.store(if has_leaf { __cpuid_count(STATE, PKRU).ebx } else { 0 }, Relaxed);
    }
}

/// The most that the kernel's frame and what it keeps free above it need (AMX and all).
const LARGEST_FRAME: u64 = 0x4000;
const PAGE: u64 = 0x1000;
/// `PTHREAD_STACK_MIN`, at whose upper end the C library has the block that the thread pointer points to.
const SMALLEST_STACK: u64 = 0x4000;

/// Whether [`super::leave`] may write below the host's stack pointer: the kernel has done so already, or it is the thread's own stack, as far as the C library and the kernel know,
/// and not nearly full. Else there may be anything: what runs on stacks of its own, with an alternate one for signals, may have made them as small as it likes.
fn has_room(context: u64, sp: u64, thread_pointer: u64, alternate: [u64; 2], bounds: StackBounds) -> bool {
    let is_alternate = |address: u64| address.wrapping_sub(alternate[0]) < alternate[1];
    let is_below = sp.wrapping_sub(context) < LARGEST_FRAME && is_alternate(sp) == is_alternate(context);
    let is_near_its_end = thread_pointer.wrapping_sub(sp) < SMALLEST_STACK / 2;
    let is_its_own = bounds.in_use_up_to(sp, thread_pointer) != 0 && sp.wrapping_sub(bounds.low) > PAGE;
    is_below || is_near_its_end || is_its_own
}

/// Whether [`super::leave`] gives back all that rt_sigreturn(2) would, and has room for it. Not with a shadow stack, an alternate stack that the kernel has disarmed, code of 32 bits, a debugger's single steps,
/// rights of protection keys that are not a handler's, or where the processor has no XSAVE.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to this handler.
#[inline(never)]
pub unsafe fn may_leave(context: *mut c_void) -> bool {
    // SAFETY: all of it lies in the kernel's frame, which is as long as it says.
    unsafe {
        let bounds = stacks::bounds(system_call::thread_id() as u32).unwrap_or_default();
        let alternate = [read(context, UC_STACK), read(context, UC_STACK_SIZE)];
        if !has_room(context as u64, read(context, SP), arch::thread_pointer(), alternate, bounds) {
            return false;
        }
        let fp = read::<u64>(context, FLOATING_POINT) as *mut c_void;
        if read::<u64>(context, UC_FLAGS) & UC_FP_XSTATE == 0 || fp.is_null() || !fp.addr().is_multiple_of(64)
        {
            return false;
        }
        let ordinary = read::<u32>(context, UC_STACK_FLAGS) & SS_AUTODISARM == 0
            && read::<u16>(context, SEGMENTS) == CODE_OF_64_BITS
            && read::<u64>(context, EFLAGS) & TRAP == 0
            && shadow_stack() == 0;
        ordinary
            && read::<u32>(fp, SOFTWARE) == FP_XSTATE_MAGIC1
            && read::<u32>(fp, read::<u32>(fp, SIZE_OF_ALL) as usize) == FP_XSTATE_MAGIC2
            && has_rights_of_handlers(fp)
    }
}

/// # Safety
/// `fp` is the frame's floating-point state, saved by XSAVE.
unsafe fn has_rights_of_handlers(fp: *mut c_void) -> bool {
    // SAFETY: the caller vouches for the state; where it has a component, the processor has it.
    unsafe {
        if read::<u64>(fp, SOFTWARE + 8) & 1 << PKRU == 0 {
            return true;
        }
        let now: u32;
        asm!("rdpkru", in("ecx") 0, out("eax") now, out("edx") _, options(nostack, preserves_flags, nomem));
        let is_saved = read::<u64>(fp, HEADER) & 1 << PKRU != 0;
        match RIGHTS_AT.load(Relaxed) {
            0 | UNKNOWN => false,
            at => now == if is_saved { read::<u32>(fp, at as usize) } else { 0 },
        }
    }
}

/// The shadow stack's pointer; 0 where there is none (the instruction does nothing then).
fn shadow_stack() -> u64 {
    let mut pointer = 0u64;
    // SAFETY: reads a register.
    unsafe { asm!("rdsspq {}", inout(reg) pointer, options(nostack, preserves_flags, nomem)) };
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Extent;

    #[test]
    fn there_must_be_room_below_the_stack_pointer() {
        let bounds = StackBounds { low: 0x10_0000, high: 0x20_0000, extent: Extent::Whole };
        let unknown = StackBounds::default();
        let with = |alternate, context, sp, bounds| has_room(context, sp, 0x1f_f000, alternate, bounds);
        let (none, own) = ([0, 0], [0x4000, 0x4000]);
        assert!(with(none, 0x7f00, 0x8800, unknown), "the frame is right below it");
        assert!(with([0x4000, 0x8000], 0x7f00, 0x8800, unknown), "a handler of the host's on the same stack");
        assert!(!with(own, 0x7f00, 0x8800, unknown), "an alternate stack right below another");
        assert!(!with(own, 0x7f00, 0x1f_0000, unknown));
        assert!(with(own, 0x7f00, 0x1f_e000, unknown), "where a thread's stack begins");
        assert!(with(own, 0x7f00, 0x1f_0000, bounds), "an alternate stack, and the thread's own");
        assert!(!with(own, 0x7f00, 0x10_0800, bounds), "nearly full");
        assert!(!with(own, 0x7f00, 0x30_0000, bounds), "a stack of somebody's");
        assert!(!with(none, 0x9000, 0x8800, unknown));
    }
}
