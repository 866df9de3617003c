//! Which system calls may be made again, and how long they have waited: by their numbers and arguments.
//!
//! Those that the kernel ends with `EINTR` before they have done anything. What it can go on with by itself (`SA_RESTART`) is not listed. Nor is what is there
//! to wait for a handler: pause(2), sigsuspend(2), and polls that let signals in for as long as they wait, but for a moment. Where two
//! threads send each other signals and wait like that, ours came right behind the other's handler within seconds, and both waited for ever.

use super::SHORT_NS;

pub(super) const POLL: u32 = 7;
const SELECT: u32 = 23;
pub(super) const NANOSLEEP: u32 = 35;
const ACCEPT: u32 = 43;
const RECVFROM: u32 = 45;
const RECVMSG: u32 = 47;
const SEMOP: u32 = 65;
const MSGSND: u32 = 69;
const MSGRCV: u32 = 70;
pub(super) const FUTEX: u32 = 202;
const SEMTIMEDOP: u32 = 220;
pub(super) const CLOCK_NANOSLEEP: u32 = 230;
const EPOLL_WAIT: u32 = 232;
const PSELECT6: u32 = 270;
const PPOLL: u32 = 271;
const EPOLL_PWAIT: u32 = 281;
const ACCEPT4: u32 = 288;
const RECVMMSG: u32 = 299;
const EPOLL_PWAIT2: u32 = 441;

pub(super) const TIMER_ABSTIME: u64 = 1;
pub(super) const FUTEX_WAIT: u64 = 0;
pub(super) const FUTEX_WAIT_BITSET: u64 = 9;
/// FUTEX_PRIVATE_FLAG
pub(super) const FUTEX_PRIVATE: u64 = 0x80;
/// The same, and FUTEX_CLOCK_REALTIME.
pub(super) const FUTEX_FLAGS: u64 = 0x100 | FUTEX_PRIVATE;

/// How a call waits that was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It does not.
    None,
    /// For ever, up to a point in time, or for the rest that the kernel wrote down.
    Sound,
    /// For so many nanoseconds, at whose end it is woken and not before.
    Sleep(u64),
    /// For so many nanoseconds, and cut short before they were over.
    Bounded(u64),
    /// The same, a [`super::SHORT_NS`] at the most, and it lets signals in whose handlers it may wait for.
    Open(u64),
    /// For something to receive from a socket, so many nanoseconds, which may be over, and was cut short nevertheless.
    Socket(u64),
    /// For so many nanoseconds, which may be over, too, and was cut short nevertheless.
    Poll(u64),
}

/// How the call of this `number` waits, if it can be made again. `blocked`: the signals that the thread blocks else; `argument`: its arguments, from 0 on; `two_words` reads memory;
/// `receive_time_ns` asks for a socket's time-out. (Closures: the handler has little stack.)
#[inline(always)]
pub fn wait(
    number: u32,
    blocked: u64,
    argument: impl Fn(usize) -> u64,
    two_words: impl Fn(u64) -> Option<[u64; 2]>,
    receive_time_ns: impl Fn(u64) -> Option<u64>,
) -> Option<Wait> {
    let mask = match number {
        PPOLL => argument(3),
        EPOLL_PWAIT | EPOLL_PWAIT2 => argument(4),
        PSELECT6 if argument(5) != 0 => two_words(argument(5))?[0],
        _ => 0,
    };
    // With another mask it lets signals in, or keeps ours out, while it waits.
    let is_masked = mask != 0 && two_words(mask).is_none_or(|[mask, _]| mask != blocked);
    let open = |wait| match wait {
        Wait::Bounded(ns @ ..=SHORT_NS) => Some(Wait::Open(ns)),
        _ => None,
    };
    let bounded = |ns: u64| if ns == 0 { Wait::None } else { Wait::Bounded(ns) };
    let milliseconds = |time: u64| match time as i32 {
        ..0 => Wait::Sound,
        time => bounded(time as u64 * 1_000_000),
    };
    // A timeval or a timespec, alike two words.
    let written_down =
        |at: u64| if at != 0 && two_words(at) == Some([0, 0]) { Wait::None } else { Wait::Sound };
    let sleep_of = |time: u64| Some(Wait::Sleep(nanoseconds(two_words(time)?, 1)));
    let sleep = |time: u64, rest: u64| if time == rest { Some(Wait::Sound) } else { sleep_of(time) };
    let found = match number {
        // Looks for signals, its time being over or not. Linux do_sys_poll
        POLL => Some(match milliseconds(argument(2)) {
            Wait::Bounded(ns) => Wait::Poll(ns),
            wait => wait,
        }),
        // Looks for the end of its time first. Linux ep_poll
        EPOLL_WAIT | EPOLL_PWAIT => Some(milliseconds(argument(3))),
        EPOLL_PWAIT2 if argument(3) == 0 => Some(Wait::Sound),
        EPOLL_PWAIT2 => Some(bounded(nanoseconds(two_words(argument(3))?, 1))),
        PPOLL => Some(written_down(argument(2))),
        SELECT | PSELECT6 => Some(written_down(argument(4))),
        NANOSLEEP => sleep(argument(0), argument(1)),
        CLOCK_NANOSLEEP if argument(1) & TIMER_ABSTIME != 0 => Some(Wait::Sound),
        CLOCK_NANOSLEEP => sleep(argument(2), argument(3)),
        SEMTIMEDOP if argument(3) != 0 => sleep_of(argument(3)),
        SEMOP | SEMTIMEDOP | MSGRCV | MSGSND => Some(Wait::Sound),
        FUTEX if argument(1) & !FUTEX_FLAGS == FUTEX_WAIT_BITSET => Some(Wait::Sound),
        FUTEX if argument(1) & !FUTEX_FLAGS == FUTEX_WAIT => sleep_of(argument(3)),
        // recvmmsg(2) looks at a time-out of its own when something has come. Linux do_recvmmsg
        ACCEPT | ACCEPT4 | RECVFROM | RECVMSG | RECVMMSG => {
            Some(receive_time_ns(argument(0))?).filter(|&ns| ns != 0).map(Wait::Socket)
        }
        _ => None,
    };
    // It may wait for the handlers of signals that it alone lets in.
    if is_masked { found.and_then(open) } else { found }
}

/// The argument that has the flags of a call that can receive without waiting (MSG_DONTWAIT).
pub fn flags_of_receiving(number: u32) -> Option<usize> {
    match number {
        RECVFROM => Some(3),
        RECVMSG => Some(2),
        _ => None,
    }
}

/// Of seconds and a part of a second in units of so many nanoseconds.
pub fn nanoseconds([seconds, part]: [u64; 2], unit_ns: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(part.saturating_mul(unit_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: u64 = 0x5000;
    const TIME: u64 = 0x6000;
    const MOMENT: u64 = 0x7000;
    const SAME: u64 = 0x8000;
    const MORE: u64 = 0x9000;
    const BLOCKED: u64 = 1 << 16;

    fn waits(number: u32, arguments: [u64; 6]) -> Option<Wait> {
        let two_words = |address: u64| match address {
            ZERO => Some([0, 0]),
            TIME => Some([3, 3]),
            MOMENT => Some([0, 1_000_000]),
            SAME => Some([BLOCKED, 0]),
            MORE => Some([BLOCKED | 1, 0]),
            _ => None,
        };
        let receive_time_ns = |socket: u64| (socket != 9).then_some(socket * 1_000_000);
        wait(number, BLOCKED, |at| arguments[at], two_words, receive_time_ns)
    }

    #[test]
    fn a_poll_that_does_not_wait_is_known_by_its_arguments() {
        assert_eq!(waits(POLL, [0; 6]), Some(Wait::None));
        let arguments = [0, 0, 0, 0, ZERO, 0];
        assert_eq!(waits(PSELECT6, arguments), Some(Wait::None));
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
        for time in [1, 20, 21, 1000] {
            let ns = time * 1_000_000;
            assert_eq!(waits(POLL, [0, 0, time, 0, 0, 0]), Some(Wait::Poll(ns)), "{time} ms");
            assert_eq!(waits(EPOLL_WAIT, [0, 0, 0, time, 0, 0]), Some(Wait::Bounded(ns)), "{time} ms");
            assert_eq!(waits(RECVFROM, [time, 0, 0, 0, 0, 0]), Some(Wait::Socket(ns)), "{time} ms");
        }
        assert_eq!(waits(EPOLL_PWAIT2, [0, 0, 0, MOMENT, 0, 0]), Some(Wait::Bounded(1_000_000)));
        assert_eq!(waits(EPOLL_PWAIT2, [0, 0, 0, TIME, 0, 0]), Some(Wait::Bounded(3_000_000_003)));
        assert_eq!(waits(EPOLL_PWAIT2, [0, 0, 0, ZERO, 0, 0]), Some(Wait::None));
        assert_eq!(waits(RECVFROM, [0; 6]), None, "without a time-out the kernel goes on by itself");
        assert_eq!(waits(ACCEPT, [9, 0, 0, 0, 0, 0]), None, "no socket");
        assert_eq!(waits(SEMTIMEDOP, [0, 0, 0, TIME, 0, 0]), Some(Wait::Sleep(3_000_000_003)));
        assert_eq!(waits(FUTEX, [0, 0x80, 0, TIME, 0, 0]), Some(Wait::Sleep(3_000_000_003)));
    }

    #[test]
    fn sleeps_go_on_for_the_rest_that_is_written_over_their_time() {
        assert_eq!(waits(NANOSLEEP, [TIME, TIME, 0, 0, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(NANOSLEEP, [MOMENT, 0, 0, 0, 0, 0]), Some(Wait::Sleep(1_000_000)));
        assert_eq!(waits(CLOCK_NANOSLEEP, [1, 0, TIME, TIME, 0, 0]), Some(Wait::Sound));
        assert_eq!(waits(CLOCK_NANOSLEEP, [1, 0, MOMENT, ZERO, 0, 0]), Some(Wait::Sleep(1_000_000)));
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
        assert_eq!(waits(EPOLL_PWAIT, [0, 0, 0, 20, 1, 0]), Some(Wait::Open(20_000_000)), "not for long");
        assert_eq!(waits(EPOLL_PWAIT, [0, 0, 0, 21, 1, 0]), None);
        assert_eq!(
            waits(EPOLL_PWAIT, [0, 0, 0, 21, SAME, 0]),
            Some(Wait::Bounded(21_000_000)),
            "lets nothing in"
        );
        assert_eq!(waits(PPOLL, [0, 0, 0, SAME, 0, 0]), Some(Wait::Sound));
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
}
