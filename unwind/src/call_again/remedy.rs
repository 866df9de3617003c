//! What is right for a call that was cut short; the reasons are in [`super`].

use super::SHORT_NS;
use super::calls::Wait;
use super::seen::Since;

const LONG_NS: u64 = SHORT_NS + 1;

/// What to do about a call that was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing: the host sees `EINTR`.
    None,
    /// The thread makes it again.
    Again,
    /// The thread makes it again, if it has not done so with this call already, whose time is so long in nanoseconds.
    Once(u64),
    /// It is done: its result.
    Received(u64),
    /// Its time is over, if it can be: it is so long.
    Over(u64),
}

/// The host's handlers for signals that come from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Others {
    /// There are none.
    None = 0,
    /// There are some, all of which let our signal through, and none of their signals is pending.
    Quiet = 1,
    /// One of them may have kept our signal waiting, or is about to run.
    InTheWay = 2,
}

/// What is right for a call with which the kernel does not go on; the closures are asked only where that matters. `received`: what it
/// receives without waiting. And whether it is in doubt: a handler may have run.
pub fn remedy(
    wait: Wait,
    others: impl Fn() -> Others,
    since: impl Fn() -> Since,
    received: impl Fn() -> Option<u64>,
) -> (Remedy, bool) {
    if wait == Wait::None {
        return (Remedy::Again, false);
    }
    let others = others();
    if others == Others::InTheWay {
        return (Remedy::None, false);
    }
    if let (Wait::Socket(_), Some(result)) = (wait, received()) {
        return (Remedy::Received(result), false);
    }
    let since = since();
    if others == Others::None {
        return (unhandled(wait, since), false);
    }
    match (wait, since) {
        (Wait::Open(_), _) | (_, Since::Unknown | Since::Awake | Since::Ran) => (Remedy::None, false),
        _ => (unhandled(wait, since), true),
    }
}

/// What is right for a call that no handler of the host's has cut short.
fn unhandled(wait: Wait, since: Since) -> Remedy {
    let begins = matches!(since, Since::Slept | Since::Computed | Since::Ran | Since::Awake);
    // Its end does not come between two looks.
    let is_not_over = matches!(since, Since::Slept | Since::Computed | Since::Waited);
    match wait {
        Wait::Sound => Remedy::Again,
        Wait::Open(ns) | Wait::Bounded(ns @ ..=SHORT_NS) => Remedy::Once(ns),
        Wait::Sleep(ns) if begins => Remedy::Once(ns),
        Wait::Bounded(ns) if begins || is_not_over => Remedy::Once(ns),
        Wait::Socket(ns @ ..=SHORT_NS) if since == Since::Waited => Remedy::Over(ns),
        Wait::Socket(ns @ ..=SHORT_NS) => Remedy::Once(ns),
        Wait::Poll(ns @ ..=SHORT_NS) if begins && since != Since::Awake => Remedy::Once(ns),
        Wait::Socket(ns @ LONG_NS..) | Wait::Poll(ns @ LONG_NS..) if is_not_over => Remedy::Once(ns),
        _ => Remedy::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: u64 = 1_000_000;
    const LONG: u64 = 1_000_000_000;
    const WAITS: [Wait; 8] = [
        Wait::Sound,
        Wait::Sleep(SHORT),
        Wait::Bounded(SHORT),
        Wait::Bounded(LONG),
        Wait::Socket(SHORT),
        Wait::Socket(LONG),
        Wait::Poll(SHORT),
        Wait::Poll(LONG),
    ];
    const SINCE: [Since; 6] =
        [Since::Unknown, Since::Awake, Since::Waited, Since::Ran, Since::Computed, Since::Slept];

    fn right(wait: Wait, others: Others, since: Since) -> Remedy {
        remedy(wait, || others, || since, || None).0
    }

    #[test]
    fn a_poll_that_does_not_wait_is_made_again_whatever_there_is() {
        for others in [Others::None, Others::Quiet, Others::InTheWay] {
            assert_eq!(right(Wait::None, others, Since::Unknown), Remedy::Again);
        }
    }

    #[test]
    fn what_a_handler_of_the_host_may_have_cut_short_is_made_again_in_doubt() {
        for wait in WAITS {
            assert_eq!(SINCE.map(|since| right(wait, Others::InTheWay, since)), [Remedy::None; 6]);
            for since in [Since::Unknown, Since::Awake, Since::Ran] {
                assert_eq!(right(wait, Others::Quiet, since), Remedy::None, "{wait:?} {since:?}");
            }
            for since in [Since::Waited, Since::Computed, Since::Slept] {
                let found = remedy(wait, || Others::Quiet, || since, || None);
                assert_eq!(found, (right(wait, Others::None, since), true), "{wait:?} {since:?}");
            }
        }
        let quiet = SINCE.map(|since| right(Wait::Open(SHORT), Others::Quiet, since));
        assert_eq!(quiet, [Remedy::None; 6], "it may wait for one of them");
    }

    #[test]
    fn without_handlers_of_the_host_only_the_time_that_has_passed_matters() {
        let when = |wait| {
            SINCE.map(|since| matches!(right(wait, Others::None, since), Remedy::Again | Remedy::Once(_)))
        };
        assert_eq!(when(Wait::Sound), [true; 6]);
        assert_eq!(
            when(Wait::Sleep(LONG)),
            [false, true, false, true, true, true],
            "it was woken, and not by its end"
        );
        assert_eq!(when(Wait::Bounded(SHORT)), [true; 6]);
        assert_eq!(when(Wait::Open(SHORT)), [true; 6]);
        assert_eq!(when(Wait::Socket(SHORT)), [true, true, false, true, true, true]);
        assert_eq!(when(Wait::Poll(SHORT)), [false, false, false, true, true, true]);
        assert_eq!(when(Wait::Bounded(LONG)), [false, true, true, true, true, true]);
        assert_eq!(when(Wait::Socket(LONG)), [false, false, true, false, true, true], "it may be over");
        assert_eq!(when(Wait::Poll(LONG)), [false, false, true, false, true, true], "it may be over");
    }

    #[test]
    fn what_counts_from_its_beginning_is_begun_again_once() {
        for wait in WAITS.into_iter().filter(|&wait| wait != Wait::Sound).chain([Wait::Open(SHORT)]) {
            assert!(SINCE.iter().all(|&since| right(wait, Others::None, since) != Remedy::Again), "{wait:?}");
        }
    }

    #[test]
    fn the_time_of_a_socket_is_over_for_who_waited_for_a_cpu_with_it() {
        let when =
            |time, others| SINCE.map(|since| right(Wait::Socket(time), others, since) == Remedy::Over(time));
        assert_eq!(when(SHORT, Others::None), [false, false, true, false, false, false]);
        assert_eq!(when(SHORT, Others::InTheWay), [false; 6], "a handler may have cut it short");
        assert_eq!(when(LONG, Others::None), [false; 6], "it does not end between two looks");
    }

    #[test]
    fn who_has_something_to_receive_receives_it() {
        let ready = |others| SINCE.map(|since| remedy(Wait::Socket(LONG), || others, || since, || Some(7)).0);
        assert_eq!(ready(Others::None), [Remedy::Received(7); 6]);
        assert_eq!(ready(Others::Quiet), [Remedy::Received(7); 6]);
        assert_eq!(ready(Others::InTheWay), [Remedy::None; 6]);
    }
}
