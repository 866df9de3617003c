//! The kernel's frame of a signal on x86-64: where in the `ucontext` is what it saved (`asm/sigcontext.h` and `asm/ucontext.h` of Linux).

use core::ffi::c_void;

pub const UC_FLAGS: usize = 0;
pub const UC_STACK: usize = 16;
pub const UC_STACK_FLAGS: usize = 24;
pub const UC_STACK_SIZE: usize = 32;
pub const R10: usize = 56;
pub const RDI: usize = 104;
pub const RSI: usize = 112;
pub const RBX: usize = 128;
pub const RDX: usize = 136;
pub const RAX: usize = 144;
pub const RCX: usize = 152;
pub const SP: usize = 160;
pub const PC: usize = 168;
pub const EFLAGS: usize = 176;
pub const SEGMENTS: usize = 184;
pub const FLOATING_POINT: usize = 224;

/// # Safety
/// There is a T at `offset`.
pub unsafe fn read<T>(base: *mut c_void, offset: usize) -> T {
    // SAFETY: the caller's contract.
    unsafe { base.cast::<u8>().wrapping_add(offset).cast::<T>().read_unaligned() }
}

/// # Safety
/// There is a register at `offset`.
pub unsafe fn write(base: *mut c_void, offset: usize, value: u64) {
    // SAFETY: the caller's contract.
    unsafe { base.cast::<u8>().wrapping_add(offset).cast::<u64>().write_unaligned(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
