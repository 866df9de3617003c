//! In the place of `swipr_unwind::atomic`: loom's atomics, whose SeqCst is made of fences. loom itself knows SeqCst of fences, and of
//! loads and stores that all are.

pub use loom::sync::atomic::Ordering;
use loom::sync::atomic::{AtomicPtr as LoomPtr, AtomicU64 as LoomU64, fence};
use std::fmt::Debug;

fn fenced<T>(ordering: Ordering, operation: impl FnOnce() -> T) -> T {
    if ordering == Ordering::SeqCst {
        fence(Ordering::SeqCst);
        let result = operation();
        fence(Ordering::SeqCst);
        result
    } else {
        operation()
    }
}

macro_rules! atomic {
    ($name:ident, $loom:ty, $value:ty $(, $parameter:ident)?) => {
        #[derive(Debug)]
        pub struct $name $(<$parameter>)? ($loom);

        impl $(<$parameter>)? $name $(<$parameter>)? {
            pub fn new(value: $value) -> Self {
                $name(<$loom>::new(value))
            }

            pub fn load(&self, ordering: Ordering) -> $value {
                fenced(ordering, || self.0.load(ordering))
            }

            #[allow(dead_code)]
            pub fn store(&self, value: $value, ordering: Ordering) {
                fenced(ordering, || self.0.store(value, ordering));
            }

            #[allow(dead_code)]
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                fenced(ordering, || self.0.swap(value, ordering))
            }

            pub fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                fenced(success, || self.0.compare_exchange(old, new, success, failure))
            }
        }
    };
}

atomic!(AtomicU64, LoomU64, u64);
atomic!(AtomicPtr, LoomPtr<T>, *mut T, T);
