//! What the child of a fork has of its parent's objects: their unwind tables need not be built
//! again. The child frees none of it.

use super::loaded::LoadedObject;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};
use swipr_os::objects::Changes;

/// The loader's objects as of these changes, and whether one of them wants a table.
type Inheritance = (Changes, Vec<Arc<LoadedObject>>, Arc<AtomicBool>);

/// What this process's sampler knows.
static OWN: AtomicPtr<Inheritance> = AtomicPtr::new(ptr::null_mut());
/// What the parent's sampler knew when it forked this process. Never freed.
static PARENTS: AtomicPtr<Inheritance> = AtomicPtr::new(ptr::null_mut());

/// Children that are forked from now on have these.
pub fn keep(changes: Changes, objects: &[Arc<LoadedObject>], any_wanted: &Arc<AtomicBool>) {
    replace(Box::into_raw(Box::new((changes, objects.to_vec(), any_wanted.clone()))));
}

/// Children that are forked from now on have none.
pub fn forget() {
    replace(ptr::null_mut());
}

fn replace(known: *mut Inheritance) {
    let before = OWN.swap(known, AcqRel);
    if !before.is_null() {
        // SAFETY: made by Box::into_raw in `keep`; nothing in this process reads it, and the
        // code that swaps it out frees it.
        drop(unsafe { Box::from_raw(before) });
    }
}

/// In the child of a fork: what was the parent's own is the parent's.
pub fn inherit() {
    let own = OWN.swap(ptr::null_mut(), AcqRel);
    if !own.is_null() {
        PARENTS.store(own, Release);
    }
}

/// What the parent knew.
pub fn of_parent() -> Option<Inheritance> {
    // SAFETY: what was put there is never freed nor changed.
    unsafe { PARENTS.load(Acquire).as_ref() }.cloned()
}
