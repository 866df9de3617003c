//! A poll that does not wait, cut short by our signal, is made again: the host sees no `EINTR`.
//!
//! poll(2), ppoll(2), select(2) and pselect(2) with a time-out of zero only ask, but the kernel ends them with
//! `EINTR`, `SA_RESTART` or not, when a signal arrives meanwhile (signal(7)). Many programs that
//! handle no signal take that for an error.
//!
//! Not here: calls that wait. Such a call may have been cut short by a signal of the host's, whose handler blocked ours
//! until it returned; to go on waiting would then be to wait for ever. A call that does not wait returns anyway.
//!
//! x86-64 only: on aarch64 the result of the call lies where its first argument was.

#[cfg(target_arch = "x86_64")]
use crate::memory::guarded_copy;

/// The kernel's `-EINTR` in the result register.
const INTERRUPTED: u64 = -4i64 as u64;
/// `syscall`
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
/// `mov $NUMBER,%eax` and, behind it, up to three loads of arguments.
const LONGEST: usize = 5 + 3 * 5 + SYSTEM_CALL.len();

const POLL: u32 = 7;
const SELECT: u32 = 23;
const PSELECT6: u32 = 270;
const PPOLL: u32 = 271;

/// The interrupted registers that this is about, to be found in a `ucontext`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// Behind the `syscall` instruction, if this is what was interrupted.
    pub pc: u64,
    /// The result, before the call its number.
    pub result: u64,
    /// The third argument.
    pub third: u64,
    /// The fifth argument.
    pub fifth: u64,
}

impl Interrupted {
    /// The registers to go on with instead, where it is a poll that did not wait; `copy` reads memory and returns
    /// how many bytes it could read. Async-signal-safe.
    #[inline(always)]
    pub fn again(self, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<Interrupted> {
        if self.result != INTERRUPTED { None } else { self.at_call(copy) }
    }

    #[cold]
    #[inline(never)]
    fn at_call(self, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<Interrupted> {
        let mut code = [0; LONGEST];
        let start = self.pc.checked_sub(LONGEST as u64)?;
        if copy(start, &mut code) != LONGEST {
            return None;
        }
        let number = number_of_call(&code)?;
        let is_zero = |address: u64| {
            let mut time = [1; 16]; // timeval and timespec alike: two words
            address != 0 && copy(address, &mut time) == time.len() && time == [0; 16]
        };
        let waits = match number {
            POLL => self.third as u32 != 0,
            PPOLL => !is_zero(self.third),
            SELECT | PSELECT6 => !is_zero(self.fifth),
            _ => true,
        };
        let pc = self.pc.checked_sub(SYSTEM_CALL.len() as u64)?;
        (!waits).then_some(Interrupted { pc, result: u64::from(number), ..self })
    }
}

/// The number that the C library's wrapper gave the system call at the end of `code`.
fn number_of_call(code: &[u8; LONGEST]) -> Option<u32> {
    let before = code.strip_suffix(&SYSTEM_CALL)?;
    (0..before.len()).rev().find_map(|at| match before.get(at..)? {
        [0xb8, a, b, 0, 0, rest @ ..] if is_loads(rest) => Some(u32::from_le_bytes([*a, *b, 0, 0])),
        _ => None,
    })
}

/// Whether the code only loads registers other than rax from the stack: `mov disp8(%rsp),%reg`.
fn is_loads(mut code: &[u8]) -> bool {
    loop {
        code = match code {
            [] => return true,
            [0x44 | 0x4c, 0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 => rest,
            [0x44 | 0x4c, 0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 => rest,
            [0x48, 0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 && *modrm != 0x44 => rest,
            [0x48, 0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 && *modrm != 0x04 => rest,
            [0x8b, modrm, 0x24, _, rest @ ..] if modrm & 0xc7 == 0x44 && *modrm != 0x44 => rest,
            [0x8b, modrm, 0x24, rest @ ..] if modrm & 0xc7 == 0x04 && *modrm != 0x04 => rest,
            _ => return false,
        };
    }
}

/// Lets the thread whose `ucontext` this is make its poll again.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to a signal handler, on x86-64; all signals are blocked while that
/// handler runs, so that another one arrives as if right before the call.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub unsafe fn poll_again(context: *mut core::ffi::c_void) {
    use crate::arch::{Arch, X86_64};
    const RAX: u8 = 0;
    const RDX: u8 = 1;
    const R8: u8 = 8;
    let place = |register: u8| {
        let offset = X86_64::context_offset(register).unwrap_or(0);
        context.cast::<u8>().wrapping_add(offset as usize).cast::<u64>()
    };
    // SAFETY: the caller vouches for the ucontext; the offsets are inside it and aligned (tested in `arch::x86_64`).
    let register = |number| unsafe { place(number).read() };
    let interrupted = Interrupted {
        pc: register(X86_64::PC),
        result: register(RAX),
        third: register(RDX),
        fifth: register(R8),
    };
    if let Some(again) = interrupted.again(guarded_copy) {
        // SAFETY: as above.
        unsafe {
            place(X86_64::PC).write(again.pc);
            place(RAX).write(again.result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: u64 = 0x1000;
    const ZERO: u64 = 0x5000;
    const TIME: u64 = 0x6000;

    fn again(code: &[u8], registers: Interrupted) -> Option<Interrupted> {
        let copy = |address: u64, buffer: &mut [u8]| {
            match address {
                ZERO => buffer.fill(0),
                TIME => buffer.fill(3),
                _ => {
                    let start = (AFTER - code.len() as u64).wrapping_sub(address) as usize;
                    buffer.fill(0x90);
                    buffer[start..].copy_from_slice(code);
                }
            }
            buffer.len()
        };
        registers.again(copy)
    }

    fn cut_short(third: u64, fifth: u64) -> Interrupted {
        Interrupted { pc: AFTER, result: INTERRUPTED, third, fifth }
    }

    // As glibc 2.36 has them: without and with arguments that are loaded late.
    const OF_POLL: [u8; 7] = [0xb8, 7, 0, 0, 0, 0x0f, 5];
    const OF_PSELECT: [u8; 16] =
        [0xb8, 0x0e, 1, 0, 0, 0x8b, 0x7c, 0x24, 4, 0x48, 0x8b, 0x74, 0x24, 8, 0x0f, 5];
    const OF_EPOLL_WAIT: [u8; 7] = [0xb8, 0xe8, 0, 0, 0, 0x0f, 5];

    #[test]
    fn a_poll_that_does_not_wait_is_made_again() {
        let expected = |number, third, fifth| {
            Some(Interrupted { pc: AFTER - 2, result: number, ..cut_short(third, fifth) })
        };
        assert_eq!(again(&OF_POLL, cut_short(0, 9)), expected(7, 0, 9));
        assert_eq!(again(&OF_PSELECT, cut_short(5, ZERO)), expected(270, 5, ZERO));
    }

    #[test]
    fn what_waits_is_left_alone() {
        assert_eq!(again(&OF_POLL, cut_short(1000, 0)), None);
        assert_eq!(again(&OF_POLL, cut_short(u64::from(u32::MAX), 0)), None, "for ever");
        assert_eq!(again(&OF_PSELECT, cut_short(0, TIME)), None);
        assert_eq!(again(&OF_PSELECT, cut_short(0, 0)), None, "no time-out: for ever");
        assert_eq!(again(&OF_EPOLL_WAIT, cut_short(0, 0)), None);
    }

    #[test]
    fn what_was_not_cut_short_is_left_alone() {
        assert_eq!(again(&OF_POLL, Interrupted { result: 0, ..cut_short(0, 0) }), None);
        assert_eq!(again(&[0x90; 7], cut_short(0, 0)), None, "no system call");
        // mov %eax,%ecx in between: not known what it does
        assert_eq!(again(&[0xb8, 7, 0, 0, 0, 0x89, 0xc1, 0x0f, 5], cut_short(0, 0)), None);
        // mov 8(%rsp),%eax: another number
        assert_eq!(again(&[0xb8, 7, 0, 0, 0, 0x8b, 0x44, 0x24, 8, 0x0f, 5], cut_short(0, 0)), None);
    }
}
