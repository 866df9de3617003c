//! Which `executor_globals` a thread has, where PHP was built with threads: each thread
//! that runs PHP has a storage, whose address is one of its values of pthread_getspecific(3).

use crate::blocks::BlockMemory;
use crate::python::ThreadKey;

/// Where a storage (`tsrm_tls_entry`) has what the C library calls its thread, and the next storage
/// with the same place in the table: the same in all versions.
const THREAD: u64 = 16;
const NEXT: u64 = 24;

/// What is read of a PHP with threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhpThreads {
    /// Where the address of the table of storages is.
    pub table: u64,
    /// From a thread's control block to the address of its storage.
    pub storage: u64,
    /// From a storage to its `executor_globals`.
    pub globals: u64,
    /// Where a thread's control block has the kernel's id of the thread; `None`: not known.
    pub tid_in_block: Option<u64>,
}

impl PhpThreads {
    /// The `executor_globals` of the thread, whose storage is at `state`, if it is known; `None`:
    /// it does not run PHP.
    pub(super) fn globals_of(
        &self,
        thread: ThreadKey,
        state: u64,
        memory: &mut BlockMemory<'_>,
    ) -> Option<u64> {
        let storage = match thread.pointer {
            0 => state,
            pointer => memory.word(pointer.checked_add(self.storage)?)?,
        };
        let owner = memory.word(storage.checked_add(THREAD)?).filter(|_| storage != 0)?;
        let is_its = match (thread.pointer, self.tid_in_block) {
            (0, Some(at)) => memory.half(owner.checked_add(at)?)? == thread.tid,
            (pointer, _) => owner == pointer,
        };
        if is_its { storage.checked_add(self.globals) } else { None }
    }

    /// What the C library calls the thread of a storage, and the kernel's id of it (0: not known);
    /// `None`: there is no storage. A control block begins with its own address.
    pub fn owner_of(&self, storage: u64, word: impl Fn(u64) -> Option<u64>) -> Option<(u64, u32)> {
        let owner = word(storage.checked_add(THREAD)?).filter(|_| storage != 0)?;
        let is_block = word(owner)? == owner && word(owner.checked_add(self.storage)?)? == storage;
        let tid = self.tid_in_block.and_then(|at| word(owner.checked_add(at)?));
        is_block.then_some((owner, tid.unwrap_or(0) as u32))
    }

    /// The next storage with the same place in the table.
    pub fn next(storage: u64, word: impl Fn(u64) -> Option<u64>) -> Option<u64> {
        word(storage.checked_add(NEXT)?)
    }
}
