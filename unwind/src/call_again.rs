//! A call that our signal cut short is made again: the host sees no `EINTR` where it would see none without us.
//!
//! The sampler signals threads that run, but a thread may go to sleep between its look and the signal. Many calls
//! then end with `EINTR`, `SA_RESTART` or not (signal(7)), and many programs that expect no signal take that for an error, or for the
//! end of a wait.
//!
//! Idea: the handler goes back to the `syscall` instruction. For the program that is as if the thread had been kept from running
//! for a moment right before the call, which can happen to any program at any time, provided that
//!
//! 1. *the call has done nothing yet, and nobody calls it to wait for a handler*: true of the calls in [`calls`] and no others. connect(2), close(2),
//!    read(2) and write(2) (files in user space) are not among them, nor pause(2), sigsuspend(2) and polls with a mask, but for a moment in a
//!    program that has no handlers;
//! 2. *it has not waited long*, or does not count from its beginning. Calls without a time-out or with a point in time are made again as they
//!    are; the kernel itself writes the rest of the time to where select(2), ppoll(2) and many sleeps have it. Other sleeps are woken at
//!    their end only, and never say `EINTR` then: where the thread was seen on a CPU ([`Seen`]) it was not in one, and only the
//!    moment since then is added; where it was waiting for a CPU and had not got one when the signal was there ([`Since::Waited`]), it was woken in
//!    its sleep by somebody else, who may want it to end. (In a program with rings of io_uring they are woken for the rings' work: there nothing is made again.
//!    Job control, freezers and debuggers wake them, too. They stop the whole process: nobody is asked for
//!    a while behind a stop that the sampler felt itself.) poll(2), epoll_wait(2) and sockets with a time-out may be woken
//!    without an end, and seen awake inside of the call: these are begun again only where all of their time is a moment, or once ([`once`]). poll(2) and sockets
//!    say `EINTR` even when their time is over, as a thread finds that was woken at its end and has to wait for a CPU; to begin them again would double their
//!    time, so that they must have begun behind the look: the thread has run ever since it was seen on a CPU, or see 4. Sockets say it even when there is something to
//!    receive, for which the thread was woken: then the call returns at once, and is made again whatever the thread did. And where there is nothing, for who
//!    waited for a CPU until the signal was there, the time is over, if it is a moment: that is what the host is told, a moment too early at the worst (another
//!    thread received what this one was woken for);
//! 3. *it was our signal*. A handler of the host may have cut it short, which is what the program waits for, and have kept
//!    ours blocked until it returned: to go on would be to wait for ever. Right behind a handler's return ours may also come by chance.
//!    So the host's handlers are looked at ([`others`]), those that there are and those that the sampler has seen before: with one that
//!    blocks our signal, nothing is made again; with any, nothing is whose signal is pending, and 4 is wanted;
//! 4. *it went to sleep after the sampler had seen the thread on a CPU*: since then, less CPU time than time has passed. A
//!    thread that comes back from a handler, or was woken at its time, has run all the while.
//!
//! A poll(2) that may be over is not made again but gone on with: for a call that was cut short and has had no handler yet the kernel remembers when it ends
//! (restart_syscall(2)), until a handler returns. So ours lets it end there, by the time that the host gave it. That says `EINTR` when a handler of the
//! host's has run, whatever that did; and mostly it does not wait, as the time is over. Where the sampler lives
//! under a seccomp filter nothing is gone on with: the filter may not know the call.
//!
//! What is left of 3: a handler that ran between the sampler's look and its signal, some microseconds, and returned in the very moment
//! when ours came. It is then as if it had run right before the call: a program to which that matters would wait for ever without us, too,
//! whenever its signal comes between its last look at what the handler says and the call.
//!
//! Polls that only ask, with a time-out of zero and no mask, are made again in any case: they return anyway.
//!
//! x86-64 only: on aarch64 the result of the call lies where its first argument was. Only where the number of the call is known ([`number`]): it was made by one of glibc's wrappers, not by syscall(2).

pub mod calls;
#[cfg(target_arch = "x86_64")]
mod library;
#[cfg(target_arch = "x86_64")]
mod number;
#[cfg(target_arch = "x86_64")]
mod once;
#[cfg(target_arch = "x86_64")]
mod others;
#[cfg(target_arch = "x86_64")]
mod registers;

use calls::Wait;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};

/// The kernel's `-EINTR` in the result register.
#[cfg(target_arch = "x86_64")]
const INTERRUPTED: u64 = -4i64 as u64;
/// What must have passed on the system's clock beyond the thread's own CPU time for it to have slept: more than what
/// two readings of the clocks differ by, less than the shortest sleep (a thread takes as long to be woken).
const SLEPT_NS: u64 = 3000;
/// A drift of the system's clock against the threads', which nobody disciplines: one in so many.
const DRIFT: u64 = 1 << 10;
/// A moment for which a program may be kept from running at any time. An older look says nothing of the call, and a wait that may have been longer is
/// begun again once at the most.
pub const SHORT_NS: u64 = 20_000_000;
const LONG_NS: u64 = SHORT_NS + 1;

/// A moment at which the sampler saw that a thread was not asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// On the system's clock (CLOCK_MONOTONIC); not before that moment.
    pub at_ns: u64,
    /// What it did.
    pub awake: Awake,
}

/// What a thread does that is not asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awake {
    /// It was on a CPU: its CPU clock was moving, and had reached so many nanoseconds.
    Runs(u64),
    /// It waited for a CPU, and where it goes on is not known.
    Waits,
    /// The same, and it had not got one when the signal was there for it.
    WaitsStill,
}

/// The signal that is ours. Not carried through the handler: that would cost it stack.
static OURS: AtomicI32 = AtomicI32::new(0);

/// Whether calls are gone on with.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// What the kernel does for the host.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// It writes down the rest of the time of calls (personality(2)).
    pub writes_times: bool,
    /// It allows every system call: no seccomp(2) filter.
    pub allows_all: bool,
}

/// Sampler: looks at the host's handlers, to be remembered when they are gone. At the beginning of a recording, and every now and then.
pub fn note_host(signal: i32, kernel: Kernel) {
    GOES_ON.store(kernel.allows_all, Relaxed);
    #[cfg(target_arch = "x86_64")]
    others::note(signal, kernel.writes_times);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (signal, kernel);
}

/// Sampler: where the C library's code is, `at` 0 or 1 as it may be in two files. Calls are made again in there only: elsewhere what looks like its
/// wrappers may be other instructions, or the end of several calls with one `syscall` instruction.
pub fn note_library(at: usize, code: core::ops::Range<u64>) {
    #[cfg(target_arch = "x86_64")]
    library::note(at, code);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, code);
}

/// Sampler: the program has rings of io_uring(7).
pub fn note_rings() {
    #[cfg(target_arch = "x86_64")]
    others::note_rings();
}

/// The signal by which the handler was called. Before [`call_again`].
#[inline(always)]
pub fn note_signal(signal: i32) {
    OURS.store(signal, Relaxed);
}

/// What a thread did since the sampler saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It was not seen awake, or too long ago.
    Unknown,
    /// It was awake, and may not have slept.
    Awake,
    /// It has not run until our signal was there: whatever was cut short is what it was in already.
    Waited,
    /// It was on a CPU, and has been ever since.
    Ran,
    /// It was on a CPU, and slept.
    Slept,
}

/// What to do about a call that was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing: the host sees `EINTR`.
    None,
    /// The thread makes it again.
    Again,
    /// The thread makes it again, if it has not done so with this call already, whose time is so long in nanoseconds.
    Once(u64),
    /// The kernel goes on with it.
    GoOn,
    /// Its time is over.
    Over,
}

impl Seen {
    /// What the thread did between that moment and `now`.
    pub fn until(&self, now: Seen) -> Since {
        let passed = now.at_ns.saturating_sub(self.at_ns);
        let least_ns = SLEPT_NS + passed / DRIFT;
        let slept = |since: u64, now: u64| passed.saturating_sub(now.saturating_sub(since)) >= least_ns;
        match (self.awake, now.awake) {
            (Awake::WaitsStill, _) => Since::Waited,
            _ if passed > SHORT_NS => Since::Unknown,
            (Awake::Runs(since), Awake::Runs(now)) if slept(since, now) => Since::Slept,
            (Awake::Runs(_), Awake::Runs(_)) => Since::Ran,
            _ => Since::Awake,
        }
    }
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

/// What is right for a call; the closures are asked only where that matters. `goes_on`: see [`GOES_ON`]; `is_ready`: there is something
/// to receive from the socket.
pub fn remedy(
    wait: Wait,
    goes_on: bool,
    others: impl Fn() -> Others,
    since: impl Fn() -> Since,
    is_ready: impl Fn() -> bool,
) -> Remedy {
    if wait == Wait::None {
        return Remedy::Again;
    }
    let others = others();
    if others == Others::InTheWay {
        return Remedy::None;
    }
    let alone = others == Others::None;
    let since = match wait {
        Wait::None | Wait::Sound | Wait::Open | Wait::Bounded(..=SHORT_NS) if alone => return Remedy::Again,
        Wait::Open => return Remedy::None,
        Wait::Socket(_) if is_ready() => return Remedy::Again,
        _ => since(),
    };
    let begins = since == Since::Slept || (alone && matches!(since, Since::Ran | Since::Awake));
    match wait {
        Wait::Sleep if begins => Remedy::Again,
        Wait::Sound | Wait::Bounded(..=SHORT_NS) if since == Since::Slept => Remedy::Again,
        Wait::Bounded(ns @ LONG_NS..) if begins => Remedy::Once(ns),
        Wait::Socket(..=SHORT_NS) if begins => Remedy::Again,
        Wait::Socket(..=SHORT_NS) if alone && since == Since::Waited => Remedy::Over,
        Wait::Socket(ns @ LONG_NS..) | Wait::Remembered(ns @ LONG_NS..) if since == Since::Slept => {
            Remedy::Once(ns)
        }
        Wait::Remembered(..=SHORT_NS) if begins && since != Since::Awake => Remedy::Again,
        // Who has run all the while has just begun to wait, and would do so in our handler.
        Wait::Remembered(..=SHORT_NS) if goes_on && since != Since::Ran => Remedy::GoOn,
        _ => Remedy::None,
    }
}

/// Lets the thread whose `ucontext` this is make its call again, where that is right. `ticket`: the signal's value,
/// if the slot that it names is being written; else 0.
///
/// # Safety
/// `context` is the ucontext that the kernel passed to a handler of the signal that was noted; all signals are blocked while that
/// handler runs, so that another one arrives as if right before the call.
#[inline(always)]
pub unsafe fn call_again(context: *mut core::ffi::c_void, ticket: u64) {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: the caller vouches for the ucontext.
        let result = unsafe { registers::place(context, registers::RESULT).read() };
        if result == INTERRUPTED {
            // SAFETY: as the caller's.
            unsafe { registers::make_again(context, ticket) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (context, ticket);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: u64 = 1_000_000;
    const LONG: u64 = 1_000_000_000;
    const WAITS: [Wait; 5] =
        [Wait::Sound, Wait::Sleep, Wait::Bounded(SHORT), Wait::Socket(SHORT), Wait::Remembered(SHORT)];
    const LONG_WAITS: [Wait; 3] = [Wait::Bounded(LONG), Wait::Socket(LONG), Wait::Remembered(LONG)];
    const SINCE: [Since; 5] = [Since::Unknown, Since::Awake, Since::Waited, Since::Ran, Since::Slept];

    fn right(wait: Wait, others: Others, since: Since) -> Remedy {
        remedy(wait, true, || others, || since, || false)
    }

    #[test]
    fn a_poll_that_does_not_wait_is_made_again_whatever_there_is() {
        for others in [Others::None, Others::Quiet, Others::InTheWay] {
            assert_eq!(right(Wait::None, others, Since::Unknown), Remedy::Again);
        }
    }

    #[test]
    fn what_a_handler_of_the_host_may_have_cut_short_is_not_made_again() {
        for wait in WAITS.into_iter().chain(LONG_WAITS) {
            assert_eq!(SINCE.map(|since| right(wait, Others::InTheWay, since)), [Remedy::None; 5]);
            let again = |since| matches!(right(wait, Others::Quiet, since), Remedy::Again | Remedy::Once(_));
            assert_eq!(SINCE.map(again), [false, false, false, false, true]);
        }
        let quiet = SINCE.map(|since| right(Wait::Open, Others::Quiet, since));
        assert_eq!(quiet, [Remedy::None; 5], "it may wait for one of them");
    }

    #[test]
    fn without_handlers_of_the_host_only_the_time_that_has_passed_matters() {
        let when = |wait| SINCE.map(|since| right(wait, Others::None, since) == Remedy::Again);
        assert_eq!(when(Wait::Sound), [true; 5]);
        assert_eq!(when(Wait::Sleep), [false, true, false, true, true], "it was woken, and not by its end");
        assert_eq!(when(Wait::Bounded(SHORT)), [true; 5]);
        assert_eq!(when(Wait::Open), [true; 5]);
        assert_eq!(when(Wait::Socket(SHORT)), [false, true, false, true, true]);
        assert_eq!(when(Wait::Remembered(SHORT)), [false, false, false, true, true]);
    }

    #[test]
    fn what_may_have_waited_for_long_is_made_again_once() {
        let when = |wait| SINCE.map(|since| right(wait, Others::None, since) == Remedy::Once(LONG));
        assert_eq!(when(Wait::Bounded(LONG)), [false, true, false, true, true]);
        assert_eq!(when(Wait::Socket(LONG)), [false, false, false, false, true], "it may be over");
        assert_eq!(when(Wait::Remembered(LONG)), [false, false, false, false, true], "it may be over");
    }

    #[test]
    fn the_kernel_goes_on_with_what_may_be_over() {
        let when = |wait, others| SINCE.map(|since| right(wait, others, since) == Remedy::GoOn);
        for others in [Others::None, Others::Quiet] {
            assert_eq!(when(Wait::Remembered(SHORT), others), [true, true, true, false, false]);
            assert_eq!(when(Wait::Remembered(LONG), others), [false; 5], "not in a handler");
            assert_eq!(when(Wait::Socket(SHORT), others), [false; 5], "the kernel does not remember it");
        }
        let filtered = remedy(Wait::Remembered(SHORT), false, || Others::None, || Since::Awake, || false);
        assert_eq!(filtered, Remedy::None);
    }

    #[test]
    fn the_time_of_a_socket_is_over_for_who_waited_for_a_cpu_with_it() {
        let when = |time, others| SINCE.map(|since| right(Wait::Socket(time), others, since) == Remedy::Over);
        assert_eq!(when(SHORT, Others::None), [false, false, true, false, false]);
        assert_eq!(when(SHORT, Others::Quiet), [false; 5], "a handler may have cut it short");
        assert_eq!(when(LONG, Others::None), [false; 5], "who knows");
    }

    #[test]
    fn who_has_something_to_receive_receives_it() {
        for (others, remedies) in
            [(Others::None, Remedy::Again), (Others::Quiet, Remedy::Again), (Others::InTheWay, Remedy::None)]
        {
            let ready = |since| remedy(Wait::Socket(LONG), true, || others, || since, || true);
            assert_eq!(SINCE.map(ready), [remedies; 5]);
        }
    }

    #[test]
    fn who_has_run_all_the_while_has_not_slept() {
        let after = |ns: u64, cpu_ns: u64| {
            let seen = Seen { at_ns: 1_000_000, awake: Awake::Runs(70_000) };
            seen.until(Seen { at_ns: seen.at_ns + ns, awake: Awake::Runs(70_000 + cpu_ns) })
        };
        assert_eq!(after(50_000, 50_000), Since::Ran);
        assert_eq!(after(50_000, 50_900), Since::Ran, "clocks differ a little");
        assert_eq!(after(50_000, 49_000), Since::Ran);
        assert_eq!(after(50_000, 2_000), Since::Slept);
        assert_eq!(after(7_000, 2_000), Since::Slept);
        assert_eq!(after(15_000_000, 14_990_000), Since::Ran, "the system's clock is a little faster");
        assert_eq!(after(30_000_000, 2_000), Since::Unknown, "who knows when it began");
        let waits_for_cpu = Seen { at_ns: 1_000_000, awake: Awake::Waits };
        let now = Seen { at_ns: 1_900_000, awake: Awake::Runs(4000) };
        assert_eq!(waits_for_cpu.until(now), Since::Awake, "it may have been woken in its call");
        let waits_long = Seen { at_ns: 1_000_000, awake: Awake::WaitsStill };
        let much_later = Seen { at_ns: 1_000_000_000, awake: Awake::Runs(4000) };
        assert_eq!(waits_long.until(much_later), Since::Waited, "however long");
    }
}
