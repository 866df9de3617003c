//! Whether a thread has begun a call again already.
//!
//! A call with a time-out that is begun again loses the time that it has waited. Mostly that is no time, but a thread that is woken in
//! its call for nothing, and is seen on a CPU then, may have waited for long; and if that can happen once, it can happen again and again
//! (broken datagrams, other threads that take what came, a debugger). So the same call is begun again once at the most, which makes it last twice
//! its time at the most; twice where that is a moment ([`super::SHORT_NS`]), as a thread that waits for a CPU on its way into its call may be asked there again. The same is, for as long as its time-out, what a thread made from the same place with the same stack. One that has gone on in its
//! program has mostly left something else there; if it has not, the host sees `EINTR`. As other threads may write there, too, even
//! what looks like other calls is begun again [`MOST`] times in that time and no more. Not bounded: the sleep of a thread that a debugger stops alone, thousands of times a second.

use super::SHORT_NS;
use crate::memory::guarded_copy;
use crate::system_call::{self, CLOCK_MONOTONIC};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// So much of the stack is compared, in parts.
const PARTS: u64 = 8;
const PART: usize = 32;
const MOST: u64 = 4;

/// Threads' last calls that were begun again, at their ids. Two that share a place forget each other's.
static RECORDS: [Record; 1024] = [const { Record::new() }; 1024];

/// A call that was begun again. Written by its own thread, in the handler.
#[derive(Debug)]
struct Record {
    /// Thread, place and stack pointer.
    place: AtomicU64,
    /// What was on the stack the last time.
    print: AtomicU64,
    /// When it was begun again first.
    since_ns: AtomicU64,
    /// How often since.
    times: AtomicU64,
}

impl Record {
    const fn new() -> Record {
        Record {
            place: AtomicU64::new(0),
            print: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            times: AtomicU64::new(0),
        }
    }

    fn begins(&self, place: u64, print: u64, now_ns: u64, time_ns: u64) -> bool {
        let known =
            self.place.load(Relaxed) == place && now_ns.saturating_sub(self.since_ns.load(Relaxed)) < time_ns;
        let times = if known { self.times.load(Relaxed) } else { 0 };
        let most = match self.print.load(Relaxed) == print {
            true if time_ns <= SHORT_NS => 2,
            true => 1,
            false => MOST,
        };
        if known && times >= most {
            return false;
        }
        if !known {
            self.place.store(place, Relaxed);
            self.since_ns.store(now_ns, Relaxed);
        }
        self.print.store(print, Relaxed);
        self.times.store(times + 1, Relaxed);
        true
    }
}

/// Whether the call at `pc` and `sp`, which is to last `time_ns`, may be begun again; it is taken to be, then.
#[inline(never)]
pub fn begins(pc: u64, sp: u64, time_ns: u64) -> bool {
    let tid = system_call::thread_id() as u64;
    let Ok(now_ns) = system_call::clock(CLOCK_MONOTONIC) else { return false };
    let Some(record) = RECORDS.get(tid as usize % RECORDS.len()) else { return false };
    record.begins(mixed(mixed(mixed(0, tid), pc), sp), print(sp), now_ns, time_ns)
}

/// What is on the stack.
fn print(sp: u64) -> u64 {
    (0..PARTS).map(|part| print_of_part(sp.wrapping_add(part * PART as u64))).fold(0, mixed)
}

#[inline(never)]
fn print_of_part(address: u64) -> u64 {
    let mut part = [0; PART];
    let length = guarded_copy(address, &mut part);
    let (words, _) = part.as_chunks();
    words.iter().map(|&word| u64::from_ne_bytes(word)).fold(length as u64, mixed)
}

fn mixed(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_call_is_begun_again_once_in_its_time() {
        const LONG: u64 = SHORT_NS + 1;
        let record = Record::new();
        assert!(record.begins(1, 7, 100, LONG));
        assert!(!record.begins(1, 7, 99 + LONG, LONG), "it may be the same");
        assert!(record.begins(1, 7, 100 + LONG, LONG), "that one is over");
        assert!(record.begins(2, 7, 101 + LONG, LONG), "another place");
        assert!(record.begins(1, 7, 102 + LONG, LONG));
        assert!(record.begins(1, 8, 103 + LONG, LONG), "another stack");
    }

    #[test]
    fn what_takes_a_moment_is_begun_again_twice() {
        let record = Record::new();
        assert_eq!([100, 120, 149].map(|now| record.begins(1, 7, now, 50)), [true, true, false]);
        assert!(record.begins(1, 7, 150, 50), "that one is over");
    }

    #[test]
    fn a_stack_that_changes_while_a_call_waits_is_believed_a_few_times() {
        let record = Record::new();
        let begun = (0..1000u64).filter(|&n| record.begins(1, n, n, 1000)).count();
        assert_eq!(begun as u64, MOST);
    }

    #[test]
    fn the_print_is_of_all_of_it() {
        let mut stack = [7u64; 32];
        let at = stack.as_ptr() as u64;
        let before = print(at);
        assert_eq!(print(at), before);
        stack[31] += 1;
        assert_ne!(print(core::hint::black_box(&stack).as_ptr() as u64), before);
    }
}
