//! Whether a message is on its way that its receiver has not seen: of many that say the same, one
//! is enough.

use crate::atomic::{AtomicBool, Ordering::*};

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Pending(pub(super) AtomicBool);

impl Pending {
    /// Sends, unless a message is on its way; `send` tells whether there is one now.
    pub(super) fn raise(&self, send: impl FnOnce() -> bool) {
        // Who sets the flag sends. Pairs with the swap in `lower`: who finds the flag set is heard
        // when it is taken down.
        if !self.0.swap(true, AcqRel) && !send() {
            self.0.store(false, Release);
        }
    }

    /// Takes all messages; who raises it from here on sends again, and what was done by those who
    /// raised it before can be seen now.
    pub(super) fn lower(&self, take: impl FnOnce()) {
        take();
        // After the messages are taken, not before: one sent in between would be taken with them
        // and leave the flag set, and nobody would send again.
        self.0.swap(false, AcqRel);
    }
}
