//! Whether a thread has made a call again already.
//!
//! A call with a long time-out that is begun again loses the time that it has waited. Mostly that is no time, but a thread that is woken in
//! its call for nothing, and is seen on a CPU then, may have waited for long; and if that can happen once, it can happen again and again. So the
//! same call is begun again once at the most, which makes it last twice its time at the most. The same is, for as long as its time-out, what was made
//! from the same place with the same stack: a thread that has gone on in its program has mostly left something else there, and if it has not, the
//! host sees `EINTR`.

use crate::memory::guarded_copy;
use crate::slot::Slot;
use crate::system_call::{self, CLOCK_MONOTONIC};

/// So much of the stack is compared, in parts.
const PARTS: u64 = 8;
const PART: usize = 64;

/// Whether the call at `pc` and `sp`, which is to last `time_ns`, may be begun again; it is taken to be, then.
#[inline(never)]
pub fn begins(slot: &Slot, pc: u64, sp: u64, time_ns: u64) -> bool {
    let Ok(now_ns) = system_call::clock(CLOCK_MONOTONIC) else { return false };
    slot.begins_again(print(pc, sp), now_ns, time_ns)
}

/// What tells calls apart.
fn print(pc: u64, sp: u64) -> u64 {
    (0..PARTS)
        .map(|part| print_of_part(sp.wrapping_add(part * PART as u64)))
        .fold(mixed(mixed(0, pc), sp), mixed)
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
    fn another_place_or_another_stack_is_another_call() {
        let mut stack = [7u64; 64];
        let at = stack.as_ptr() as u64;
        let before = print(0x1000, at);
        assert_eq!(print(0x1000, at), before);
        assert_ne!(print(0x1010, at), before);
        stack[50] += 1;
        assert_ne!(print(0x1000, core::hint::black_box(&stack).as_ptr() as u64), before);
    }
}
