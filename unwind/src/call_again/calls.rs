//! Which system calls may be made again, and how long they have waited: by the code in front of the interrupted place and
//! by the arguments.
//!
//! Those that the kernel ends with `EINTR` before they have done anything. What it can go on with by itself (`SA_RESTART`) is not listed. Nor is what is there
//! to wait for a handler: pause(2), sigsuspend(2), and polls that let signals in for as long as they wait, but for a moment. Where two
//! threads send each other signals and wait like that, ours came right behind the other's handler within seconds, and both waited for ever.

use super::SHORT_NS;

/// `syscall`
pub const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];
/// `mov $NUMBER,%eax` and, behind it, up to three loads of arguments; in front of it the byte that could make it another instruction.
const LONGEST: usize = 1 + 5 + 3 * 5 + SYSTEM_CALL.len();

const POLL: u32 = 7;
const SELECT: u32 = 23;
const NANOSLEEP: u32 = 35;
const ACCEPT: u32 = 43;
const RECVFROM: u32 = 45;
const RECVMSG: u32 = 47;
const SEMOP: u32 = 65;
const MSGSND: u32 = 69;
const MSGRCV: u32 = 70;
const FUTEX: u32 = 202;
const SEMTIMEDOP: u32 = 220;
const CLOCK_NANOSLEEP: u32 = 230;
const EPOLL_WAIT: u32 = 232;
const PSELECT6: u32 = 270;
const PPOLL: u32 = 271;
const EPOLL_PWAIT: u32 = 281;
const ACCEPT4: u32 = 288;
const EPOLL_PWAIT2: u32 = 441;

const TIMER_ABSTIME: u64 = 1;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
/// FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME.
const FUTEX_FLAGS: u64 = 0x180;

/// How a call waits that was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It does not.
    None,
    /// For ever, up to a point in time, or for the rest that the kernel wrote down.
    Sound,
    /// For a time, at whose end it is woken and not before.
    Sleep,
    /// For a [`super::SHORT_NS`] at the most, and cut short before that was over.
    Moment,
    /// The same, and it lets signals in whose handlers it may wait for.
    OpenMoment,
    /// For a [`super::SHORT_NS`] at the most, which may be over, and was cut short nevertheless.
    Short,
    /// The same, and the kernel remembers its end.
    Remembered,
}

/// A system call that can be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: u32,
    /// See there.
    pub wait: Wait,
}

impl Call {
    /// The call whose `syscall` instruction ends at `pc`. `argument`: its arguments, from 0 on; `copy` reads memory and returns how many bytes it could
    /// read; `receive_time_ns` asks for a socket's time-out. (Closures: the handler has little stack.)
    #[inline(always)]
    pub fn before(
        pc: u64,
        argument: impl Fn(usize) -> u64,
        copy: impl Fn(u64, &mut [u8]) -> usize,
        receive_time_ns: impl Fn(u64) -> Option<u64>,
    ) -> Option<Call> {
        let number = number_before(pc, &copy)?;
        let two_words = |address: u64| {
            let mut words = [0; 16];
            let [a, b, c, d, e, f, g, h, high @ ..] =
                (copy(address, &mut words) == words.len()).then_some(words)?;
            Some([u64::from_ne_bytes([a, b, c, d, e, f, g, h]), u64::from_ne_bytes(high)])
        };
        Some(Call { number, wait: wait(number, argument, two_words, receive_time_ns)? })
    }
}

fn wait(
    number: u32,
    argument: impl Fn(usize) -> u64,
    two_words: impl Fn(u64) -> Option<[u64; 2]>,
    receive_time_ns: impl Fn(u64) -> Option<u64>,
) -> Option<Wait> {
    let is_masked = match number {
        PPOLL => argument(3) != 0,
        EPOLL_PWAIT | EPOLL_PWAIT2 => argument(4) != 0,
        PSELECT6 if argument(5) != 0 => two_words(argument(5))?[0] != 0,
        _ => false,
    };
    let open = |wait| if wait == Wait::Moment { Some(Wait::OpenMoment) } else { None };
    let short = |ns: u64, wait| (ns <= SHORT_NS).then_some(if ns == 0 { Wait::None } else { wait });
    let milliseconds = |time: u64, wait| match time as i32 {
        ..0 => Some(Wait::Sound),
        time => short(time as u64 * 1_000_000, wait),
    };
    // A timeval or a timespec, alike two words.
    let written_down =
        |at: u64| if at != 0 && two_words(at) == Some([0, 0]) { Wait::None } else { Wait::Sound };
    let sleep = |time: u64, rest: u64| if time == rest { Wait::Sound } else { Wait::Sleep };
    let found = match number {
        // Looks for signals, its time being over or not. Linux do_sys_poll
        POLL => milliseconds(argument(2), Wait::Remembered),
        // Looks for the end of its time first. Linux ep_poll
        EPOLL_WAIT | EPOLL_PWAIT => milliseconds(argument(3), Wait::Moment),
        EPOLL_PWAIT2 if argument(3) == 0 => Some(Wait::Sound),
        EPOLL_PWAIT2 => short(nanoseconds(two_words(argument(3))?, 1), Wait::Moment),
        PPOLL => Some(written_down(argument(2))),
        SELECT | PSELECT6 => Some(written_down(argument(4))),
        NANOSLEEP => Some(sleep(argument(0), argument(1))),
        CLOCK_NANOSLEEP if argument(1) & TIMER_ABSTIME != 0 => Some(Wait::Sound),
        CLOCK_NANOSLEEP => Some(sleep(argument(2), argument(3))),
        SEMTIMEDOP if argument(3) != 0 => Some(Wait::Sleep),
        SEMOP | SEMTIMEDOP | MSGRCV | MSGSND => Some(Wait::Sound),
        FUTEX if argument(1) & !FUTEX_FLAGS == FUTEX_WAIT_BITSET => Some(Wait::Sound),
        FUTEX if argument(1) & !FUTEX_FLAGS == FUTEX_WAIT => Some(Wait::Sleep),
        ACCEPT | ACCEPT4 | RECVFROM | RECVMSG => {
            short(receive_time_ns(argument(0))?, Wait::Short).filter(|&wait| wait == Wait::Short)
        }
        _ => None,
    };
    // With a mask it lets signals in whose handlers it waits for.
    if is_masked { found.and_then(open) } else { found }
}

/// Of seconds and a part of a second in units of so many nanoseconds.
pub fn nanoseconds([seconds, part]: [u64; 2], unit_ns: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(part.saturating_mul(unit_ns))
}

/// Apart, which needs less stack.
#[inline(never)]
fn number_before(pc: u64, copy: impl Fn(u64, &mut [u8]) -> usize) -> Option<u32> {
    let mut code = [0; LONGEST];
    let start = pc.checked_sub(LONGEST as u64)?;
    if copy(start, &mut code) == LONGEST { number_of_call(&code) } else { None }
}

/// The number that the C library's wrapper gave the system call at the end of `code`.
fn number_of_call(code: &[u8; LONGEST]) -> Option<u32> {
    let before = code.strip_suffix(&SYSTEM_CALL)?;
    (1..before.len()).rev().find_map(|at| match before.get(at - 1..)? {
        // Behind a prefix REX.B it is r8 that is loaded.
        [prefix, 0xb8, a, b, 0, 0, rest @ ..] if prefix & 0xf1 != 0x41 && is_loads(rest) => {
            Some(u32::from_le_bytes([*a, *b, 0, 0]))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: u64 = 0x1000;
    const ZERO: u64 = 0x5000;
    const TIME: u64 = 0x6000;
    const MOMENT: u64 = 0x7000;

    fn call(code: &[u8], arguments: [u64; 6]) -> Option<Call> {
        let copy = |address: u64, buffer: &mut [u8]| {
            match address {
                ZERO => buffer.fill(0),
                TIME => buffer.fill(3),
                MOMENT => buffer.copy_from_slice(&[[0; 8], 1_000_000u64.to_ne_bytes()].concat()),
                _ => {
                    let start = (AFTER - code.len() as u64).wrapping_sub(address) as usize;
                    buffer.fill(0x90);
                    buffer[start..].copy_from_slice(code);
                }
            }
            buffer.len()
        };
        let receive_time_ns = |socket: u64| (socket != 9).then_some(socket * 1_000_000);
        Call::before(AFTER, |at| arguments[at], copy, receive_time_ns)
    }

    fn waits(number: u32, arguments: [u64; 6]) -> Option<Wait> {
        let [a, b, c, d] = number.to_le_bytes();
        let found = call(&[0xb8, a, b, c, d, 0x0f, 5], arguments);
        assert!(found.is_none_or(|call| call.number == number));
        found.map(|call| call.wait)
    }

    // As glibc 2.36 has them: without and with arguments that are loaded late.
    const OF_POLL: [u8; 7] = [0xb8, 7, 0, 0, 0, 0x0f, 5];
    const OF_PSELECT: [u8; 16] =
        [0xb8, 0x0e, 1, 0, 0, 0x8b, 0x7c, 0x24, 4, 0x48, 0x8b, 0x74, 0x24, 8, 0x0f, 5];

    #[test]
    fn a_poll_that_does_not_wait_is_known_by_its_arguments() {
        assert_eq!(call(&OF_POLL, [0; 6]), Some(Call { number: POLL, wait: Wait::None }));
        let arguments = [0, 0, 0, 0, ZERO, 0];
        assert_eq!(call(&OF_PSELECT, arguments), Some(Call { number: PSELECT6, wait: Wait::None }));
        assert_eq!(waits(PPOLL, [0, 0, ZERO, 0, 0, 0]), Some(Wait::None));
        assert_eq!(waits(SELECT, arguments), Some(Wait::None));
    }

    #[test]
    fn what_waits_for_ever_or_until_then_can_go_on() {
        let forever = u64::from(u32::MAX);
        assert_eq!(waits(POLL, [0, 0, forever, 0, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(EPOLL_WAIT, [0, 0, 0, forever, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(EPOLL_PWAIT2, [0; 6]), Some(Wait::Sound));
        assert_eq!(waits(SELECT, [0; 6]), Some(Wait::Sound));
        assert_eq!(waits(PPOLL, [0, 0, TIME, 0, 0, 0]), Some(Wait::Sound), "the rest was written there");
        assert_eq!(waits(FUTEX, [0, 0x189, 0, TIME, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(CLOCK_NANOSLEEP, [1, 1, 0, 0, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(SEMTIMEDOP, [0; 6]), Some(Wait::Sound));
    }

    #[test]
    fn what_may_have_waited_is_told_apart() {
        for (time, is_short) in [(1, true), (20, true), (21, false), (1000, false)] {
            let when_short = |wait| is_short.then_some(wait);
            assert_eq!(waits(POLL, [0, 0, time, 0, 0, 0]), when_short(Wait::Remembered), "{time} ms");
            assert_eq!(waits(EPOLL_WAIT, [0, 0, 0, time, 0, 0]), when_short(Wait::Moment), "{time} ms");
            assert_eq!(waits(RECVFROM, [time, 0, 0, 0, 0, 0]), when_short(Wait::Short), "{time} ms");
        }
        assert_eq!(waits(EPOLL_PWAIT2, [0, 0, 0, MOMENT, 0, 0]), Some(Wait::Moment));
        assert_eq!(waits(EPOLL_PWAIT2, [0, 0, 0, TIME, 0, 0]), None);
        assert_eq!(waits(EPOLL_PWAIT2, [0, 0, 0, ZERO, 0, 0]), Some(Wait::None));
        assert_eq!(waits(RECVFROM, [0; 6]), None, "without a time-out the kernel goes on by itself");
        assert_eq!(waits(ACCEPT, [9, 0, 0, 0, 0, 0]), None, "no socket");
        assert_eq!(waits(SEMTIMEDOP, [0, 0, 0, TIME, 0, 0]), Some(Wait::Sleep));
        assert_eq!(waits(FUTEX, [0, 0x80, 0, TIME, 0, 0]), Some(Wait::Sleep));
    }

    #[test]
    fn sleeps_go_on_for_the_rest_that_is_written_over_their_time() {
        assert_eq!(waits(NANOSLEEP, [TIME, TIME, 0, 0, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(NANOSLEEP, [TIME, 0, 0, 0, 0, 0]), Some(Wait::Sleep));
        assert_eq!(waits(CLOCK_NANOSLEEP, [1, 0, TIME, TIME, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(CLOCK_NANOSLEEP, [1, 0, TIME, ZERO, 0, 0]), Some(Wait::Sleep));
    }

    #[test]
    fn what_waits_for_handlers_is_left_alone() {
        const PAUSE: u32 = 34;
        const SIGSUSPEND: u32 = 130;
        for number in [PAUSE, SIGSUSPEND] {
            assert_eq!(waits(number, [0; 6]), None, "{number}");
        }
        for time in [0, ZERO, TIME] {
            assert_eq!(waits(PPOLL, [0, 0, time, 1, 0, 0]), None);
            assert_eq!(waits(PSELECT6, [0, 0, 0, 0, time, TIME]), None);
        }
        assert_eq!(waits(PSELECT6, [0, 0, 0, 0, TIME, ZERO]), Some(Wait::Sound), "no mask, and its size");
        assert_eq!(waits(EPOLL_PWAIT, [0, 0, 0, u64::MAX, 1, 0]), None);
        assert_eq!(waits(EPOLL_PWAIT2, [0, 0, 0, 0, 1, 0]), None);
        assert_eq!(waits(EPOLL_PWAIT, [0, 0, 0, 20, 1, 0]), Some(Wait::OpenMoment), "not for long");
        assert_eq!(waits(EPOLL_PWAIT, [0, 0, 0, 21, 1, 0]), None);
    }

    #[test]
    fn calls_that_may_have_done_something_are_left_alone() {
        for number in [0, 1, 3, 42, 44, 46, 61, 128, 208] {
            assert_eq!(waits(number, [0; 6]), None, "{number}");
        }
        for operation in [1, 6, 11] {
            assert_eq!(waits(FUTEX, [0, operation, 0, 0, 0, 0]), None, "futex {operation}");
        }
    }

    #[test]
    fn what_is_no_call_is_left_alone() {
        assert_eq!(call(&[0x90; 7], [0; 6]), None, "no system call");
        // mov %eax,%ecx in between: not known what it does
        assert_eq!(call(&[0xb8, 7, 0, 0, 0, 0x89, 0xc1, 0x0f, 5], [0; 6]), None);
        // mov 8(%rsp),%eax: another number
        assert_eq!(call(&[0xb8, 7, 0, 0, 0, 0x8b, 0x44, 0x24, 8, 0x0f, 5], [0; 6]), None);
        // mov $7,%r8d
        assert_eq!(call(&[0x41, 0xb8, 7, 0, 0, 0, 0x0f, 5], [0; 6]), None);
    }
}
