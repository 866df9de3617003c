//! `syscall`, by which some libraries make the calls of [`super`], and rings of io_uring(7). All
//! other calls jump to the real function: nothing of this library is on the stack, and all
//! registers are as the caller left them.

use std::arch::naked_asm;
use std::ffi::{c_int, c_long, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, Ordering::*};
use swipr_os::{host_thread, timer_delivery};

/// The real function; `plain`, which is like it, until that is known.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(plain as *const () as *mut c_void);

/// Looks up the real function.
pub fn prepare() {
    // SAFETY: a C string; the answer is null or the address of the function.
    let found = host_thread::kept(|| unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) });
    if !found.is_null() {
        NEXT.store(found, Release);
    }
}

/// syscall(2).
///
/// # Safety
/// As the real function requires.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall() {
    naked_asm!(
        ".cfi_startproc", // a sample taken here has callers
        "endbr64",
        "cmp edi, {capset}",
        "je 2f",
        "cmp edi, {prctl}",
        "je 2f",
        "cmp edi, {unshare}",
        "je 2f",
        "cmp edi, {setns}",
        "je 2f",
        "cmp edi, {seccomp}",
        "je 2f",
        "cmp edi, {exit}",
        "je 2f",
        "cmp edi, {landlock}",
        "je 2f",
        "cmp edi, {ring}",
        "je 2f",
        "jmp [rip + {next}]",
        "2:",
        "jmp {of_interest}",
        ".cfi_endproc",
        capset = const libc::SYS_capset,
        prctl = const libc::SYS_prctl,
        unshare = const libc::SYS_unshare,
        setns = const libc::SYS_setns,
        seccomp = const libc::SYS_seccomp,
        exit = const libc::SYS_exit,
        landlock = const libc::SYS_landlock_restrict_self,
        ring = const libc::SYS_io_uring_setup,
        next = sym NEXT,
        of_interest = sym of_interest,
    )
}

/// What glibc's function does: arguments one place further, the kernel's errors into errno.
#[unsafe(naked)]
unsafe extern "C" fn plain() {
    naked_asm!(
        ".cfi_startproc",
        "endbr64",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "mov r9, [rsp + 8]",
        "syscall",
        "cmp rax, -4095",
        "jae 2f",
        "ret",
        "2:",
        "neg eax",
        "mov edi, eax",
        "jmp {failed}",
        ".cfi_endproc",
        failed = sym failed,
    )
}

extern "C" fn failed(error: c_int) -> c_long {
    // SAFETY: points to this thread's errno, always.
    unsafe { *libc::__errno_location() = error };
    -1
}

type OfSeven = unsafe extern "C" fn(c_long, c_ulong, c_ulong, c_ulong, c_ulong, c_ulong, c_ulong) -> c_long;

/// # Safety
/// As [`syscall`].
unsafe extern "C" fn of_interest(
    number: c_long,
    first: c_ulong,
    second: c_ulong,
    third: c_ulong,
    fourth: c_ulong,
    fifth: c_ulong,
    sixth: c_ulong,
) -> c_long {
    // SAFETY: `plain`, or what the dynamic linker said is the function.
    let next = unsafe { std::mem::transmute::<*mut c_void, OfSeven>(NEXT.load(Acquire)) };
    // SAFETY: called with the caller's own arguments.
    let call = || unsafe { next(number, first, second, third, fourth, fifth, sixth) };
    match number {
        libc::SYS_unshare => super::unshare_as(first as c_int, call),
        libc::SYS_setns => super::setns_as(second as c_int, call),
        libc::SYS_prctl => super::prctl_as(first as c_int, second, call),
        libc::SYS_seccomp => super::seccomp_as(first as c_uint, second, call),
        libc::SYS_exit => super::exit_as(call),
        libc::SYS_landlock_restrict_self => super::alone_if(true, call),
        libc::SYS_io_uring_setup => {
            let result = call();
            if result >= 0 {
                timer_delivery::has_ring();
            }
            result
        }
        // SAFETY: the arguments of SYS_capset, the only one left.
        _ => unsafe { super::capset_as(first as *const c_void, second as *const c_void, call) },
    }
}
