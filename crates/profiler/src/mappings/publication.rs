//! The snapshot of tables that handlers read, and when an old one may be freed.

use super::unwind_info::UnwindInfo;
use std::sync::Arc;
use swipr_unwind::published::{self, Object, Range, Snapshot};
use swipr_unwind::slot;

/// A published snapshot and what it refers to.
#[derive(Debug)]
struct Held {
    snapshot: *mut Snapshot<'static>,
    objects: *mut [Object<'static>],
    executable: *mut [Range],
    /// The owners of the tables that the objects refer to.
    _tables: Vec<Arc<UnwindInfo>>,
}

/// Publishes snapshots; belongs to the sampler thread.
#[derive(Debug, Default)]
pub struct Publication {
    current: Option<Held>,
    retired: Vec<Held>,
}

// SAFETY: the pointers are owned, and what they point to is only read.
unsafe impl Send for Publication {}

impl Publication {
    /// Makes these tables, which are sorted and do not overlap, the ones that handlers use.
    pub fn publish(&mut self, tables: Vec<Arc<UnwindInfo>>, executable: &[Range]) {
        let objects: Box<[Object<'static>]> = tables.iter().map(|table| table.published()).collect();
        let executable = Box::leak(Box::<[Range]>::from(executable));
        let objects = Box::leak(objects);
        let snapshot = Box::leak(Box::new(Snapshot { objects, executable }));
        let (objects, executable) =
            (snapshot.objects as *const [_] as *mut _, snapshot.executable as *const [_] as *mut _);
        let held = Held { snapshot, objects, executable, _tables: tables };
        if self.current.is_none() {
            // What a forked child has of its parent's.
            published::clear_cache();
        }
        // SAFETY: `held` keeps all of it alive until no handler can have it any more, see
        // `free_retired`.
        unsafe { published::publish(held.snapshot) };
        published::clear_cache();
        self.retired.extend(self.current.replace(held));
    }

    /// Frees snapshots that were replaced, once no handler can hold one of them.
    pub fn free_retired(&mut self) {
        if !self.retired.is_empty() && !slot::any_written() {
            self.retired.clear();
            // A handler that still had an old snapshot may have cached a rule of it.
            published::clear_cache();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: made by Box::leak in `publish`, and freed once, here.
        unsafe {
            drop(Box::from_raw(self.snapshot));
            drop(Box::from_raw(self.objects));
            drop(Box::from_raw(self.executable));
        }
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        if let Some(current) = &self.current {
            published::unpublish(current.snapshot);
        }
        let held: Vec<Held> = self.current.take().into_iter().chain(self.retired.drain(..)).collect();
        if slot::any_written() {
            // A thread may still walk with them, and may be descheduled now: leaking them is better
            // than freeing them under that thread.
            std::mem::forget(held);
        }
        published::clear_cache();
    }
}
