//! Timers on the CPU clocks of single threads (timer_create(2), `SIGEV_THREAD_ID`).
//!
//! The kernel's tick that finds such a timer expired queues work for the return to user mode (Linux
//! 5.9 on x86-64, `CONFIG_POSIX_CPU_TIMERS_TASK_WORK`). The signal is raised there: it cuts no
//! system call short, and the thread has run no code of its own since the tick.

use nix::time::ClockId;
use std::io;
use swipr_unwind::handler::TimerSignal;

/// `SIGEV_THREAD_ID` of Linux' asm-generic/siginfo.h.
const THREAD_ID: libc::c_int = 4;
/// CPU time until the timer expires: the next tick at which the thread runs finds it expired.
const AT_ONCE_NS: i64 = 1;
/// CPU time from one overrun of a timer to the next, see [`CpuTimer::arm_counting`].
pub const OVERRUN_NS: u64 = 1_000;
/// Where the kernel does not say how long its tick is: the longest that there is.
const LONGEST_TICK_NS: u64 = 10_000_000;

/// One timer. It is deleted when this is dropped.
#[derive(Debug)]
pub struct CpuTimer {
    id: libc::c_int,
}

impl CpuTimer {
    /// A timer on a `clock` of thread `tid`, which gets `signal` with `value`. An error where the
    /// thread is gone, or `RLIMIT_SIGPENDING` is reached.
    pub fn new(clock: libc::clockid_t, tid: u32, signal: i32, value: u64) -> io::Result<CpuTimer> {
        // SAFETY: plain data.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_value.sival_ptr = value as *mut libc::c_void;
        event.sigev_signo = signal;
        event.sigev_notify = THREAD_ID;
        event.sigev_notify_thread_id = tid as libc::c_int;
        let mut id: libc::c_int = 0;
        // Not by the C library's function, which allocates.
        // SAFETY: the kernel reads `event` and writes an int.
        let result = unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw mut event, &raw mut id) };
        if result == 0 { Ok(CpuTimer { id }) } else { Err(io::Error::last_os_error()) }
    }

    /// The kernel's number of it, which comes with its signals.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// The timer of a number that [`CpuTimer::into_id`] gave.
    pub fn from_id(id: i32) -> CpuTimer {
        CpuTimer { id }
    }

    /// Its number; it is not deleted.
    pub fn into_id(self) -> i32 {
        std::mem::ManuallyDrop::new(self).id
    }

    /// Expires at the next tick of the kernel at which the thread runs.
    pub fn arm(&self) -> bool {
        arm(self.id)
    }

    /// As [`CpuTimer::arm`]. The signal's count of overruns says how much CPU time the thread has
    /// used until it came, in units of [`OVERRUN_NS`]. The timer expires at each tick from then on.
    pub fn arm_counting(&self) -> bool {
        set(self.id, AT_ONCE_NS, OVERRUN_NS as i64)
    }

    /// Sends the timer's signal to its thread now (rt_tgsigqueueinfo(2)): the handler sees no
    /// difference to one that expired. `signal` and `value` are those that [`CpuTimer::new`] was
    /// given.
    pub fn raise(&self, tid: u32, signal: i32, value: u64) -> bool {
        /// The kernel's `siginfo_t` (sigaction(2)), 128 bytes.
        #[repr(C)]
        struct Info(TimerSignal, [u64; 12]);
        const { assert!(size_of::<Info>() == size_of::<libc::siginfo_t>()) };
        let info = Info(TimerSignal::new(signal, self.id, value), [0; 12]);
        let process = super::process::pid();
        // SAFETY: the kernel reads a siginfo. A process may send itself any code.
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, tid, signal, &raw const info) == 0 }
    }

    /// Undoes [`CpuTimer::arm`].
    pub fn disarm(&self) {
        disarm(self.id);
    }
}

impl Drop for CpuTimer {
    fn drop(&mut self) {
        // SAFETY: the id is that of the agent's own timer, which nothing uses any more.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
    }
}

/// Arms a timer by its number. Async-signal-safe.
pub fn arm(id: i32) -> bool {
    set(id, AT_ONCE_NS, 0)
}

/// Disarms a timer by its number, for a thread that may not wait for the sampler.
/// Async-signal-safe.
pub fn disarm(id: i32) {
    set(id, 0, 0);
}

fn set(id: i32, ns: i64, interval_ns: i64) -> bool {
    let time = |ns| libc::timespec { tv_sec: 0, tv_nsec: ns };
    let time = libc::itimerspec { it_interval: time(interval_ns), it_value: time(ns) };
    let old: *mut libc::itimerspec = std::ptr::null_mut();
    // SAFETY: the kernel reads `time`.
    unsafe { libc::syscall(libc::SYS_timer_settime, id, 0, &raw const time, old) == 0 }
}

/// How long the kernel's tick is (1 s / HZ): the resolution of the clock that only moves with it
/// (clock_getres(2)).
pub fn kernel_tick_ns() -> u64 {
    let tick = ClockId::CLOCK_MONOTONIC_COARSE.res().ok();
    let known = tick.filter(|tick| tick.tv_sec() == 0).map(|tick| tick.tv_nsec() as u64);
    known.filter(|ns| (100_000..=LONGEST_TICK_NS).contains(ns)).unwrap_or(LONGEST_TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{clock_ns, tid};
    use crate::threads::cpu_clock;
    use nix::sys::signal::{SigSet, Signal};

    #[test]
    fn an_armed_timer_expires_when_its_thread_runs_and_a_disarmed_one_does_not() {
        std::thread::spawn(|| {
            SigSet::from(Signal::SIGWINCH).thread_block().unwrap();
            let took = || {
                let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
                // SAFETY: a zeroed set is a valid one, and this thread's own signal is taken
                // without waiting.
                unsafe {
                    let mut set: libc::sigset_t = std::mem::zeroed();
                    libc::sigaddset(&mut set, libc::SIGWINCH);
                    libc::sigtimedwait(&set, std::ptr::null_mut(), &none) == libc::SIGWINCH
                }
            };
            let clock = cpu_clock(tid());
            let burn = || {
                let begin = clock_ns(clock).unwrap();
                while clock_ns(clock).unwrap() < begin + 3 * kernel_tick_ns() {}
            };
            let timer = CpuTimer::new(cpu_clock(tid()), tid(), libc::SIGWINCH, 7).unwrap();
            let expires = || (timer.arm(), burn(), took()).2;
            assert!((0..50).any(|_| expires()));
            // Unless a tick comes in between.
            let stays_quiet = || (timer.arm(), timer.disarm(), burn(), !took()).3;
            assert!((0..50).any(|_| stays_quiet()));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_overruns_of_a_counting_timer_say_how_long_its_thread_has_run_on() {
        std::thread::spawn(|| {
            SigSet::from(Signal::SIGWINCH).thread_block().unwrap();
            let clock = cpu_clock(tid());
            let timer = CpuTimer::new(clock, tid(), libc::SIGWINCH, 7).unwrap();
            let armed_ns = clock_ns(clock).unwrap();
            assert!(timer.arm_counting());
            let from_ns = clock_ns(clock).unwrap();
            while clock_ns(clock).unwrap() < from_ns + 3 * kernel_tick_ns() {}
            let burnt_ns = clock_ns(clock).unwrap() - from_ns;
            // SAFETY: plain data, written by the kernel; a zeroed set is a valid one.
            let info = unsafe {
                let (mut set, mut info): (libc::sigset_t, libc::siginfo_t) = std::mem::zeroed();
                libc::sigaddset(&mut set, libc::SIGWINCH);
                assert_eq!(libc::sigwaitinfo(&set, &mut info), libc::SIGWINCH);
                info
            };
            // SAFETY: a timer's.
            let ns = unsafe { info.si_overrun() } as u64 * OVERRUN_NS;
            let most_ns = clock_ns(clock).unwrap() - armed_ns;
            assert!((burnt_ns - OVERRUN_NS..=most_ns).contains(&ns), "{burnt_ns} {ns} {most_ns}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_raised_timer_looks_like_one_that_has_expired() {
        std::thread::spawn(|| {
            SigSet::from(Signal::SIGWINCH).thread_block().unwrap();
            let timer = CpuTimer::new(cpu_clock(tid()), tid(), libc::SIGWINCH, 7).unwrap();
            assert!(timer.raise(tid(), libc::SIGWINCH, 7));
            // SAFETY: plain data, written by the kernel; a zeroed set is a valid one.
            let info = unsafe {
                let (mut set, mut info): (libc::sigset_t, libc::siginfo_t) = std::mem::zeroed();
                libc::sigaddset(&mut set, libc::SIGWINCH);
                assert_eq!(libc::sigwaitinfo(&set, &mut info), libc::SIGWINCH);
                info
            };
            // SAFETY: a timer's.
            let (id, value) = unsafe { (info.si_timerid(), info.si_value().sival_ptr as u64) };
            assert_eq!((info.si_code, id, value), (libc::SI_TIMER, timer.id(), 7));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn nobody_has_a_timer_who_is_not_there() {
        let nobody = u32::MAX >> 4;
        assert!(CpuTimer::new(cpu_clock(nobody), nobody, libc::SIGWINCH, 0).is_err());
    }
}
