//! Other ways to take a stack in a signal handler: libgcc (through the `backtrace` crate) and libunwind,
//! the latter only where its shared library is installed.
//!
//! They may allocate, lock and use kilobytes of stack on their first call: call [`warm_up`] before.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::*};

/// Frames that a peer is asked for at most.
pub const CAPACITY: usize = 32 * 1024;

type InitLocal = unsafe extern "C" fn(*mut u64, *mut c_void, i32) -> i32;
type Step = unsafe extern "C" fn(*mut u64) -> i32;
type GetRegister = unsafe extern "C" fn(*mut u64, i32, *mut u64) -> i32;
type Backtrace = unsafe extern "C" fn(*mut *mut c_void, i32) -> i32;
type SetCaching = unsafe extern "C" fn(*mut c_void, i32) -> i32;

/// libunwind, as far as it is used.
#[derive(Debug)]
pub struct Libunwind {
    init_local: InitLocal,
    step: Step,
    get_register: GetRegister,
    backtrace: Backtrace,
}

/// Words of `unw_cursor_t` on x86-64 (127), rounded up.
const CURSOR_WORDS: usize = 256;
/// `UNW_X86_64_RIP`.
const RIP: i32 = 16;
/// `UNW_INIT_SIGNAL_FRAME`: the context is that of a signal handler.
const SIGNAL_FRAME: i32 = 1;
/// `UNW_CACHE_PER_THREAD`: the fastest of its caching policies.
const PER_THREAD: i32 = 2;

static LIBUNWIND: OnceLock<Option<Libunwind>> = OnceLock::new();

/// libunwind, if it was found by [`warm_up`].
pub fn libunwind() -> Option<&'static Libunwind> {
    LIBUNWIND.get()?.as_ref()
}

/// Loads what there is and calls each once. Not in a signal handler.
pub fn warm_up() {
    LIBUNWIND.get_or_init(load);
    let mut frames = [0; 64];
    by_backtrace_crate(&mut frames);
    if let Some(libunwind) = libunwind() {
        libunwind.backtrace(&mut frames);
    }
}

fn load() -> Option<Libunwind> {
    // SAFETY: libunwind's constructors have no preconditions.
    let library = unsafe { libc::dlopen(c"libunwind.so.8".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return None;
    }
    let symbol = |name: &CStr| {
        // SAFETY: a handle from dlopen and a C string.
        let address = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    };
    let space = symbol(c"_ULx86_64_local_addr_space")?.cast::<*mut c_void>();
    let set_caching = symbol(c"_ULx86_64_set_caching_policy")?;
    // SAFETY: the names are those of libunwind 1.x on x86-64 (libunwind-x86_64.h), whose functions have these types.
    unsafe {
        let set_caching = std::mem::transmute::<*mut c_void, SetCaching>(set_caching);
        set_caching(*space, PER_THREAD);
        Some(Libunwind {
            init_local: std::mem::transmute::<*mut c_void, InitLocal>(symbol(c"_ULx86_64_init_local2")?),
            step: std::mem::transmute::<*mut c_void, Step>(symbol(c"_ULx86_64_step")?),
            get_register: std::mem::transmute::<*mut c_void, GetRegister>(symbol(c"_ULx86_64_get_reg")?),
            backtrace: std::mem::transmute::<*mut c_void, Backtrace>(symbol(c"unw_backtrace")?),
        })
    }
}

/// The calling thread's stack by the `backtrace` crate, that is by `_Unwind_Backtrace`; returns the number of
/// frames. The handler's own frames come first.
#[inline(never)]
pub fn by_backtrace_crate(frames: &mut [u64]) -> usize {
    let mut places = frames.iter_mut();
    let mut count = 0;
    // SAFETY: each thread walks its own stack only; with libgcc nothing is shared that needs the crate's lock.
    unsafe {
        backtrace::trace_unsynchronized(|frame| match places.next() {
            Some(place) => {
                *place = frame.ip() as u64;
                count += 1;
                true
            }
            None => false,
        });
    }
    count
}

impl Libunwind {
    /// The calling thread's stack by `unw_backtrace`, libunwind's fast way.
    #[inline(never)]
    pub fn backtrace(&self, frames: &mut [u64]) -> usize {
        let room = i32::try_from(frames.len()).unwrap_or(i32::MAX);
        // SAFETY: the buffer has room for so many addresses.
        unsafe { (self.backtrace)(frames.as_mut_ptr().cast(), room) }.max(0) as usize
    }

    /// The interrupted stack by `unw_step`, as gperftools takes it.
    ///
    /// # Safety
    /// `context` is the `ucontext` of the signal handler that calls this.
    #[inline(never)]
    pub unsafe fn step(&self, context: *mut c_void, frames: &mut [u64]) -> usize {
        let mut cursor = [0u64; CURSOR_WORDS];
        let cursor = cursor.as_mut_ptr();
        // SAFETY: the cursor is larger than libunwind's, the context valid by this function's contract.
        if unsafe { (self.init_local)(cursor, context, SIGNAL_FRAME) } < 0 {
            return 0;
        }
        let mut count = 0;
        for place in frames {
            // SAFETY: an initialized cursor.
            if unsafe { (self.get_register)(cursor, RIP, place) } < 0 {
                break;
            }
            count += 1;
            // SAFETY: an initialized cursor.
            if unsafe { (self.step)(cursor) } <= 0 {
                break;
            }
        }
        count
    }
}

/// Where a peer leaves its frames for another thread to read: one writer or reader at a time.
#[derive(Debug)]
pub struct Buffer {
    frames: UnsafeCell<[u64; CAPACITY]>,
    count: AtomicUsize,
}

// SAFETY: `fill` and `stack` leave it to their callers that only one of them runs at a time.
unsafe impl Sync for Buffer {}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::new()
    }
}

impl Buffer {
    /// An empty one.
    pub const fn new() -> Buffer {
        Buffer { frames: UnsafeCell::new([0; CAPACITY]), count: AtomicUsize::new(0) }
    }

    /// Lets `take` write frames and say how many.
    ///
    /// # Safety
    /// Nobody else uses this buffer meanwhile.
    pub unsafe fn fill(&self, take: impl FnOnce(&mut [u64]) -> usize) {
        // SAFETY: the caller is the only user.
        let count = take(unsafe { &mut *self.frames.get() });
        self.count.store(count, Release);
    }

    /// The frames from the interrupted `pc` on (the handler's own come before), without the zero that
    /// some write behind the last; all of them if the pc is not among them.
    ///
    /// # Safety
    /// Nobody fills this buffer meanwhile.
    pub unsafe fn stack(&self, pc: u64) -> Vec<u64> {
        let count = self.count.load(Acquire);
        // SAFETY: the caller is the only user.
        let frames = unsafe { &*self.frames.get() };
        from_interrupted(frames.get(..count).unwrap_or(&[]), pc)
    }
}

fn from_interrupted(frames: &[u64], pc: u64) -> Vec<u64> {
    let start = frames.iter().position(|&frame| frame == pc).unwrap_or(0);
    let mut stack: Vec<u64> = frames.iter().skip(start).copied().collect();
    while stack.last() == Some(&0) {
        stack.pop();
    }
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_begins_where_the_thread_was_interrupted() {
        assert_eq!(from_interrupted(&[1, 2, 3, 4, 0, 0], 3), [3, 4]);
        assert_eq!(from_interrupted(&[1, 2], 9), [1, 2]);
    }

    #[test]
    fn the_backtrace_crate_sees_its_caller() {
        let mut frames = vec![0; 256];
        let count = by_backtrace_crate(&mut frames);
        assert!(count > 3, "{count} frames");
        let here = the_backtrace_crate_sees_its_caller as *const () as u64;
        assert!(frames[..count].iter().any(|&frame| frame.wrapping_sub(here) < 4096));
    }
}
