//! Reading a stack. Every read is either inside bounds that are known to be
//! mapped, or goes through the kernel, which answers an error where a load would
//! fault.

use crate::arch::{Arch, Native};
use crate::system_call::{self, ENOSYS, EPERM};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Where the walk reads from.
pub trait Memory {
    /// The eight bytes at `address`; `None` if they cannot be read.
    fn word(&mut self, address: u64) -> Option<u64>;
    /// Copies code bytes at `address`; `false` if not all can be read.
    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool;
}

static PID: AtomicI32 = AtomicI32::new(0);

/// Tells the guarded reads who we are. Again after fork.
pub fn set_process(pid: i32) {
    PID.store(pid, Relaxed);
}

/// The process id last given to [`set_process`].
pub fn process_id() -> i32 {
    PID.load(Relaxed)
}

/// Copies our own memory at `address` through the kernel (by the calling thread's id: the first thread's, which is the
/// process's, may have ended and has no memory then) and returns how many
/// bytes could be read from the start. Never faults. Async-signal-safe.
pub fn guarded_copy(address: u64, buffer: &mut [u8]) -> usize {
    system_call::process_vm_readv(system_call::thread_id(), address, buffer).unwrap_or(0)
}

/// As [`guarded_copy`], with a descriptor of `/proc/self/mem` of the calling thread's
/// own (see close_range(2)) for where process_vm_readv is refused; -1: none.
pub fn guarded_copy_or_file(address: u64, buffer: &mut [u8], memory_file: i32) -> usize {
    match system_call::process_vm_readv(system_call::thread_id(), address, buffer) {
        Ok(length) => length,
        Err(EPERM | ENOSYS) if memory_file >= 0 => {
            system_call::pread(memory_file, address, buffer).unwrap_or(0)
        }
        Err(_) => 0,
    }
}

/// The stack of the thread that reads, from its own signal handler.
#[derive(Debug)]
pub struct OwnStack {
    low: u64,
    high: u64,
    context_low: u64,
    context_high: u64,
    /// The thread's id, once it was asked for.
    tid: Option<i32>,
}

impl OwnStack {
    /// `low..high` is the mapping of the thread's stack as far as is known; empty
    /// when it is not. `sp` is where the thread was interrupted and `context` its
    /// `ucontext`, of `context_length` bytes.
    ///
    /// # Safety
    /// If `sp` lies in `low..high`, everything from `sp` (less the red zone) to `high` is mapped for as long as the thread
    /// does not return to the interrupted code; `context` points to `context_length` readable bytes.
    #[inline(always)]
    pub unsafe fn new(sp: u64, low: u64, high: u64, context: u64, context_length: u64) -> OwnStack {
        let inside = sp >= low && sp < high;
        OwnStack {
            // Below the red zone the stack may end: its guard page is inside the mapping's range
            // only for stacks that grow.
            low: if inside { sp.saturating_sub(Native::RED_ZONE).max(low) } else { 0 },
            high: if inside { high } else { 0 },
            context_low: context,
            context_high: context.saturating_add(context_length),
            tid: None,
        }
    }

    #[cold]
    #[inline(never)]
    fn guarded_word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.guarded_code(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
    }

    #[cold]
    #[inline(never)]
    fn guarded_code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        let tid = *self.tid.get_or_insert_with(system_call::thread_id);
        system_call::process_vm_readv(tid, address, buffer) == Ok(buffer.len())
    }
}

#[inline(always)]
fn holds_word(low: u64, high: u64, address: u64) -> bool {
    address >= low && high.wrapping_sub(8) >= address && high >= 8
}

impl Memory for OwnStack {
    #[inline(always)]
    fn word(&mut self, address: u64) -> Option<u64> {
        if address & 7 == 0
            && (holds_word(self.low, self.high, address)
                || holds_word(self.context_low, self.context_high, address))
        {
            // SAFETY: aligned, and inside one of the ranges that `new`'s caller vouched for.
            return Some(unsafe { (address as *const u64).read_volatile() });
        }
        self.guarded_word(address)
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.guarded_code(address, buffer)
    }
}

/// The stack of another thread, which is blocked in a system call: copied piece by
/// piece through the kernel. Whether it stayed blocked meanwhile is for the
/// caller to find out.
#[derive(Debug)]
pub struct OtherStack<'a> {
    window: &'a mut [u8],
    start: u64,
    length: usize,
    memory_file: i32,
}

impl<'a> OtherStack<'a> {
    /// Reads through `window`, whose size is the size of a copy; for `memory_file`
    /// see [`guarded_copy_or_file`].
    pub fn new(window: &'a mut [u8], memory_file: i32) -> OtherStack<'a> {
        OtherStack { window, start: 0, length: 0, memory_file }
    }

    fn in_window(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let bytes = self.window.get(..self.length)?.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(*bytes.first_chunk::<8>()?))
    }
}

impl Memory for OtherStack<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        if let Some(word) = self.in_window(address) {
            return Some(word);
        }
        // A walk goes upwards, with a look below the last address now and then.
        self.start = address.saturating_sub(Native::RED_ZONE);
        self.length = guarded_copy_or_file(self.start, self.window, self.memory_file);
        if self.in_window(address).is_none() {
            self.start = address;
            self.length = guarded_copy_or_file(address, self.window, self.memory_file);
        }
        self.in_window(address)
    }

    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        guarded_copy_or_file(address, buffer, self.memory_file) == buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_own_process() {
        // SAFETY: getpid has no preconditions.
        set_process(unsafe { libc::getpid() });
    }

    #[test]
    fn unmapped_memory_is_no_answer_instead_of_a_fault() {
        set_own_process();
        let mut buffer = [0; 64];
        let mut stack = OtherStack::new(&mut buffer, -1);
        assert_eq!(stack.word(8), None);
        assert_eq!(stack.word(u64::MAX - 7), None);
        // SAFETY: the stack range is empty and so is the context.
        let mut own = unsafe { OwnStack::new(0, 0, 0, 0, 0) };
        assert_eq!(own.word(8), None);
        assert!(!own.code(8, &mut [0; 4]));
    }

    #[test]
    fn words_are_read_across_the_windows_edge() {
        set_own_process();
        let data: [u64; 100] = core::array::from_fn(|i| i as u64 * 3);
        let base = data.as_ptr() as u64;
        let mut buffer = [0; 200];
        let mut stack = OtherStack::new(&mut buffer, -1);
        for i in (0..100).chain([50, 3, 99]) {
            assert_eq!(stack.word(base + 8 * i), Some(i * 3));
        }
    }

    #[test]
    fn the_end_of_the_address_space_is_no_stack() {
        assert!(!holds_word(0, 0, 0));
        assert!(!holds_word(16, 32, 25));
        assert!(holds_word(16, 32, 24));
        assert!(!holds_word(0, 4, u64::MAX - 3));
    }
}
