//! Calls that were made again although a handler of the host's may have run right before ([`swipr_unwind::call_again::doubts`]): who is still in its
//! call after a while is woken, and sees the `EINTR` that it would have seen at once.

use super::Sweeper;
use crate::not_asked;
use crate::platform::process::monotonic_ns;
use crate::platform::signals;
use crate::platform::threads::{Activity, cpu_ns};
use crate::sampler::threads::Threads;
use std::time::Duration;
use swipr_unwind::call_again::SHORT_NS;
use swipr_unwind::call_again::doubts::{self, Doubt};

/// How soon one is looked at again whose thread has not got to its call yet.
const AGAIN_NS: u64 = 2_000_000;
/// At the end all are settled within so many milliseconds.
const ENDS: u32 = 50;

impl Sweeper {
    /// Ends what is due, or all of it; returns when to look again.
    pub fn settle_doubts(&mut self, all: bool) -> Option<u64> {
        let Sweeper { threads, signal, .. } = self;
        let now_ns = monotonic_ns();
        let mut next: Option<u64> = None;
        doubts::settle(|doubt| {
            let due_ns = doubt.at_ns + SHORT_NS;
            let again_ns = match where_it_is(&doubt, threads) {
                Where::HasLeft => return true,
                _ if due_ns > now_ns && !all => due_ns,
                Where::InIt if interrupt(&doubt, *signal) => return true,
                _ => now_ns + AGAIN_NS,
            };
            next = Some(next.map_or(again_ns, |next| next.min(again_ns)));
            false
        });
        next
    }

    /// Nobody looks after them from now on.
    pub fn end_doubts(&mut self) {
        doubts::set_closed(true);
        for _ in 0..ENDS {
            if self.settle_doubts(true).is_none() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

enum Where {
    /// In the call that was made again, or in the same one later.
    InIt,
    HasLeft,
    /// It runs, on its way to the call or somewhere else.
    OnItsWay,
}

fn where_it_is(doubt: &Doubt, threads: &mut Threads) -> Where {
    if !cpu_ns(doubt.tid).is_some_and(|cpu_ns| doubt.is_about(cpu_ns)) {
        return Where::HasLeft;
    }
    let Some(thread) = threads.get_mut(doubt.tid) else { return Where::HasLeft };
    match thread.activity() {
        Ok(Activity::Blocked { sp, pc, .. }) if (sp, pc) == (doubt.sp, doubt.pc) => Where::InIt,
        // A page fault on its way is such a block, too, without a system call.
        Ok(Activity::Blocked { system_call: Some(_), .. } | Activity::Gone) => Where::HasLeft,
        Ok(_) => Where::OnItsWay,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Where::HasLeft,
        // Nobody sees where it is.
        Err(_) => Where::InIt,
    }
}

/// Whether there is nothing left to do.
fn interrupt(doubt: &Doubt, signal: i32) -> bool {
    if !signals::is_installed(signal) {
        return false; // another one will be used
    }
    let sent = not_asked::asking(doubt.tid, || signals::interrupt(doubt.tid, signal));
    // Too many signals may be queued, for a while.
    sent.is_none_or(|sent| sent.is_ok())
}
