//! The pointer to the published snapshot. `published` explains why both sides are SeqCst.

use crate::atomic::{AtomicPtr, Ordering::SeqCst};

/// See the module's text; null: nothing is.
#[derive(Debug)]
pub(crate) struct Pointer<T>(pub(crate) AtomicPtr<T>);

impl<T> Pointer<T> {
    /// Stores `new` and returns the pointer before.
    pub(crate) fn publish(&self, new: *mut T) -> *mut T {
        self.0.swap(new, SeqCst)
    }

    /// Clears the pointer, unless it is not `old` any more.
    pub(crate) fn unpublish(&self, old: *mut T) {
        let _ = self.0.compare_exchange(old, core::ptr::null_mut(), SeqCst, SeqCst);
    }

    /// What is published.
    #[inline(always)]
    pub(crate) fn current(&self) -> *mut T {
        self.0.load(SeqCst)
    }
}
