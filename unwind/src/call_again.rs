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
//!    moment since then is added. (In a program with rings of io_uring they are woken for the rings' work: there nothing is made again.
//!    Job control, freezers and debuggers wake them, too. They stop the whole process: nobody is asked for
//!    a while behind a stop that the sampler felt itself.) poll(2), epoll_wait(2) and sockets with a time-out may be woken
//!    without an end, and seen awake inside of the call: these are begun again only where all of their time is a moment. poll(2) and sockets
//!    say `EINTR` even when their time is over, as a thread finds that was woken at its end and has to wait for a CPU; to begin them again would double their
//!    time, so that they must have begun behind the look: the thread has run ever since it was seen on a CPU, or see 4;
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
/// A moment for which a program may be kept from running at any time. An older look says nothing of the call, and a wait that was longer is
/// not begun again.
pub const SHORT_NS: u64 = 20_000_000;

/// A moment at which the sampler saw that a thread was not asleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// On the system's clock (CLOCK_MONOTONIC); not before that moment.
    pub at_ns: u64,
    /// On the thread's CPU clock, if that was moving: it was on a CPU. Else it waited for one, and where it goes on is not known.
    pub cpu_ns: Option<u64>,
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
    /// The kernel goes on with it.
    GoOn,
}

impl Seen {
    /// What the thread did between that moment and `now`.
    pub fn until(&self, now: Seen) -> Since {
        let passed = now.at_ns.saturating_sub(self.at_ns);
        let least_ns = SLEPT_NS + passed / DRIFT;
        let slept = |since: u64, now: u64| passed.saturating_sub(now.saturating_sub(since)) >= least_ns;
        match (self.cpu_ns, now.cpu_ns) {
            _ if passed > SHORT_NS => Since::Unknown,
            (Some(since), Some(now)) if slept(since, now) => Since::Slept,
            (Some(_), Some(_)) => Since::Ran,
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

/// What is right for a call; `others` and `since` are asked only where that matters. `goes_on`: see [`GOES_ON`].
pub fn remedy(wait: Wait, goes_on: bool, others: impl Fn() -> Others, since: impl Fn() -> Since) -> Remedy {
    if wait == Wait::None {
        return Remedy::Again;
    }
    let others = others();
    let is_made_again = match (others, wait) {
        (Others::InTheWay, _) => return Remedy::None,
        (Others::None, Wait::None | Wait::Sound | Wait::Moment | Wait::OpenMoment) => true,
        (Others::None, Wait::Sleep | Wait::Short | Wait::Remembered) => {
            matches!(since(), Since::Ran | Since::Slept)
        }
        (Others::Quiet, Wait::OpenMoment) => false,
        (Others::Quiet, _) => since() == Since::Slept,
    };
    if is_made_again {
        Remedy::Again
    } else if wait == Wait::Remembered && goes_on && since() != Since::Ran {
        Remedy::GoOn // who has run all the while has just begun to wait, and would do so in our handler
    } else {
        Remedy::None
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

    const WAITS: [Wait; 5] = [Wait::Sound, Wait::Sleep, Wait::Moment, Wait::Short, Wait::Remembered];
    const SINCE: [Since; 4] = [Since::Unknown, Since::Awake, Since::Ran, Since::Slept];

    fn right(wait: Wait, others: Others, since: Since) -> Remedy {
        remedy(wait, true, || others, || since)
    }

    #[test]
    fn a_poll_that_does_not_wait_is_made_again_whatever_there_is() {
        for others in [Others::None, Others::Quiet, Others::InTheWay] {
            assert_eq!(right(Wait::None, others, Since::Unknown), Remedy::Again);
        }
    }

    #[test]
    fn what_a_handler_of_the_host_may_have_cut_short_is_not_made_again() {
        for wait in WAITS {
            assert_eq!(SINCE.map(|since| right(wait, Others::InTheWay, since)), [Remedy::None; 4]);
            let quiet = SINCE.map(|since| right(wait, Others::Quiet, since) == Remedy::Again);
            assert_eq!(quiet, [false, false, false, true]);
        }
        let quiet = SINCE.map(|since| right(Wait::OpenMoment, Others::Quiet, since));
        assert_eq!(quiet, [Remedy::None; 4], "it may wait for one of them");
    }

    #[test]
    fn without_handlers_of_the_host_only_the_time_that_has_passed_matters() {
        let when = |wait| SINCE.map(|since| right(wait, Others::None, since) == Remedy::Again);
        assert_eq!(when(Wait::Sound), [true, true, true, true]);
        assert_eq!(when(Wait::Sleep), [false, false, true, true]);
        assert_eq!(when(Wait::Moment), [true, true, true, true]);
        assert_eq!(when(Wait::OpenMoment), [true, true, true, true]);
        assert_eq!(when(Wait::Short), [false, false, true, true]);
        assert_eq!(when(Wait::Remembered), [false, false, true, true]);
    }

    #[test]
    fn the_kernel_goes_on_with_what_may_be_over() {
        let when = |wait, others| SINCE.map(|since| right(wait, others, since) == Remedy::GoOn);
        for others in [Others::None, Others::Quiet] {
            assert_eq!(when(Wait::Remembered, others), [true, true, false, false]);
            assert_eq!(when(Wait::Short, others), [false; 4], "the kernel does not remember it");
        }
        let filtered = remedy(Wait::Remembered, false, || Others::None, || Since::Awake);
        assert_eq!(filtered, Remedy::None);
    }

    #[test]
    fn who_has_run_all_the_while_has_not_slept() {
        let after = |ns: u64, cpu_ns: u64| {
            let seen = Seen { at_ns: 1_000_000, cpu_ns: Some(70_000) };
            seen.until(Seen { at_ns: seen.at_ns + ns, cpu_ns: Some(70_000 + cpu_ns) })
        };
        assert_eq!(after(50_000, 50_000), Since::Ran);
        assert_eq!(after(50_000, 50_900), Since::Ran, "clocks differ a little");
        assert_eq!(after(50_000, 49_000), Since::Ran);
        assert_eq!(after(50_000, 2_000), Since::Slept);
        assert_eq!(after(7_000, 2_000), Since::Slept);
        assert_eq!(after(15_000_000, 14_990_000), Since::Ran, "the system's clock is a little faster");
        assert_eq!(after(30_000_000, 2_000), Since::Unknown, "who knows when it began");
        let waits_for_cpu = Seen { at_ns: 1_000_000, cpu_ns: None };
        let now = Seen { at_ns: 1_900_000, cpu_ns: Some(4000) };
        assert_eq!(waits_for_cpu.until(now), Since::Awake, "it may have been woken in its call");
    }
}
