//! Calls that were made again although a handler of the host's may have run right before ([`swipr_unwind::call_again::doubts`]): who is still in its
//! call after a while is woken, and sees the `EINTR` that it would have seen at once.

use super::Sweeper;
use crate::not_asked;
use crate::platform::process::monotonic_ns;
use crate::platform::signals;
use crate::platform::threads::cpu_ns;
use swipr_unwind::call_again::{SHORT_NS, doubts};

impl Sweeper {
    /// Ends what is due, or all of it; returns when the next is.
    pub fn settle_doubts(&mut self, all: bool) -> Option<u64> {
        let now_ns = monotonic_ns();
        let mut next = None;
        doubts::settle(|doubt| {
            let is_still_in_it = cpu_ns(doubt.tid).is_some_and(|cpu_ns| doubt.is_about(cpu_ns));
            let due_ns = doubt.at_ns + SHORT_NS;
            if is_still_in_it && due_ns > now_ns && !all {
                next = next.min(Some(due_ns)).or(Some(due_ns));
                return false;
            }
            if is_still_in_it {
                // An error: it is gone.
                _ = not_asked::asking(doubt.tid, || signals::interrupt(doubt.tid, self.signal));
            }
            true
        });
        next
    }
}
