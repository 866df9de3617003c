//! Calls that were made again although a handler of the host's may have run right before, for which they may have waited.
//!
//! Nothing tells for sure that a handler has returned while our signal was on its way to a CPU (tens of microseconds where there is a hypervisor). So the sampler
//! looks after such a call: if its thread is still in it after [`super::SHORT_NS`], it is cut short again, and the host sees the `EINTR`
//! that it would have seen at once. The worst that can happen is that it sees what its handler has done a moment later; most calls have ended by then.

mod place;

use crate::atomic::{AtomicU64, Ordering::*};
use place::Place;

/// Threads' open doubts, at their ids. Who finds the place taken has no call made again.
static DOUBTS: [Place; 256] =
    [const { Place { taking: AtomicU64::new(0), call: [const { AtomicU64::new(0) }; 4] } }; 256];
/// 1: nobody looks after them.
static CLOSED: AtomicU64 = AtomicU64::new(1);

/// What a thread has to do with its CPU from the handler to where it sleeps in its call, at the most: it may have a thousand files to look at. Who has computed more has left it.
const ENTRY_NS: u64 = 500_000;

/// A thread's call that was made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The thread.
    pub tid: u32,
    /// Behind its system call.
    pub pc: u64,
    /// Its stack pointer there.
    pub sp: u64,
    /// When that was (CLOCK_MONOTONIC).
    pub at_ns: u64,
    /// What its CPU clock was.
    pub cpu_ns: u64,
}

impl Doubt {
    /// Handler: the calling thread is about to make its call again. `false`: it must not.
    pub fn open(self) -> bool {
        DOUBTS
            .get(self.tid as usize % DOUBTS.len())
            .is_some_and(|place| place.take(self.tid, [self.pc, self.sp, self.at_ns, self.cpu_ns], &CLOSED))
    }

    /// Whether the thread, whose CPU clock is there now, may still be in that call.
    pub fn is_about(&self, cpu_ns: u64) -> bool {
        // Less than before: another thread has got the id.
        cpu_ns.checked_sub(self.cpu_ns).is_some_and(|used_ns| used_ns <= ENTRY_NS)
    }
}

/// Sampler: from now on it looks after them, or does so for the last time.
pub fn set_closed(closed: bool) {
    CLOSED.store(u64::from(closed), SeqCst);
}

/// Sampler: shows all of them; those of which `is_settled` says so are gone.
pub fn settle(mut is_settled: impl FnMut(Doubt) -> bool) {
    for place in &DOUBTS {
        let Some((taking, [pc, sp, at_ns, cpu_ns])) = place.taken() else { continue };
        if is_settled(Doubt { tid: taking.tid(), pc, sp, at_ns, cpu_ns }) {
            place.free(taking);
        }
    }
}

/// After fork, in the child: the threads that had them do not exist here.
pub fn reset_after_fork() {
    CLOSED.store(1, Relaxed);
    DOUBTS.iter().for_each(|place| place.taking.store(0, Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBT: Doubt = Doubt { tid: 5000, pc: 0x5002, sp: 0x7000, at_ns: 70, cpu_ns: 9_000_000 };

    #[test]
    fn a_doubt_is_there_until_it_is_settled() {
        let another = Doubt { tid: DOUBT.tid + DOUBTS.len() as u32, ..DOUBT };
        let seen = |settled: bool| {
            let mut seen = None;
            settle(|doubt| {
                assert_eq!(seen.replace(doubt), None);
                settled
            });
            seen
        };
        assert!(!DOUBT.open(), "nobody looks after it");
        set_closed(false);
        assert!(DOUBT.open());
        assert!(!another.open(), "its place is taken");
        assert_eq!(seen(false), Some(DOUBT));
        assert_eq!(seen(true), Some(DOUBT));
        assert_eq!(seen(true), None);
        assert!(another.open());
        reset_after_fork();
        assert_eq!(seen(true), None);
    }

    #[test]
    fn who_has_computed_has_left_its_call() {
        assert!(DOUBT.is_about(9_004_000));
        assert!(!DOUBT.is_about(9_600_000));
        assert!(!DOUBT.is_about(8_000_000), "another thread");
    }
}
