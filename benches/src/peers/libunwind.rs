//! libunwind, where its shared library is installed: `unw_backtrace`, its fast way, and `unw_step`,
//! the way of gperftools.

use super::library::Library;
use std::ffi::c_void;

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

pub(super) fn load() -> Option<Libunwind> {
    let library = Library::open(c"libunwind.so.8")?;
    let symbol = |name| library.symbol(name);
    let space = symbol(c"_ULx86_64_local_addr_space")?.cast::<*mut c_void>();
    let set_caching = symbol(c"_ULx86_64_set_caching_policy")?;
    // SAFETY: the names are those of libunwind 1.x on x86-64 (libunwind-x86_64.h), whose functions
    // have these types.
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
        // SAFETY: the cursor is larger than libunwind's, the context valid by this function's
        // contract.
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
