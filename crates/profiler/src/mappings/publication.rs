//! The snapshot of tables that handlers read, and when an old one may be freed.

use super::unwind_info::UnwindInfo;
use std::sync::Arc;
use swipr_symbols::rows::order::sorted_by;
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
    /// Makes these tables, which are sorted and do not overlap, the ones that handlers use, with
    /// those of code inside theirs that they do not describe.
    pub fn publish(
        &mut self,
        mut tables: Vec<Arc<UnwindInfo>>,
        inner: Vec<Arc<UnwindInfo>>,
        executable: &[Range],
    ) {
        let mut inner = sorted_by(&inner, |table| table.text().start);
        let objects: Box<[Object<'static>]> = in_pieces(&tables, &inner).into();
        tables.append(&mut inner);
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

/// The objects of `tables`, each divided where one of `inner` lies in it, and these.
fn in_pieces(tables: &[Arc<UnwindInfo>], inner: &[Arc<UnwindInfo>]) -> Vec<Object<'static>> {
    let mut objects: Vec<Object<'static>> = inner.iter().map(|table| table.published()).collect();
    for mut object in tables.iter().map(|table| table.published()) {
        let (low, high) = (object.text.low, object.text.high);
        for hole in
            inner.iter().map(|table| table.text()).filter(|hole| low <= hole.start && hole.end <= high)
        {
            let text = Range { low: object.text.low, high: hole.start };
            objects.push(Object { text, ..object });
            object.text.low = hole.end;
        }
        objects.push(object);
    }
    objects.retain(|object| object.text.low < object.text.high);
    sorted_by(&objects, |object| object.text.low)
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

#[cfg(test)]
mod tests {
    use super::*;
    use swipr_symbols::rows::code_scan::{CodeState, table};

    #[test]
    fn objects_are_divided_where_other_tables_lie_in_them() {
        let info = |text: std::ops::Range<u64>| {
            Arc::new(UnwindInfo::new(table(&[(text.clone(), CodeState::AT_ENTRY)]).unwrap(), text, 0))
        };
        let (tables, inner) = ([info(10..50), info(60..70)], [info(10..12), info(20..30), info(80..90)]);
        let texts: Vec<_> =
            in_pieces(&tables, &inner).iter().map(|object| object.text.low..object.text.high).collect();
        assert_eq!(texts, [10..12, 12..20, 20..30, 30..50, 60..70, 80..90]);
    }
}
