//! A flag that merges wake-ups: while a message is on its way, no other one is sent.

use crate::atomic::{AtomicBool, Ordering::*};

/// Whether a message is on its way that its receiver has not seen.
#[derive(Debug, Default)]
pub(super) struct Pending(pub(super) AtomicBool);

impl Pending {
    /// Sends, unless a message is on its way. `send` returns whether there is one now.
    pub(super) fn raise(&self, send: impl FnOnce() -> bool) {
        // The thread that sets the flag sends. Pairs with the swap in `lower`: what a thread did
        // before it found the flag set is visible after that.
        if !self.0.swap(true, AcqRel) && !send() {
            self.0.store(false, Release);
        }
    }

    /// Takes all messages. Later calls of [`Pending::raise`] send again. What callers did before
    /// earlier calls is visible now.
    pub(super) fn lower(&self, take: impl FnOnce()) {
        take();
        // After the messages are taken, not before: a message sent in between would be taken with
        // them and leave the flag set. No message would be sent again.
        self.0.swap(false, AcqRel);
    }
}
