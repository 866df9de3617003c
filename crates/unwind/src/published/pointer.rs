//! The pointer to what is published. Why both sides are SeqCst is told in `published`.

use crate::atomic::{AtomicPtr, Ordering::SeqCst};

/// See the module's text; null: nothing is.
#[derive(Debug)]
pub(crate) struct Pointer<T>(pub(crate) AtomicPtr<T>);

impl<T> Pointer<T> {
    /// Puts `new` in the place of what is returned.
    pub(crate) fn publish(&self, new: *mut T) -> *mut T {
        self.0.swap(new, SeqCst)
    }

    /// Takes `old` away, unless it is not there any more.
    pub(crate) fn unpublish(&self, old: *mut T) {
        let _ = self.0.compare_exchange(old, core::ptr::null_mut(), SeqCst, SeqCst);
    }

    /// What is published.
    #[inline(always)]
    pub(crate) fn current(&self) -> *mut T {
        self.0.load(SeqCst)
    }
}
