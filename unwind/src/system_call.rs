//! The system calls that the handler and its walk may make, without libc: they leave errno alone.

/// An error number as the kernel has it (errno(3)).
pub type Errno = i32;

/// Not permitted: a seccomp filter or a policy refused the call.
pub const EPERM: Errno = 1;
/// The kernel does not know the call, or a filter says so.
pub const ENOSYS: Errno = 38;

#[cfg(target_arch = "x86_64")]
mod number {
    pub const RT_SIGACTION: usize = 13;
    pub const PREAD64: usize = 17;
    pub const GETSOCKOPT: usize = 55;
    pub const RT_SIGPENDING: usize = 127;
    pub const GETTID: usize = 186;
    pub const CLOCK_GETTIME: usize = 228;
    pub const PROCESS_VM_READV: usize = 310;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub const PREAD64: usize = 67;
    pub const GETTID: usize = 178;
    pub const PROCESS_VM_READV: usize = 270;
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

#[repr(C)]
struct IoVec {
    base: usize,
    length: usize,
}

/// The calling thread's id (gettid(2)).
pub fn thread_id() -> i32 {
    // SAFETY: no arguments; always succeeds.
    unsafe { call6(number::GETTID, [0; 6]) as i32 }
}

/// Copies memory of the process of thread `tid` (our own) into `buffer`, as far as it can be read.
/// An address that is not mapped is an error, not a fault (process_vm_readv(2)).
pub fn process_vm_readv(tid: i32, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let local = IoVec { base: buffer.as_mut_ptr() as usize, length: buffer.len() };
    let remote = IoVec { base: address as usize, length: buffer.len() };
    let arguments = [tid as usize, &raw const local as usize, 1, &raw const remote as usize, 1, 0];
    // SAFETY: `local` describes `buffer`, which is ours to write; the kernel checks `remote`.
    checked(unsafe { call6(number::PROCESS_VM_READV, arguments) })
}

/// Reads at `offset` of the file `fd` (pread(2)).
pub fn pread(fd: i32, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let arguments = [fd as usize, buffer.as_mut_ptr() as usize, buffer.len(), offset as usize, 0, 0];
    // SAFETY: the buffer is ours to write and has the length given.
    checked(unsafe { call6(number::PREAD64, arguments) })
}

/// A signal's action as the kernel has it (`struct sigaction` of rt_sigaction(2)).
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Default)]
#[repr(C)]
pub struct Action {
    /// An address; 0: the default action; 1: ignored.
    pub handler: usize,
    /// `SA_…`
    pub flags: u64,
    restorer: usize,
    /// What is blocked while the handler runs, one bit a signal.
    pub mask: u64,
}

#[cfg(target_arch = "x86_64")]
const MASK_BYTES: usize = 8;

/// The action of a signal.
#[cfg(target_arch = "x86_64")]
pub fn action(signal: i32) -> Result<Action, Errno> {
    let mut action = Action::default();
    let arguments = [signal as usize, 0, &raw mut action as usize, MASK_BYTES, 0, 0];
    // SAFETY: nothing is changed; the action is written to a place of ours that has its size.
    checked(unsafe { call6(number::RT_SIGACTION, arguments) })?;
    Ok(action)
}

/// The signals that wait for this thread or the process and are blocked, one bit a signal (rt_sigpending(2)).
#[cfg(target_arch = "x86_64")]
pub fn pending_signals() -> Result<u64, Errno> {
    let mut pending = 0u64;
    // SAFETY: the mask is written to a place of ours that has its size.
    checked(unsafe { call6(number::RT_SIGPENDING, [&raw mut pending as usize, MASK_BYTES, 0, 0, 0, 0]) })?;
    Ok(pending)
}

/// SO_RCVTIMEO (socket(7)): seconds and microseconds.
#[cfg(target_arch = "x86_64")]
pub fn receive_time(socket: i32) -> Result<[u64; 2], Errno> {
    const SOL_SOCKET: usize = 1;
    const SO_RCVTIMEO: usize = 20;
    let mut time = [0u64; 2];
    let mut size = size_of_val(&time) as u32;
    let (at, size_at) = (&raw mut time as usize, &raw mut size as usize);
    // SAFETY: a timeval, two words, and its size are written to places of ours.
    checked(unsafe {
        call6(number::GETSOCKOPT, [socket as usize, SOL_SOCKET, SO_RCVTIMEO, at, size_at, 0])
    })?;
    Ok(time)
}

/// A call that receives from a socket: the kernel's result, an error as a negative number.
///
/// # Safety
/// The arguments are right for `number`, recvfrom(2) or recvmsg(2).
#[cfg(target_arch = "x86_64")]
pub unsafe fn receive(number: u32, arguments: [usize; 6]) -> u64 {
    // SAFETY: the caller vouches for the arguments.
    unsafe { call6(number as usize, arguments) as u64 }
}

/// clock_gettime(2): time since the system's start.
#[cfg(target_arch = "x86_64")]
pub const CLOCK_MONOTONIC: usize = 1;
/// clock_gettime(2): CPU time of this thread.
#[cfg(target_arch = "x86_64")]
pub const CLOCK_THREAD_CPUTIME: usize = 3;

/// Nanoseconds on a clock.
#[cfg(target_arch = "x86_64")]
pub fn clock(clock: usize) -> Result<u64, Errno> {
    let mut time = [0u64; 2];
    // SAFETY: a timespec, two words, is written to a place of ours.
    checked(unsafe { call6(number::CLOCK_GETTIME, [clock, &raw mut time as usize, 0, 0, 0, 0]) })?;
    let [seconds, nanoseconds] = time;
    Ok(seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds))
}
