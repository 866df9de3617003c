//! Which call a thread is in with which the kernel goes on: it says restart_syscall(2) of all of them.

use crate::system_call;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Threads' last such calls, at their ids. Two that share a place forget each other's.
static CALLS: [Call; 1024] = [const { Call { place: AtomicU64::new(0), number: AtomicU64::new(0) } }; 1024];

/// Written by its own thread, in the handler.
struct Call {
    /// Behind the system call.
    place: AtomicU64,
    /// The thread's id, and the number in the lower half.
    number: AtomicU64,
}

/// The calling thread's call `number`, which ends at `pc`, is about to go on.
pub fn note(pc: u64, number: u32) {
    let tid = system_call::thread_id() as u64;
    if let Some(call) = CALLS.get(tid as usize % CALLS.len()) {
        call.place.store(pc, Relaxed);
        call.number.store(tid << 32 | u64::from(number), Relaxed);
    }
}

/// The number of the call with which the kernel goes on in a thread that stands at `pc`, if we know it.
pub fn number(tid: u32, pc: u64) -> Option<u32> {
    let call = CALLS.get(tid as usize % CALLS.len())?;
    let number = call.number.load(Relaxed);
    (number >> 32 == u64::from(tid) && call.place.load(Relaxed) == pc).then_some(number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_call_is_known_at_its_place_only() {
        let tid = system_call::thread_id() as u32;
        note(0x5000, 202);
        assert_eq!(number(tid, 0x5000), Some(202));
        assert_eq!(number(tid, 0x5002), None);
        assert_eq!(number(tid + CALLS.len() as u32, 0x5000), None);
    }
}
