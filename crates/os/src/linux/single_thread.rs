//! What the C library notes of whether the process has one thread. Then its fork(2) takes no lock,
//! so that a handler may fork that has interrupted malloc(3). From the first thread on it says
//! "several", and the agent's threads are such.
//!
//! glibc has it in a variable of its own, `__libc_single_threaded`, of which an executable may have
//! a copy; before 2.35 or so its functions ask a word of each thread's control block
//! (`multiple_threads`). Which of them are there is seen as the agent's first thread is made.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering::*};

/// The variable's place; null: there is none.
static VARIABLE: AtomicPtr<AtomicU8> = AtomicPtr::new(std::ptr::null_mut());
/// Whether the variable, and the word, became "several" by a thread of the agent.
static IS_VARIABLE: AtomicBool = AtomicBool::new(false);
static IS_WORD: AtomicBool = AtomicBool::new(false);

/// Looks the variable up.
pub fn prepare() {
    // SAFETY: C strings; the answers are null, a handle, or the address of a byte that stays.
    let found = unsafe {
        let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() { library } else { libc::dlsym(library, c"__libc_single_threaded".as_ptr()) }
    };
    VARIABLE.store(found.cast(), Release);
}

fn variable() -> Option<&'static AtomicU8> {
    // SAFETY: null, or what `prepare` has found.
    unsafe { VARIABLE.load(Acquire).as_ref() }
}

fn is_one_by_variable() -> bool {
    variable().is_some_and(|one| one.load(Relaxed) != 0)
}

/// The word of the calling thread's control block.
#[cfg(target_arch = "x86_64")]
mod word {
    use std::arch::asm;

    /// Of glibc's `tcbhead_t`, which has the place of the stack protector's word, too: ABI.
    const MULTIPLE_THREADS: u32 = 24;

    pub fn is_one() -> bool {
        let several: u32;
        // SAFETY: reads a word of the control block.
        unsafe {
            asm!("mov {several:e}, fs:[{at}]", several = out(reg) several, at = const MULTIPLE_THREADS,
                options(nostack, readonly, preserves_flags));
        }
        several == 0
    }

    /// # Safety
    /// It is such a word ([`super::watching`]).
    pub unsafe fn set(is_one: bool) {
        // SAFETY: the caller's contract.
        unsafe {
            asm!("mov dword ptr fs:[{at}], {several:e}", several = in(reg) u32::from(!is_one),
                at = const MULTIPLE_THREADS, options(nostack, preserves_flags));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod word {
    pub fn is_one() -> bool {
        false
    }

    pub unsafe fn set(_: bool) {}
}

/// Makes a thread of the agent, and sees what that changes.
pub fn watching<T>(make: impl FnOnce() -> T) -> T {
    let before = (is_one_by_variable(), word::is_one());
    let made = make();
    IS_VARIABLE.fetch_or(before.0 && !is_one_by_variable(), Relaxed);
    IS_WORD.fetch_or(before.1 && !word::is_one(), Relaxed);
    made
}

/// Ends an [`AsOne`] that is not left in order: a handler has left fork(2) by longjmp(3), or exits.
pub fn say_several() {
    AsOne { variable: IS_VARIABLE.load(Relaxed), word: IS_WORD.load(Relaxed) }.end();
}

/// The C library takes the process for one with one thread.
#[derive(Debug)]
pub struct AsOne {
    variable: bool,
    word: bool,
}

impl AsOne {
    /// In a process in which no thread but the calling one is the host's, and those of the agent
    /// stay out of the C library's allocator.
    pub fn begin() -> AsOne {
        let as_one = AsOne {
            variable: IS_VARIABLE.load(Relaxed) && !is_one_by_variable(),
            word: IS_WORD.load(Relaxed) && !word::is_one(),
        };
        as_one.set(true);
        as_one
    }

    /// As it was before.
    pub fn end(self) {
        self.set(false);
    }

    fn set(&self, is_one: bool) {
        if let Some(variable) = variable().filter(|_| self.variable) {
            variable.store(is_one.into(), Relaxed);
        }
        if self.word {
            // SAFETY: it changed as a thread was made.
            unsafe { word::set(is_one) };
        }
    }
}
