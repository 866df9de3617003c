//! Of which calls the kernel remembers what is left when a signal cuts them short, by their numbers and arguments.

use super::calls::{
    CLOCK_NANOSLEEP, FUTEX, FUTEX_FLAGS, FUTEX_PRIVATE, FUTEX_WAIT, FUTEX_WAIT_BITSET, NANOSLEEP, POLL,
    TIMER_ABSTIME,
};

/// Whether the kernel remembers what is left of this call, always when it ends it with `EINTR` because of a signal
/// (Linux: whose result is `-ERESTART_RESTARTBLOCK`).
#[inline(always)]
pub fn is_remembered(number: u32, argument: impl Fn(usize) -> u64) -> bool {
    match number {
        POLL => argument(2) as i32 > 0,
        NANOSLEEP => true,
        CLOCK_NANOSLEEP => argument(1) & TIMER_ABSTIME == 0,
        FUTEX => is_futex_wait(argument(1)) && argument(3) != 0,
        _ => false,
    }
}

/// The number of a call of which only the arguments are known: that of a futex(2) that waits with a time-out, if it looks like one. What else looks
/// like it may be taken for it where the kernel goes on, as it knows better; but if it has not ended this one as above, it may remember an older call yet, with
/// which it has gone on. So only futexes of one process are looked for, whose operation is no number that other calls have in its place.
#[inline(always)]
pub fn nameless(argument: impl Fn(usize) -> u64, two_words: impl Fn(u64) -> Option<[u64; 2]>) -> Option<u32> {
    let is_int = |word: u64| word as u32 as u64 == word || word as i32 as u64 == word;
    if !is_futex_wait(argument(1))
        || argument(1) & FUTEX_PRIVATE == 0
        || !argument(0).is_multiple_of(4)
        || !is_int(argument(2))
    {
        return None;
    }
    let [seconds, nanoseconds] = two_words(argument(3))?;
    let is_time =
        seconds <= i64::MAX as u64 && nanoseconds < 1_000_000_000 && (seconds, nanoseconds) != (0, 0);
    two_words(argument(0) & !15).filter(|_| is_time).map(|_| FUTEX)
}

#[inline(always)]
fn is_futex_wait(operation: u64) -> bool {
    matches!(operation & !FUTEX_FLAGS, FUTEX_WAIT | FUTEX_WAIT_BITSET)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: u64 = 0x5000;
    const TIME: u64 = 0x6000;
    const WORD: u64 = 0x7000;

    fn two_words(address: u64) -> Option<[u64; 2]> {
        match address {
            ZERO => Some([0, 0]),
            TIME | WORD => Some([3, 3]),
            _ => None,
        }
    }

    #[test]
    fn the_kernel_remembers_what_ends_at_a_time_of_its_own() {
        let remembers = |number, arguments: [u64; 6]| is_remembered(number, |at| arguments[at]);
        assert!(remembers(POLL, [0, 0, 1, 0, 0, 0]));
        assert!(!remembers(POLL, [0, 0, 0, 0, 0, 0]), "it does not wait");
        assert!(!remembers(POLL, [0, 0, u64::from(u32::MAX), 0, 0, 0]), "for ever");
        assert!(remembers(NANOSLEEP, [0; 6]) && remembers(CLOCK_NANOSLEEP, [0; 6]));
        assert!(!remembers(CLOCK_NANOSLEEP, [1, TIMER_ABSTIME, 0, 0, 0, 0]));
        assert!(remembers(FUTEX, [0, 0x80, 0, TIME, 0, 0]) && remembers(FUTEX, [0, 0x189, 0, TIME, 0, 0]));
        assert!(!remembers(FUTEX, [0, 0x80, 0, 0, 0, 0]), "for ever");
        assert!(!remembers(FUTEX, [0, 0x86, 0, TIME, 0, 0]), "FUTEX_LOCK_PI");
        for number in (0..450).filter(|number| ![POLL, NANOSLEEP, CLOCK_NANOSLEEP, FUTEX].contains(number)) {
            assert!(!remembers(number, [TIME, 0, 1, TIME, 0, 0]), "{number}");
        }
    }

    #[test]
    fn a_futex_is_known_by_its_arguments() {
        let looks = |arguments: [u64; 6]| nameless(|at| arguments[at], two_words);
        assert_eq!(looks([WORD, 0x80, 0, TIME, 0, 0]), Some(FUTEX));
        assert_eq!(looks([WORD, 0x189, u64::MAX, TIME, 0, u64::from(u32::MAX)]), Some(FUTEX));
        assert_eq!(looks([WORD, 0x81, 0, TIME, 0, 0]), None, "FUTEX_WAKE");
        assert_eq!(looks([WORD, 9, 0, TIME, 0, 0]), None, "nine descriptors of ppoll");
        assert_eq!(looks([WORD + 1, 0x80, 0, TIME, 0, 0]), None, "no word's address");
        assert_eq!(looks([9, 0x80, 0, TIME, 0, 0]), None, "no address");
        assert_eq!(looks([WORD, 0x80, 1 << 40, TIME, 0, 0]), None, "no value of a word");
        assert_eq!(looks([WORD, 0x80, 0, 0, 0, 0]), None, "for ever");
        assert_eq!(looks([WORD, 0x80, 0, ZERO, 0, 0]), None, "a sleep by number may have anything there");
    }
}
