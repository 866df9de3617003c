//! The code of glibc 2.41 and later that makes the calls of threads that may be cancelled: whole, so that a handler for cancellation knows by the pc
//! whether a call has begun.
//!
//! Such a call must not be made again when its thread is being cancelled: the handler that tells it to end may have run right before ours, did
//! nothing behind the `syscall` instruction, and relies on who called to look at the flag when it sees `EINTR`. (Flagged later, the thread gets that
//! handler's signal behind ours, and stands in front of the instruction again, where that ends it.)

use super::{At, Base, word_at};

/// `mov (%rdi),%eax; testb $8,(%rdi); jne` to where a thread ends itself: first of all the flags are looked at.
const FIRST: [u8; 7] = [0x8b, 0x07, 0xf6, 0x07, 0x08, 0x0f, 0x85];
const CANCELLED: u64 = 8;
/// It moves its arguments to where the kernel wants them, the number from rsi to rax, and keeps the address of the flags above its return address.
const LAST: [u8; 35] = [
    0x49, 0x89, 0xfb, // mov %rdi,%r11
    0x48, 0x89, 0xf0, // mov %rsi,%rax
    0x48, 0x89, 0xd7, // mov %rdx,%rdi
    0x48, 0x89, 0xce, // mov %rcx,%rsi
    0x4c, 0x89, 0xc2, // mov %r8,%rdx
    0x4d, 0x89, 0xca, // mov %r9,%r10
    0x4c, 0x8b, 0x44, 0x24, 0x08, // mov 8(%rsp),%r8
    0x4c, 0x8b, 0x4c, 0x24, 0x10, // mov 16(%rsp),%r9
    0x4c, 0x89, 0x5c, 0x24, 0x08, // mov %r11,8(%rsp)
    0x0f, 0x05, // syscall
];
const LENGTH: usize = FIRST.len() + 4 + LAST.len();
/// `endbr64`, which may stand in front of it.
const LANDING: u64 = 4;
/// Of its caller: the load of the number, up to six moves between registers, and the call.
const CALL: usize = 5 + 6 * 3 + 5;

/// The number of the call whose `syscall` instruction ends at `at.pc`, if that is in this code and the thread is not being cancelled.
#[inline(always)]
pub fn number(at: At, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<u64> {
    let start = at.pc.checked_sub(LENGTH as u64)?;
    if !is_at(start, &copy) || word_at(word_at(at.sp.wrapping_add(8), &copy)?, &copy)? & CANCELLED != 0 {
        return None;
    }
    let back = word_at(at.sp, &copy)?;
    let (base, offset) = handed_on(back, start, &copy)?;
    let caller = At { pc: back, sp: at.sp.wrapping_add(8), fp: at.fp };
    word_at(caller.place(base, offset), copy)
}

#[inline(never)]
fn is_at(start: u64, copy: impl Fn(u64, &mut [u8]) -> usize) -> bool {
    let mut code = [0; LENGTH];
    let is_same =
        |read: &[u8], known: &[u8]| read.iter().zip(known).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0;
    copy(start, &mut code) == code.len()
        && is_same(&code, &FIRST)
        && code.last_chunk().is_some_and(|last: &[u8; LAST.len()]| is_same(last, &LAST))
}

/// From where the code that returns to `back` loaded the number for the bridge at `start`.
#[inline(never)]
fn handed_on(back: u64, start: u64, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<(Base, u8)> {
    let mut code = [0; CALL];
    let from = back.checked_sub(CALL as u64)?;
    if copy(from, &mut code) != code.len() {
        return None;
    }
    let [before @ .., 0xe8, a, b, c, d] = &code else { return None };
    let mut before = before.as_slice();
    let target = back.wrapping_add_signed(i64::from(i32::from_le_bytes([*a, *b, *c, *d])));
    if target != start && target != start.wrapping_sub(LANDING) {
        return None;
    }
    loop {
        before = match before {
            // What lies at rsp and above are the call's last two arguments, the first of which is the flags' address by now.
            [.., 0x48, 0x8b, 0x74, 0x24, offset @ 0x10..0x80] => return Some((Base::Sp, *offset)),
            [.., 0x48, 0x8b, 0x75, offset @ 0x10..0x80] => return Some((Base::Fp, *offset)),
            [rest @ .., 0x48..=0x4f, 0x89, modrm] if is_move(*modrm) => rest,
            _ => return None,
        };
    }
}

/// Whether it is between registers, to one that is neither rsp, rbp nor rsi, nor one of r12 to r14, whose numbers end alike.
fn is_move(modrm: u8) -> bool {
    modrm >= 0xc0 && !matches!(modrm & 7, 4..=6)
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    const START: u64 = 0x9000;
    const CALLER: u64 = 0x8000;
    const STACK: u64 = 0x7000;
    const FLAGS: u64 = 0x6000;

    // As glibc 2.41 of Debian 13, 2.43, and 2.41 with frame pointers have the caller: the load, moves, and the call.
    const OF_41: [u8; 14] =
        [0x48, 0x8b, 0x74, 0x24, 0x20, 0x49, 0x89, 0xd0, 0x48, 0x89, 0xfa, 0x4c, 0x89, 0xdf];
    const OF_43: [u8; 11] = [0x48, 0x8b, 0x74, 0x24, 0x30, 0x49, 0x89, 0xc0, 0x4c, 0x89, 0xd7];
    const WITH_FRAME: [u8; 13] =
        [0x48, 0x8b, 0x75, 0x10, 0x49, 0x89, 0xd0, 0x48, 0x89, 0xfa, 0x48, 0x89, 0xc7];

    /// What is read where a thread stands behind the bridge that `before` has called, with its numbers at three places.
    fn found(before: &[u8], flags: u64, target: u64, change: impl Fn(&mut Vec<u8>)) -> Option<u64> {
        let mut bridge = [&FIRST[..], &[1, 2, 3, 4], &LAST].concat();
        change(&mut bridge);
        let at = At { pc: START + LENGTH as u64, sp: STACK, fp: STACK + 0x100 };
        let distance = (target as i32).wrapping_sub(CALLER as i32).to_le_bytes();
        let caller = [&[0x90; 32], before, &[0xe8], &distance].concat();
        let word = |address: u64| match address {
            STACK => CALLER,
            _ if address == STACK + 8 => FLAGS,
            _ if address == STACK + 8 + 0x20 => 7,
            _ if address == STACK + 8 + 0x30 => 230,
            _ if address == STACK + 0x100 + 0x10 => 271,
            _ => panic!("{address:#x} is read"),
        };
        number(at, |address, buffer| {
            if address == START {
                buffer.copy_from_slice(&bridge);
            } else if address == FLAGS {
                buffer.copy_from_slice(&flags.to_ne_bytes());
            } else if (CALLER - 64..CALLER).contains(&address) {
                let end = caller.len();
                buffer.copy_from_slice(&caller[end - buffer.len()..]);
            } else {
                buffer.copy_from_slice(&word(address).to_ne_bytes());
            }
            buffer.len()
        })
    }

    #[test]
    fn the_number_is_where_the_caller_loaded_it_from() {
        let same = |_: &mut Vec<u8>| {};
        assert_eq!(found(&OF_41, 0, START, same), Some(7));
        assert_eq!(found(&OF_43, 0, START, same), Some(230));
        assert_eq!(found(&WITH_FRAME, 0, START, same), Some(271));
        assert_eq!(found(&OF_41, 0, START - 4, same), Some(7), "endbr64 in front");
        assert_eq!(found(&OF_41, 0xffff_fff7, START, same), Some(7), "other flags");
    }

    #[test]
    fn a_thread_that_is_being_cancelled_is_left_alone() {
        assert_eq!(found(&OF_41, 8, START, |_| {}), None);
        assert_eq!(found(&OF_41, 0x39, START, |_| {}), None);
    }

    #[test]
    fn where_one_instruction_is_another_nothing_is_known() {
        for at in (0..7).chain(11..LENGTH) {
            assert_eq!(found(&OF_41, 0, START, |code| code[at] ^= 1), None, "byte {at} of the bridge");
        }
        assert_eq!(found(&OF_41, 0, START + 16, |_| {}), None, "another function was called");
        // push %rax; mov %rdi,%rsi; mov %rax,%rsp; a load from below the arguments
        for between in [&[0x50][..], &[0x48, 0x89, 0xfe], &[0x48, 0x89, 0xc4], &[0x48, 0x8b, 0x74, 0x24, 8]] {
            assert_eq!(found(&[&OF_41, between].concat(), 0, START, |_| {}), None, "{between:x?}");
        }
    }
}
