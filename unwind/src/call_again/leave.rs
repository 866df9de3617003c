//! Leaves the handler for the call that was cut short, and lets the kernel go on with it (restart_syscall(2)).
//!
//! Of some calls the kernel remembers what is left to do when it cuts them short, and forgets it when a handler returns by rt_sigreturn(2). So ours does not
//! return: it gives all registers and the signal mask back itself, and jumps to the host's `syscall` instruction with the number of restart_syscall. That is what the kernel does when
//! a thread goes on after it was stopped (`SIGSTOP`, `SIGCONT`): the call ends when it would have ended. If a handler of the host's has run meanwhile, whenever that was, the kernel has
//! forgotten, and the call ends with `EINTR`, as it should.
//!
//! The mask is given back on the host's own stack, below its red zone, as signals that have waited are delivered then: on an alternate stack there may be no room
//! for a second frame.

use super::INTERRUPTED;
use super::number::SYSTEM_CALL;
use super::ucontext::*;
use core::arch::naked_asm;
use core::ffi::c_void;

/// Bytes below the host's stack pointer that [`leave`] writes and keeps free: the red zone, and the registers that the call for the mask needs.
const AREA: u64 = 176;
/// Where [`give_back`] jumps to the host, and how long it is; all of it after its first instruction is where signals come.
const JUMP: u64 = 44;
const LENGTH: u64 = JUMP + 2;

/// Gives the thread its registers and its mask back, but for what the system call that it just made has left in rax, rcx, r11 and the arithmetic flags, and goes on with that call.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to this handler; [`may_leave`](super::may_leave) has said yes; all signals are blocked; the thread stands behind a `syscall` instruction;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
