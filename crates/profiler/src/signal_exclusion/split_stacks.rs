//! Programs whose functions have split stacks (`gcc -fsplit-stack`, gccgo). Each function looks
//! whether its part of the stack has room for it, so a part may have no room for a signal's frame.
//! Threads of such programs are not signalled.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Where the thread's control block has the end of its part of the stack, for functions with split
/// stacks. libgcc sets it before `main`. 0: no function has them. (glibc's `__private_ss`.)
#[cfg(target_arch = "x86_64")]
const LIMIT: u64 = 0x70;

/// The control block of the first thread; 0: not known. It stays when that thread ends.
static FIRST_THREAD: AtomicU64 = AtomicU64::new(0);

/// No other memory is so close below the beginning of the first thread's stack: Linux leaves it 128
/// MiB at least (`mmap_base`).
const OWN_TO_FIRST_STACK: u64 = 64 << 20;

/// To be called when the library is loaded. Makes no system call: the program may be in a sandbox.
pub fn prepare() {
    // SAFETY: no preconditions. The random bytes lie where the first thread's stack begins
    // (getauxval(3)).
    let (begin, block) = unsafe { (libc::getauxval(libc::AT_RANDOM), libc::pthread_self()) };
    if begin.wrapping_sub((&raw const begin).addr() as u64) < OWN_TO_FIRST_STACK {
        FIRST_THREAD.store(block, Relaxed);
    }
}

/// Whether the program has functions with split stacks.
#[cfg(target_arch = "x86_64")]
pub fn are_used() -> bool {
    let block = FIRST_THREAD.load(Relaxed);
    // SAFETY: glibc's control block of the first thread, which is never unmapped, has this word.
    block != 0 && unsafe { ((block + LIMIT) as *const u64).read_volatile() } != 0
}

/// Whether the program has functions with split stacks. gcc has none for other processors.
#[cfg(not(target_arch = "x86_64"))]
pub fn are_used() -> bool {
    false
}
