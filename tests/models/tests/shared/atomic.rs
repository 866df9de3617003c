//! In the place of the crates' own `atomic`: loom's atomics, whose SeqCst is made of fences. loom
//! itself knows SeqCst of fences, and of loads and stores that all are.

#![allow(dead_code)] // Each model wants some of it.

use loom::sync::atomic as loomed;
pub use loom::sync::atomic::Ordering;
use loom::sync::atomic::fence;
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

            pub fn store(&self, value: $value, ordering: Ordering) {
                fenced(ordering, || self.0.store(value, ordering));
            }

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

atomic!(AtomicU64, loomed::AtomicU64, u64);
atomic!(AtomicU32, loomed::AtomicU32, u32);
atomic!(AtomicU8, loomed::AtomicU8, u8);
atomic!(AtomicBool, loomed::AtomicBool, bool);
atomic!(AtomicPtr, loomed::AtomicPtr<T>, *mut T, T);

impl AtomicU32 {
    pub fn fetch_add(&self, value: u32, ordering: Ordering) -> u32 {
        fenced(ordering, || self.0.fetch_add(value, ordering))
    }
}

impl AtomicU8 {
    pub fn fetch_or(&self, value: u8, ordering: Ordering) -> u8 {
        fenced(ordering, || self.0.fetch_or(value, ordering))
    }
}

impl Default for AtomicU32 {
    fn default() -> AtomicU32 {
        AtomicU32::new(0)
    }
}

impl Default for AtomicBool {
    fn default() -> AtomicBool {
        AtomicBool::new(false)
    }
}
