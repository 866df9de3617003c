//! Leaves the handler for the call that was cut short, and lets the kernel go on with it (restart_syscall(2)).
//!
//! Of some calls the kernel remembers what is left to do when it cuts them short, and forgets it when a handler returns by rt_sigreturn(2). So ours does not
//! return: it gives all registers and the signal mask back itself, and jumps to the host's `syscall` instruction with the number of restart_syscall. That is what the kernel does when
//! a thread goes on after it was stopped (`SIGSTOP`, `SIGCONT`): the call ends when it would have ended. If a handler of the host's has run meanwhile, whenever that was, the kernel has
//! forgotten, and the call ends with `EINTR`, as it should.
//!
//! The mask is given back on the host's own stack, below its red zone, as signals that have waited are delivered then: on an alternate stack there may be no room
//! for a second frame. (`asm/sigcontext.h` and `asm/ucontext.h` of Linux for the places.)

use super::INTERRUPTED;
use super::number::SYSTEM_CALL;
use super::stacks;
use crate::slot::StackBounds;
use crate::{arch, system_call};
use core::arch::{asm, naked_asm, x86_64::__cpuid_count};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

const UC_FLAGS: usize = 0;
const UC_STACK: usize = 16;
const UC_STACK_FLAGS: usize = 24;
const UC_STACK_SIZE: usize = 32;
const R10: usize = 56;
const RDI: usize = 104;
const RSI: usize = 112;
const RBX: usize = 128;
const RDX: usize = 136;
const RAX: usize = 144;
const RCX: usize = 152;
const SP: usize = 160;
const PC: usize = 168;
const EFLAGS: usize = 176;
const SEGMENTS: usize = 184;
const FLOATING_POINT: usize = 224;

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

/// Whether [`leave`] may write below the host's stack pointer: the kernel has done so already, or it is the thread's own stack, as far as the C library and the kernel know,
/// and not nearly full. Else there may be anything: what runs on stacks of its own, with an alternate one for signals, may have made them as small as it likes.
fn has_room(context: u64, sp: u64, thread_pointer: u64, alternate: [u64; 2], bounds: StackBounds) -> bool {
    let is_alternate = |address: u64| address.wrapping_sub(alternate[0]) < alternate[1];
    let is_below = sp.wrapping_sub(context) < LARGEST_FRAME && is_alternate(sp) == is_alternate(context);
    let is_near_its_end = thread_pointer.wrapping_sub(sp) < SMALLEST_STACK / 2;
    let is_its_own = bounds.in_use_up_to(sp, thread_pointer) != 0 && sp.wrapping_sub(bounds.low) > PAGE;
    is_below || is_near_its_end || is_its_own
}

/// Whether [`leave`] gives back all that rt_sigreturn(2) would, and has room for it. Not with a shadow stack, an alternate stack that the kernel has disarmed, code of 32 bits, a debugger's single steps,
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

/// # Safety
/// There is a T at `offset`.
unsafe fn read<T>(base: *mut c_void, offset: usize) -> T {
    // SAFETY: the caller's contract.
    unsafe { base.cast::<u8>().wrapping_add(offset).cast::<T>().read_unaligned() }
}

/// The shadow stack's pointer; 0 where there is none (the instruction does nothing then).
fn shadow_stack() -> u64 {
    let mut pointer = 0u64;
    // SAFETY: reads a register.
    unsafe { asm!("rdsspq {}", inout(reg) pointer, options(nostack, preserves_flags, nomem)) };
    pointer
}

/// Bytes below the host's stack pointer that [`leave`] writes and keeps free: the red zone, and the registers that the call for the mask needs.
const AREA: u64 = 176;
/// Where [`give_back`] jumps to the host, and how long it is; all of it after its first instruction is where signals come.
const JUMP: u64 = 44;
const LENGTH: u64 = JUMP + 2;

/// Gives the thread its registers and its mask back, but for what the system call that it just made has left in rax, rcx, r11 and the arithmetic flags, and goes on with that call.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to this handler; [`may_leave`] has said yes; all signals are blocked; the thread stands behind a `syscall` instruction;
/// nothing is left to do in the handler.
#[unsafe(naked)]
pub unsafe extern "C" fn leave(context: *mut c_void) -> ! {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "mov rbx, rdi",
        // All that was in use, and what the handler itself may have used (x87, SSE, AVX), but for the rights of protection keys.
        "mov rcx, [rbx + 224]",
        "mov eax, [rcx + 512]",
        "mov edx, [rcx + 516]",
        "or eax, 7",
        "and eax, 0xfffffdff",
        "xrstor64 [rcx]",
        "mov r8, [rbx + 40]",
        "mov r9, [rbx + 48]",
        "mov r12, [rbx + 72]",
        "mov r13, [rbx + 80]",
        "mov r14, [rbx + 88]",
        "mov r15, [rbx + 96]",
        "mov rbp, [rbx + 120]",
        // The host's stack, and on it rbx, rdi, rsi, rdx, r10 and where to go on.
        "mov rax, [rbx + 160]",
        "sub rax, 176",
        "mov rcx, [rbx + 128]",
        "mov [rax], rcx",
        "mov rcx, [rbx + 104]",
        "mov [rax + 8], rcx",
        "mov rcx, [rbx + 112]",
        "mov [rax + 16], rcx",
        "mov rcx, [rbx + 136]",
        "mov [rax + 24], rcx",
        "mov rcx, [rbx + 56]",
        "mov [rax + 32], rcx",
        "mov rcx, [rbx + 168]",
        "sub rcx, 2",
        "mov [rax + 40], rcx",
        // rt_sigprocmask(SIG_SETMASK, …)
        "lea rsi, [rbx + 296]",
        "mov rsp, rax",
        "mov edi, 2",
        "xor edx, edx",
        "mov r10d, 8",
        "mov eax, 14",
        "jmp {give_back}",
        ".cfi_endproc",
        give_back = sym give_back,
    )
}

/// The end of [`leave`]. Signals come from its first instruction on: its call frame information is right, and ours are taken as if they
/// had come in the host's call ([`undo`]).
#[unsafe(naked)]
unsafe extern "C" fn give_back() -> ! {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_def_cfa rsp, 176",
        ".cfi_offset rbx, -176",
        ".cfi_offset rdi, -168",
        ".cfi_offset rsi, -160",
        ".cfi_offset rdx, -152",
        ".cfi_offset r10, -144",
        ".cfi_offset rip, -136",
        "syscall",
        "mov rbx, [rsp]",
        ".cfi_same_value rbx",
        "mov rdi, [rsp + 8]",
        ".cfi_same_value rdi",
        "mov rsi, [rsp + 16]",
        ".cfi_same_value rsi",
        "mov rdx, [rsp + 24]",
        ".cfi_same_value rdx",
        "mov r10, [rsp + 32]",
        ".cfi_same_value r10",
        "mov rcx, [rsp + 40]",
        ".cfi_register rip, rcx",
        // restart_syscall()
        "mov eax, 219",
        "lea rsp, [rsp + 176]",
        ".cfi_def_cfa_offset 0",
        "jmp rcx",
        ".cfi_endproc",
    )
}

/// Whether a thread stands in [`give_back`].
#[inline(always)]
pub fn is_leaving(pc: u64) -> bool {
    pc.wrapping_sub(start()) < LENGTH
}

fn start() -> u64 {
    (give_back as unsafe extern "C" fn() -> !) as usize as u64
}

/// Makes the registers of a thread that is leaving those that it had when its call was cut short.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to this handler; its pc [`is_leaving`].
#[cold]
#[inline(never)]
pub unsafe fn undo(context: *mut c_void) {
    // SAFETY: the caller vouches for the context, whose stack pointer is where `leave` has written the registers, but at the last instruction.
    unsafe {
        let mut again: u64 = read(context, RCX);
        if read::<u64>(context, PC).wrapping_sub(start()) < JUMP {
            let area: u64 = read(context, SP);
            let saved = area as *mut c_void;
            for (at, register) in [RBX, RDI, RSI, RDX, R10].into_iter().enumerate() {
                write(context, register, read(saved, 8 * at));
            }
            again = read(saved, 40);
            write(context, SP, area.wrapping_add(AREA));
        }
        write(context, PC, again.wrapping_add(SYSTEM_CALL.len() as u64));
        write(context, RAX, INTERRUPTED);
    }
}

/// # Safety
/// There is a register at `offset`.
unsafe fn write(base: *mut c_void, offset: usize, value: u64) {
    // SAFETY: the caller's contract.
    unsafe { base.cast::<u8>().wrapping_add(offset).cast::<u64>().write_unaligned(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Extent;
    use core::mem::offset_of;

    #[test]
    fn the_kernels_ucontext_has_everything_where_we_read_it() {
        let gregs = offset_of!(libc::ucontext_t, uc_mcontext);
        let place = |register: i32| gregs + 8 * register as usize;
        assert_eq!(offset_of!(libc::ucontext_t, uc_flags), UC_FLAGS);
        let stack = offset_of!(libc::ucontext_t, uc_stack);
        assert_eq!(stack + offset_of!(libc::stack_t, ss_sp), UC_STACK);
        assert_eq!(stack + offset_of!(libc::stack_t, ss_flags), UC_STACK_FLAGS);
        assert_eq!(stack + offset_of!(libc::stack_t, ss_size), UC_STACK_SIZE);
        assert_eq!(place(libc::REG_R10), R10);
        assert_eq!(place(libc::REG_RDI), RDI);
        assert_eq!(place(libc::REG_RSI), RSI);
        assert_eq!(place(libc::REG_RBX), RBX);
        assert_eq!(place(libc::REG_RDX), RDX);
        assert_eq!(place(libc::REG_RAX), RAX);
        assert_eq!(place(libc::REG_RCX), RCX);
        assert_eq!(place(libc::REG_RSP), SP);
        assert_eq!(place(libc::REG_RIP), PC);
        assert_eq!(place(libc::REG_EFL), EFLAGS);
        assert_eq!(place(libc::REG_CSGSFS), SEGMENTS);
        assert_eq!(gregs + offset_of!(libc::mcontext_t, fpregs), FLOATING_POINT);
    }

    /// What is at `at` in [`give_back`].
    fn code<const N: usize>(at: u64) -> [u8; N] {
        // SAFETY: it is so long.
        unsafe { ((start() + at) as *const [u8; N]).read() }
    }

    #[test]
    fn its_end_is_as_long_as_we_say() {
        assert_eq!(code(0), SYSTEM_CALL);
        assert_eq!(code(JUMP), [0xff, 0xe1], "jmp rcx");
        assert!(is_leaving(start()) && is_leaving(start() + JUMP) && !is_leaving(start() + LENGTH));
    }

    #[test]
    fn who_is_asked_while_it_leaves_stands_behind_its_call() {
        let saved = [1u64, 2, 3, 4, 5, 0x5000];
        for (at, sp, rcx) in [(2, saved.as_ptr() as u64, 9), (JUMP, 0x7000, 0x5000)] {
            let mut context = [0u64; 38];
            for (offset, value) in [(PC, start() + at), (SP, sp), (RCX, rcx), (RBX, 9)] {
                context[offset / 8] = value;
            }
            // SAFETY: as much of a ucontext as is looked at; the stack pointer is that of what is saved.
            unsafe { undo(context.as_mut_ptr().cast()) };
            assert_eq!([context[PC / 8], context[RAX / 8]], [0x5002, INTERRUPTED]);
            let expected = if at == 2 { [sp + AREA, 1, 2, 3, 4, 5] } else { [sp, 9, 0, 0, 0, 0] };
            assert_eq!([SP, RBX, RDI, RSI, RDX, R10].map(|offset| context[offset / 8]), expected);
        }
    }

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
