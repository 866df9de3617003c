//! What handlers read an interpreter's frames with, and when an old version of it may be freed: as
//! `mappings/publication.rs` does for unwind tables.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::OnceLock;
use swipr_os::memory::map_forever;
use swipr_runtimes::blocks::Pool;
use swipr_runtimes::known::{KnownKeys, KnownPair};
use swipr_runtimes::merge::RuntimeCode;
use swipr_runtimes::reader::{self, Reader};
use swipr_runtimes::runtime::Runtime;
use swipr_unwind::published::{self, interpreter};
use swipr_unwind::slot;

/// The handlers' blocks. They stay: a process has one interpreter, most of the time.
static POOL: OnceLock<&'static Pool> = OnceLock::new();

fn pool() -> Option<&'static Pool> {
    if POOL.get().is_none() {
        let memory = map_forever(size_of::<Pool>())?.cast::<Pool>();
        // SAFETY: mapped just now, for ever, and zeroed memory is a valid pool.
        let _ = POOL.set(unsafe { &*memory });
    }
    POOL.get().copied()
}

/// In a child of fork, before it has a sampler.
pub fn reset_after_fork() {
    if let Some(pool) = POOL.get() {
        pool.reset();
    }
}

/// What was published, and all that it refers to.
#[derive(Debug)]
struct PublishedReader {
    interpreter: *mut interpreter::Interpreter,
    reader: *mut Reader<'static>,
    known: *mut [KnownPair],
}

// SAFETY: the pointers are owned, and what they point to is only read or atomic.
unsafe impl Send for PublishedReader {}

/// Publishes; belongs to the sampler thread.
#[derive(Debug, Default)]
pub struct ReaderPublication {
    current: Option<PublishedReader>,
    retired: Vec<PublishedReader>,
}

impl ReaderPublication {
    /// Makes this interpreter, with that many places for known functions, the one that handlers
    /// read.
    pub fn publish(&mut self, runtime: Runtime, code: &RuntimeCode, places: usize) {
        let Some(pool) = pool() else { return };
        let part = |part: &Range<u64>| published::Range { low: part.start, high: part.end };
        let needed = code.needed().map(part);
        let known: *mut [KnownPair] = Box::into_raw((0..places).map(|_| KnownPair::default()).collect());
        // SAFETY: `PublishedReader` keeps it until no handler can have it any more.
        let of_known = unsafe { &*known };
        let reader = Box::new(Reader { runtime, known: KnownKeys::new(of_known), pool });
        let reader: *mut Reader<'static> = Box::into_raw(reader);
        let interpreter = Box::into_raw(Box::new(interpreter::Interpreter {
            needed,
            is_native: runtime.is_native(),
            code_cache: runtime.code_cache(),
            read: reader::read,
            data: reader.cast_const().cast::<c_void>(),
        }));
        let held = PublishedReader { interpreter, reader, known };
        // SAFETY: as above.
        unsafe { interpreter::publish(held.interpreter) };
        self.retired.extend(self.current.replace(held));
    }

    /// No interpreter from now on.
    pub fn withdraw(&mut self) {
        if let Some(current) = self.current.take() {
            interpreter::unpublish(current.interpreter);
            self.retired.push(current);
        }
    }

    /// The functions that handlers need not copy, to add some.
    pub fn known(&self) -> Option<KnownKeys<'_>> {
        // SAFETY: owned by `current`.
        self.current.as_ref().map(|current| KnownKeys::new(unsafe { &*current.known }))
    }

    /// Frees what was replaced, once no handler can hold it.
    pub fn free_retired(&mut self) {
        if !self.retired.is_empty() && !slot::any_written() {
            self.retired.clear();
        }
    }
}

impl Drop for PublishedReader {
    fn drop(&mut self) {
        // SAFETY: made by Box::into_raw in `publish`, and freed once, here.
        unsafe {
            drop(Box::from_raw(self.interpreter));
            drop(Box::from_raw(self.reader));
            drop(Box::from_raw(self.known));
        }
    }
}

impl Drop for ReaderPublication {
    fn drop(&mut self) {
        self.withdraw();
        if slot::any_written() {
            // As in `mappings/publication.rs`.
            std::mem::forget(std::mem::take(&mut self.retired));
        }
    }
}
