//! What differs between processors, as values of one trait. Both modules compile and are
//! tested on every host; only the system call instruction, the change of stacks and the wide
//! compare of [`x86_64`] need the processor itself.

pub mod aarch64;
pub mod x86_64;

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub use aarch64::Aarch64;
pub use x86_64::X86_64;

/// The processor this build runs on.
#[cfg(target_arch = "x86_64")]
pub type Native = X86_64;
/// The processor this build runs on.
#[cfg(target_arch = "aarch64")]
pub type Native = Aarch64;

/// Facts of a processor and its Linux ABI that the walk needs.
pub trait Arch {
    /// DWARF's number of the frame pointer.
    const FP: u8;
    /// DWARF's number of the stack pointer.
    const SP: u8;
    /// DWARF's number of the column that holds the return address.
    const RETURN_ADDRESS: u8;
    /// DWARF's number of [`crate::registers::Registers::link`].
    const LINK: u8;
    /// The number under which [`Arch::context_offset`] knows the pc.
    const PC: u8;
    /// Whether a call pushes the return address, so that it always lies at CFA - 8.
    const CALL_PUSHES: bool;
    /// Bytes from the stack pointer to the `ucontext` in a signal's frame, as
    /// the frame's trampoline sees it.
    const SIGNAL_CONTEXT: u64;
    /// Bytes below the stack pointer that leaf functions may use.
    const RED_ZONE: u64;
    /// Bits of a return address that are address; the rest may be a signature.
    const ADDRESS_MASK: u64;
    /// Low bits of a pc that carry no information.
    const PC_SHIFT: u32;
    /// Bytes from the `ucontext`'s start to the saved register with this DWARF
    /// number, or [`Arch::PC`].
    fn context_offset(register: u8) -> Option<u64>;
}

/// Whether the kernel lets programs read the register itself; see [`set_base_is_readable`].
#[cfg(target_arch = "x86_64")]
static BASE_IS_READABLE: AtomicBool = AtomicBool::new(false);

/// The processor and the kernel let programs read the base of the fs segment (getauxval(3),
/// AT_HWCAP2: FSGSBASE, since Linux 5.9).
#[cfg(target_arch = "x86_64")]
pub fn set_base_is_readable(is_readable: bool) {
    BASE_IS_READABLE.store(is_readable, Relaxed);
}

/// The calling thread's pointer to its control block. Threads of a process with a C library have
/// one: the compiler's stack protector reads it in most functions. Emulators may clear it for a
/// while: 0. Where the register cannot be read, the kernel is asked.
#[inline(always)]
pub fn thread_pointer() -> u64 {
    let pointer: u64;
    #[cfg(target_arch = "x86_64")]
    if BASE_IS_READABLE.load(Relaxed) {
        // SAFETY: reads a register, which was said to be allowed.
        unsafe {
            core::arch::asm!("rdfsbase {}", out(reg) pointer, options(nostack, preserves_flags, nomem));
        }
    } else {
        pointer = crate::system_call::fs_base();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}

/// Calls `function` with `argument` on the stack that ends at `top`, and returns. Its call frame
/// information leads back to the caller, as that of any function with a frame pointer.
///
/// # Safety
/// `top` is a multiple of 16. Below it lies as much writable memory as `function` needs, which
/// nothing else uses. No signal handler runs meanwhile.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_on_stack(
    top: *mut u8,
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// As on x86-64.
///
/// # Safety
/// As on x86-64.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_on_stack(
    top: *mut u8,
    function: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, #-16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16",
        ".cfi_offset x30, -8",
        "mov x29, sp",
        ".cfi_def_cfa x29, 16",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        ".cfi_def_cfa sp, 16",
        "ldp x29, x30, [sp], #16",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore x29",
        ".cfi_restore x30",
        "ret",
        ".cfi_endproc",
    )
}

/// No thread may read the clock of [`ticks`] any more.
static ARE_TICKS_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// From now on [`ticks`] are 0. A thread is about to have the kernel kill it for reading that clock
/// (prctl(2), PR_SET_TSC), and threads that it starts inherit that.
pub fn disable_tsc() {
    ARE_TICKS_FORBIDDEN.store(true, Relaxed);
}

/// A clock that costs a few nanoseconds to read: the time stamp counter on x86-64, the generic
/// timer's count on aarch64. The caller has to find out how long a tick is.
#[inline(always)]
pub fn ticks() -> u64 {
    if ARE_TICKS_FORBIDDEN.load(Relaxed) {
        return 0;
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction, and no thread of this process is forbidden to use
    // it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: reads a register that Linux lets user space read.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nostack, nomem)) };
        count
    }
}

/// Has the processor fetch the memory at `address`, without waiting. Any address is allowed.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes nothing but caches, and no address makes it fault.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as on x86-64.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, readonly, preserves_flags));
    }
}

/// How many of the first `count` bytes of `lows` are at most `low`; the bytes are
/// sorted. `lows` is at least 16 bytes longer than `count`.
#[inline(always)]
pub fn count_at_most(lows: &[u8], count: usize, low: u8) -> usize {
    #[cfg(target_arch = "x86_64")]
    return x86_64::count_at_most(lows, count, low);
    #[cfg(not(target_arch = "x86_64"))]
    return count_at_most_portable(lows, count, low);
}

/// [`count_at_most`] without wide instructions.
pub fn count_at_most_portable(lows: &[u8], count: usize, low: u8) -> usize {
    lows.iter().take(count).take_while(|&&byte| byte <= low).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_and_plain_count_agree() {
        let mut lows = [0xffu8; 256 + 16];
        for (i, byte) in lows.iter_mut().take(200).enumerate() {
            *byte = (i + i / 7) as u8;
        }
        for count in [0, 1, 15, 16, 17, 31, 32, 100, 200] {
            for low in 0..=255 {
                assert_eq!(
                    count_at_most(&lows, count, low),
                    count_at_most_portable(&lows, count, low),
                    "count {count} low {low}"
                );
            }
        }
    }
}
