//! The system calls that the handler and its walk may make, without libc: they leave errno alone.

use core::sync::atomic::AtomicU64;

/// An error number as the kernel has it (errno(3)).
pub type Errno = i32;

/// Not permitted: a seccomp filter or a policy refused the call.
pub const EPERM: Errno = 1;
/// What the call was to read or write is not there.
pub const EFAULT: Errno = 14;
/// The kernel does not know the call, or a filter says so.
pub const ENOSYS: Errno = 38;

#[cfg(target_arch = "x86_64")]
mod number {
    pub const MPROTECT: usize = 10;
    pub const PREAD64: usize = 17;
    pub const MSYNC: usize = 26;
    pub const PRCTL: usize = 157;
    pub const ARCH_PRCTL: usize = 158;
    pub const GETTID: usize = 186;
    pub const PROCESS_VM_READV: usize = 310;
    pub const PROCESS_VM_WRITEV: usize = 311;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub const PREAD64: usize = 67;
    pub const PRCTL: usize = 167;
    pub const MPROTECT: usize = 226;
    pub const MSYNC: usize = 227;
    pub const GETTID: usize = 178;
    pub const PROCESS_VM_READV: usize = 270;
    pub const PROCESS_VM_WRITEV: usize = 271;
}

/// # Safety
/// The arguments must be right for the call `number`, as its man page says.
#[inline]
unsafe fn call6(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the kernel's calling convention (syscall(2)); the caller vouches for the arguments.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("syscall", inlateout("rax") number as isize => result, in("rdi") a, in("rsi") b, in("rdx") c,
            in("r10") d, in("r8") e, in("r9") f, lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("svc 0", in("x8") number, inlateout("x0") a as isize => result, in("x1") b, in("x2") c,
            in("x3") d, in("x4") e, in("x5") f, options(nostack));
    }
    result
}

fn checked(result: isize) -> Result<usize, Errno> {
    if result < 0 { Err(-result as Errno) } else { Ok(result as usize) }
}

/// A piece of memory (readv(2)).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct IoVec {
    /// Its address.
    pub base: usize,
    /// Its bytes.
    pub length: usize,
}

/// Whether all memory from one page to another is mapped (msync(2), which does nothing else with
/// MS_ASYNC). `false`: or the kernel does not say.
#[cold]
pub fn is_mapped(from: u64, to: u64) -> bool {
    const MS_ASYNC: usize = 1;
    let length = to.saturating_sub(from) as usize;
    // SAFETY: the kernel looks at the mappings only.
    unsafe { call6(number::MSYNC, [from as usize, length, MS_ASYNC, 0, 0, 0]) == 0 }
}

/// Sets how whole pages can be used (mprotect(2)); whether that worked.
///
/// # Safety
/// Nobody uses them otherwise from now on.
pub unsafe fn mprotect(from: u64, bytes: u64, protection: i32) -> bool {
    // SAFETY: says the caller.
    unsafe { call6(number::MPROTECT, [from as usize, bytes as usize, protection as usize, 0, 0, 0]) == 0 }
}

/// The base of the calling thread's fs segment (arch_prctl(2)); 0: the kernel does not say.
#[cfg(target_arch = "x86_64")]
pub fn fs_base() -> u64 {
    const ARCH_GET_FS: usize = 0x1003;
    let mut base = 0u64;
    // SAFETY: the kernel writes a word.
    let result = unsafe { call6(number::ARCH_PRCTL, [ARCH_GET_FS, &raw mut base as usize, 0, 0, 0, 0]) };
    if result == 0 { base } else { 0 }
}

/// Writes the calling thread's name (prctl(2)): 15 bytes at the most, and a zero.
#[cold]
pub fn thread_name(into: &[AtomicU64; 2]) {
    const PR_GET_NAME: usize = 16;
    // SAFETY: the kernel writes 16 bytes, into atomics.
    unsafe { call6(number::PRCTL, [PR_GET_NAME, into.as_ptr() as usize, 0, 0, 0, 0]) };
}

/// The calling thread's id (gettid(2)).
pub fn thread_id() -> i32 {
    // SAFETY: no arguments; always succeeds.
    unsafe { call6(number::GETTID, [0; 6]) as i32 }
}

/// Copies memory of this process, named by its thread `tid`, into `buffer`, as far as it can be
/// read.
/// An address that is not mapped is an error, not a fault (process_vm_readv(2)).
pub fn process_vm_readv(tid: i32, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let local = IoVec { base: buffer.as_mut_ptr() as usize, length: buffer.len() };
    let remote = IoVec { base: address as usize, length: buffer.len() };
    let arguments = [tid as usize, &raw const local as usize, 1, &raw const remote as usize, 1, 0];
    // SAFETY: `local` describes `buffer`, which is ours to write; the kernel checks `remote`.
    checked(unsafe { call6(number::PROCESS_VM_READV, arguments) })
}

/// As [`process_vm_readv`], from several places to one, which they fill one behind the other. The
/// copy ends where something cannot be read.
///
/// It is process_vm_writev(2) to the caller's own memory. The kernel looks up the pages of the
/// target one by one, but copies from the source as from any buffer that a system call is given. So
/// 16 places take 2 microseconds, where process_vm_readv(2) takes 11.
pub fn gather(tid: i32, from: &[IoVec], into: &mut [u8]) -> Result<usize, Errno> {
    let remote = IoVec { base: into.as_mut_ptr() as usize, length: into.len() };
    let arguments = [tid as usize, from.as_ptr() as usize, from.len(), &raw const remote as usize, 1, 0];
    // SAFETY: `remote` describes `into`, which is ours to write; the kernel checks `from`.
    checked(unsafe { call6(number::PROCESS_VM_WRITEV, arguments) })
}

/// Reads at `offset` of the file `fd` (pread(2)).
pub fn pread(fd: i32, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let arguments = [fd as usize, buffer.as_mut_ptr() as usize, buffer.len(), offset as usize, 0, 0];
    // SAFETY: the buffer is ours to write and has the length given.
    checked(unsafe { call6(number::PREAD64, arguments) })
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_kernel_says_where_the_threads_control_block_is() {
        let block: u64;
        // SAFETY: reads the block's first word, its own address (psABI, "Thread-Local Storage").
        unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) block, options(nostack, readonly)) };
        assert_eq!(super::fs_base(), block);
    }
}
