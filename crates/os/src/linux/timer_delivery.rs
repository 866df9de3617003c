//! Whether a CPU timer's signal cuts system calls short on this kernel.
//!
//! Linux raises it as the thread returns to user mode (`CONFIG_POSIX_CPU_TIMERS_TASK_WORK`, 5.9 on
//! x86-64). Older kernels raise it in the tick's interrupt. The version does not decide it: vendors
//! backport. So the sampler reads zeros while a timer of its own expires, and sees whether the read
//! was cut short.
//!
//! Not so in io_uring_enter(2), which does such work itself as it waits, and returns `EINTR` then.
//!
//! Where it may be, timers run on the clocks of user time. Those move only with ticks that find the
//! thread in user mode, so that no timer expires in a system call. Time in the kernel has no stack.

use super::cpu_timers::{CpuTimer, kernel_tick_ns};
use super::process::{clock_ns, tid};
use super::{process, signals, threads};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use swipr_unwind::slot::{self, Ticket};

/// When the signal of a CPU timer is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Delivery {
    /// At the return to user mode, by task work: no system call is cut short.
    TaskWork = 1,
    /// In the tick's interrupt: a system call may be cut short.
    Interrupt = 2,
}

impl Delivery {
    /// As `/status` has it.
    pub fn name(self) -> &'static str {
        match self {
            Delivery::TaskWork => "task work",
            Delivery::Interrupt => "interrupt",
        }
    }
}

/// A [`Delivery`], or [`NOT_TRIED`] and the number of tries. Forked children have the same kernel.
static MEASURED: AtomicU8 = AtomicU8::new(NOT_TRIED);
const NOT_TRIED: u8 = 3;
/// The first version of Linux that raises signals by task work, by its source; of Debian's kernels
/// for other processors, 6.1 does and 5.10 does not.
const FIRST_VERSION: (u32, u32) = if cfg!(target_arch = "x86_64") { (5, 9) } else { (6, 1) };
/// Where threads share a CPU, ticks may find other threads.
const MAX_TRIES: u8 = 10;
/// So many uncut reads outweigh what the kernel's version promises.
const SURE: u8 = 5;
/// One buffer, read into so many times by one system call: 32 MiB, about a millisecond.
const BUFFER: usize = 32 << 10;
const BUFFERS: usize = 1 << 10;
/// Ticks of CPU time after which the signal does not come any more.
const TICKS: u64 = 3;

/// When the process was last known to have a ring of io_uring(7), in monotonic time; 0: it has
/// none.
static RING_NS: AtomicU64 = AtomicU64::new(0);
/// A ring that was made is among the mappings after this time.
const MAPPED_AFTER_NS: u64 = 1_000_000_000;

/// A ring was made, or a thread waits in one, or its memory is mapped.
pub fn has_ring() {
    RING_NS.store(process::monotonic_ns(), Relaxed);
}

/// No ring's memory is mapped.
pub fn has_no_ring_mapped() {
    let seen_ns = RING_NS.load(Relaxed);
    if seen_ns > 0 && process::monotonic_ns().saturating_sub(seen_ns) > MAPPED_AFTER_NS {
        // Unless another was made meanwhile.
        let _ = RING_NS.compare_exchange(seen_ns, 0, Relaxed, Relaxed);
    }
}

/// What was measured; `None`: nothing yet, or it could not be.
pub fn measured() -> Option<Delivery> {
    match MEASURED.load(Relaxed) {
        1 => Some(Delivery::TaskWork),
        2 => Some(Delivery::Interrupt),
        _ => None,
    }
}

/// Whether no system call is cut short: as measured, or as this version of the kernel promises, and
/// there is no ring.
pub fn is_task_work() -> bool {
    static PROMISED: OnceLock<bool> = OnceLock::new();
    let promised = || *PROMISED.get_or_init(|| process::kernel_version() >= FIRST_VERSION);
    RING_NS.load(Relaxed) == 0 && measured().map_or_else(promised, |delivery| delivery == Delivery::TaskWork)
}

/// The clock of a thread on which its timers may run.
pub fn clock(tid: u32) -> libc::clockid_t {
    if is_task_work() { threads::cpu_clock(tid) } else { threads::user_clock(tid) }
}

/// The CPU time for which such a timer cannot hit a thread: that in the kernel, by the kernel's
/// ticks. `None`: the thread is gone, or there is no such time.
pub fn kernel_ns(tid: u32) -> Option<u64> {
    if is_task_work() {
        return None;
    }
    let (user, all) = (clock_ns(threads::user_clock(tid))?, clock_ns(threads::ticks_clock(tid))?);
    Some(all.saturating_sub(user))
}

/// Measures it, on the calling thread, which is the sampler, unless it is known or [`MAX_TRIES`]
/// tries failed; `lend` gives a slot for the handler. It takes a tick or two of CPU time, where no
/// signal comes [`TICKS`].
pub fn measure(mut lend: impl FnMut() -> Option<Ticket>) {
    let is_open = (NOT_TRIED..NOT_TRIED + MAX_TRIES).contains(&MEASURED.load(Relaxed));
    if !is_open || !signals::is_installed() {
        return;
    }
    MEASURED.fetch_add(1, Relaxed);
    // A signal that finds the thread between two reads cuts none short.
    let needed = if is_task_work() { 1 } else { SURE };
    let mut tries = (0..needed).map(|_| is_next_cut_short(&mut lend)).take_while(Option::is_some).flatten();
    let mut uncut = 0;
    let is_cut = tries.any(|is_cut| {
        uncut += u8::from(!is_cut);
        is_cut
    });
    if is_cut || uncut == needed {
        let delivery = if is_cut { Delivery::Interrupt } else { Delivery::TaskWork };
        MEASURED.store(delivery as u8, Relaxed);
    }
}

/// Whether the next signal cuts a read short; `None`: none came.
fn is_next_cut_short(lend: &mut impl FnMut() -> Option<Ticket>) -> Option<bool> {
    let ticket = lend()?;
    let mut is_cut = None;
    if let Ok(timer) = CpuTimer::new(threads::cpu_clock(tid()), tid(), signals::SAMPLING, ticket.to_value())
        && let Some(slot) = ticket.slot()
    {
        slot.set_owner(tid(), timer.id());
        // With the sampler's short slices it is preempted between two ticks, again and again.
        threads::ask_for_slices(TICKS * kernel_tick_ns());
        is_cut = is_cut_short(|| _ = timer.arm(), || slot::is_done(ticket));
        threads::ask_for_slices(threads::SHORTEST_SLICE_NS);
        slot.set_owner(0, 0);
    }
    slot::release(ticket);
    is_cut
}

/// Whether a signal that `raise` brings about ends a read early; `None`: none `came`, or zeros
/// cannot be read here.
fn is_cut_short(raise: impl FnOnce(), came: impl Fn() -> bool) -> Option<bool> {
    let zeros = File::open("/dev/zero").ok()?;
    let mut buffer = vec![1u8; BUFFER];
    let part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: BUFFER };
    let parts = vec![part; BUFFERS];
    let clock = threads::cpu_clock(tid());
    let end_ns = clock_ns(clock)? + TICKS * kernel_tick_ns();
    raise();
    while clock_ns(clock)? < end_ns {
        // SAFETY: all parts are `buffer`, which nothing else uses.
        let read = unsafe { libc::readv(zeros.as_raw_fd(), parts.as_ptr(), BUFFERS as libc::c_int) };
        if came() {
            return Some(usize::try_from(read) != Ok(BUFFER * BUFFERS));
        }
        usize::try_from(read).ok()?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    static CAME: AtomicBool = AtomicBool::new(false);

    extern "C" fn came(_: libc::c_int) {
        CAME.store(true, Relaxed);
    }

    /// Regression: the sampler tried again at each tick where no signal ever came.
    #[test]
    fn what_cannot_be_measured_is_tried_so_often_and_no_more() {
        std::thread::spawn(signals::install).join().unwrap().unwrap();
        let mut tries = 0;
        (0..3 * MAX_TRIES).for_each(|_| measure(|| (tries += 1, None).1));
        assert_eq!((tries, measured()), (MAX_TRIES, None));
    }

    #[test]
    fn a_signal_from_another_thread_is_seen_to_cut_a_read_short() {
        // SAFETY: the handler stores into an atomic only.
        unsafe { libc::signal(libc::SIGUSR2, came as *const () as libc::sighandler_t) };
        let (pid, reader) = (std::process::id() as libc::c_int, tid() as libc::c_int);
        let is_cut = (0..50).any(|_| {
            CAME.store(false, Relaxed);
            let raise = || {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_micros(300));
                    // SAFETY: signals the test's own thread, which has a handler.
                    unsafe { libc::syscall(libc::SYS_tgkill, pid, reader, libc::SIGUSR2) };
                });
            };
            let is_cut = is_cut_short(raise, || CAME.load(Relaxed));
            while !CAME.load(Relaxed) {
                std::thread::yield_now();
            }
            is_cut == Some(true)
        });
        assert!(is_cut);
    }
}
