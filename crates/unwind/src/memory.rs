//! Reading a stack. Every read is either inside bounds that are known to be mapped, or goes through
//! the kernel, which returns an error where a load would fault.

use crate::arch::{Arch, Native};
use crate::system_call::{self, EFAULT, ENOSYS, EPERM};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Where the walk reads from.
pub trait Memory {
    /// The eight bytes at `address`; `None` if they cannot be read.
    fn word(&mut self, address: u64) -> Option<u64>;
    /// Copies code bytes at `address`; `false` if not all can be read.
    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool;
    /// The part of it that plain loads can read.
    fn plain(&self) -> Plain<'_> {
        Plain::NOTHING
    }
}

/// Words of a [`Memory`] that can be read by plain loads, as long as it is there.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'m> {
    low: u64,
    /// Where the last word begins; below `low`: there is none.
    last: u64,
    memory: PhantomData<&'m ()>,
}

impl<'m> Plain<'m> {
    /// No word at all.
    pub const NOTHING: Plain<'static> = Plain { low: 1, last: 0, memory: PhantomData };

    /// # Safety
    /// `low..high` can be read as long as there is a `Plain` for it.
    #[inline(always)]
    unsafe fn new(low: u64, high: u64) -> Plain<'m> {
        match high.checked_sub(8) {
            Some(last) => Plain { low, last, memory: PhantomData },
            None => Plain::NOTHING,
        }
    }

    /// The eight bytes at `address`, which is aligned to them; `None` if they are not among these.
    #[inline(always)]
    pub fn word(self, address: u64) -> Option<u64> {
        let readable = self.low <= address && address <= self.last && address.is_multiple_of(8);
        // SAFETY: aligned, and inside the range that `new`'s caller vouched for.
        readable.then(|| unsafe { (address as *const u64).read_volatile() })
    }
}

static PID: AtomicI32 = AtomicI32::new(0);

/// Stores this process's id. Call again after fork.
pub fn set_process(pid: i32) {
    PID.store(pid, Relaxed);
}

/// The process id last given to [`set_process`].
pub fn process_id() -> i32 {
    PID.load(Relaxed)
}

/// Copies this process's memory at `address` through the kernel; returns how many bytes could be
/// read from the start. Never faults. Async-signal-safe. It names the calling thread, not the
/// process: the first thread, whose id is the process's, may have ended and has no memory then.
pub fn guarded_copy(address: u64, buffer: &mut [u8]) -> usize {
    system_call::process_vm_readv(system_call::thread_id(), address, buffer).unwrap_or(0)
}

/// Whether the kernel says that not all of these bytes, 64 at most, can be read: a system call that
/// is given them fails with EFAULT. Async-signal-safe.
pub fn is_unreadable(address: u64, bytes: usize) -> bool {
    let mut buffer = [0; 64];
    let Some(buffer) = buffer.get_mut(..bytes) else { return false };
    let read = system_call::process_vm_readv(system_call::thread_id(), address, buffer);
    read.map_or_else(|error| error == EFAULT, |read| read < bytes)
}

/// Little-endian words, read as by [`guarded_copy`].
pub fn guarded_words<const COUNT: usize>(address: u64) -> Option<[u64; COUNT]> {
    let mut words = [[0; 8]; COUNT];
    let read = guarded_copy(address, words.as_flattened_mut());
    (read == 8 * COUNT).then(|| words.map(u64::from_le_bytes))
}

/// As [`guarded_copy`]. Where process_vm_readv is refused it reads `memory_file`, a descriptor of
/// `/proc/self/mem` in the calling thread's own table (see close_range(2)); -1: none.
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
pub struct OwnStack<'a> {
    stack: Plain<'static>,
    context: Plain<'static>,
    /// Any other memory: another stack that the thread has, most of all.
    other: OtherStack<'a>,
}

impl<'a> OwnStack<'a> {
    /// A `ucontext` at `context`, of `length` bytes, and no stack yet. Other memory is read through
    /// `window`, as by [`OtherStack`].
    ///
    /// # Safety
    /// Those bytes can be read.
    #[inline(always)]
    pub unsafe fn of_context(context: u64, length: u64, window: &'a mut [u8]) -> OwnStack<'a> {
        // SAFETY: says the caller.
        let context = unsafe { Plain::new(context, context.saturating_add(length)) };
        OwnStack { stack: Plain::NOTHING, context, other: OtherStack::new(window, -1) }
    }

    /// `low..high` is the mapping of the thread's stack as far as is known; empty
    /// when it is not. `sp` is where the thread was interrupted.
    ///
    /// # Safety
    /// If `sp` lies in `low..high`, everything from `sp` (less the red zone) to `high` is mapped
    /// for as long as the thread does not return to the interrupted code.
    #[inline(always)]
    pub unsafe fn set_stack(&mut self, sp: u64, low: u64, high: u64) {
        if sp >= low && sp < high {
            // Below the red zone the stack may end: its guard page is inside the mapping's range
            // only for stacks that grow.
            let lowest = sp.saturating_sub(Native::RED_ZONE).max(low);
            // SAFETY: says the caller.
            self.stack = unsafe { Plain::new(lowest, high) };
        }
    }

    #[cold]
    #[inline(never)]
    fn other_word(&mut self, address: u64) -> Option<u64> {
        self.other.word(address)
    }
}

impl Memory for OwnStack<'_> {
    #[inline(always)]
    fn word(&mut self, address: u64) -> Option<u64> {
        match self.stack.word(address).or_else(|| self.context.word(address)) {
            Some(word) => Some(word),
            None => self.other_word(address),
        }
    }

    #[cold]
    #[inline(never)]
    fn code(&mut self, address: u64, buffer: &mut [u8]) -> bool {
        self.other.code(address, buffer)
    }

    #[inline(always)]
    fn plain(&self) -> Plain<'_> {
        self.stack
    }
}

/// A stack that is copied piece by piece through the kernel: that of another thread, blocked in a
/// system call, or one that this thread is not on. The caller has to find out whether another
/// thread stayed blocked meanwhile.
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
        // A walk goes upwards, but now and then reads a little below the last address.
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
        let mut own = unsafe { OwnStack::of_context(0, 0, &mut []) };
        assert_eq!(own.word(8), None);
        assert!(!own.code(8, &mut [0; 4]));
    }

    #[test]
    fn words_are_read_across_the_windows_edge() {
        set_own_process();
        let data: [u64; 100] = core::array::from_fn(|i| i as u64 * 3);
        let base = data.as_ptr() as u64;
        let (mut buffer, mut another) = ([0; 200], [0; 200]);
        let mut stack = OtherStack::new(&mut buffer, -1);
        // SAFETY: the stack range is empty and so is the context.
        let mut own = unsafe { OwnStack::of_context(0, 0, &mut another) };
        for i in (0..100).chain([50, 3, 99]) {
            assert_eq!(stack.word(base + 8 * i), Some(i * 3));
            assert_eq!(own.word(base + 8 * i), Some(i * 3));
        }
    }

    #[test]
    fn the_end_of_the_address_space_is_no_stack() {
        // SAFETY: never read: no word lies within.
        let word = |low, high, address| unsafe { Plain::new(low, high) }.word(address);
        assert_eq!(word(0, 0, 0), None);
        assert_eq!(word(0, 4, 0), None);
        assert_eq!(word(0, 4, u64::MAX - 3), None);
        assert_eq!(word(16, 32, 32), None);
        let words = [5, 6u64];
        let low = words.as_ptr() as u64;
        assert_eq!([0, 8, 16].map(|at| word(low, low + 16, low + at)), [Some(5), Some(6), None]);
        assert_eq!([1, 9].map(|at| word(low, low + 16, low + at)), [None; 2], "not aligned");
    }
}
