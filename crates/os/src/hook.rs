//! A function that a lower module calls and a higher module sets, once there is an agent. Can be
//! called where nothing may be allocated or waited for.

use std::sync::atomic::{AtomicPtr, Ordering::*};

/// A function, or none yet.
#[derive(Debug, Default)]
pub struct Hook(AtomicPtr<fn()>);

impl Hook {
    /// None yet.
    pub const fn new() -> Hook {
        Hook(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// From now on this one is called.
    pub fn set(&self, function: &'static fn()) {
        self.0.store(std::ptr::from_ref(function).cast_mut(), Release);
    }

    /// Calls it, if there is one.
    pub fn call(&self) {
        // SAFETY: null, or a reference that lives for ever; nothing writes through it.
        if let Some(function) = unsafe { self.0.load(Acquire).as_ref() } {
            function();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn a_hook_calls_what_it_was_given() {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let hook = Hook::new();
        hook.call();
        assert_eq!(CALLS.load(Relaxed), 0);
        hook.set(&((|| _ = CALLS.fetch_add(1, Relaxed)) as fn()));
        hook.call();
        assert_eq!(CALLS.load(Relaxed), 1);
    }
}
