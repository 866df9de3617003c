//! What else could have cut a call short: the host's signal handlers, asked of the kernel.

use super::calls::nanoseconds;
use super::{Now, Others};
use crate::slot::Ticket;
use crate::{handler, system_call};
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// Where a `ucontext` has the mask that holds after the handler: behind the registers.
pub const MASK: usize = 296;
const SIGNALS: i32 = 64;
/// SIGKILL and SIGSTOP, which have no handlers; the signals of a thread's own faults, which interrupt no call that waits (SIGILL, SIGBUS,
/// SIGFPE, SIGSEGV; SIGTRAP and SIGSYS, which are sent by other threads now and then, are of interest); the two that glibc keeps for itself, for cancellation and setuid(2): no program waits for them.
const OF_NO_INTEREST: u64 = bit(9) | bit(19) | bit(4) | bit(7) | bit(8) | bit(11) | bit(32) | bit(33);
/// The last two of these, whose handlers do their work elsewhere than in the call that they cut short: its end with `EINTR` is the only word of it.
const OF_THE_LIBRARY: u64 = bit(32) | bit(33);
const SA_RESETHAND: u64 = 0x8000_0000;

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// The most that was ever in the way, an [`Others`]: a handler that ran may have taken itself away.
static BEFORE: AtomicU8 = AtomicU8::new(Others::None as u8);

/// Whether the program has had rings of io_uring(7): their work wakes threads that sleep, again and again, and lets them sleep on.
static RINGS: AtomicBool = AtomicBool::new(false);

/// See [`super::note_rings`].
pub fn note_rings() {
    RINGS.store(true, Relaxed);
}

/// What handlers there are, with ours being that of `ours`, and their signals.
fn handlers(ours: i32) -> (Others, u64) {
    if !(1..=SIGNALS).contains(&ours) || handler::has_previous(ours) {
        return (Others::InTheWay, 0);
    }
    let mut caught = 0;
    for signal in (1..=SIGNALS).filter(|&signal| signal != ours && OF_NO_INTEREST & bit(signal) == 0) {
        let Ok(action) = system_call::action(signal) else { return (Others::InTheWay, 0) };
        // A handler for one time may have run already: its action is the default again, its mask still there.
        if action.handler > 1 || action.flags & SA_RESETHAND != 0 {
            if action.mask & bit(ours) != 0 {
                return (Others::InTheWay, 0);
            }
            caught |= bit(signal);
        }
    }
    (if caught == 0 { Others::None } else { Others::Quiet }, caught)
}

/// See [`super::note_host`].
pub fn note(ours: i32, writes_times: bool) {
    let found = if writes_times { handlers(ours).0 } else { Others::InTheWay };
    BEFORE.fetch_max(found as u8, Relaxed);
}

/// The host's handlers; `blocked`: the mask of the interrupted thread.
#[cold]
#[inline(never)]
pub fn others(ours: i32, blocked: u64) -> Others {
    let before = BEFORE.load(Relaxed);
    if before >= Others::InTheWay as u8 || RINGS.load(Relaxed) {
        return Others::InTheWay;
    }
    let (found, caught) = handlers(ours);
    match system_call::pending_signals() {
        Ok(pending) if pending & (caught | OF_THE_LIBRARY) & !blocked == 0 => {}
        _ => return Others::InTheWay,
    }
    if found == Others::None && before != Others::None as u8 { Others::Quiet } else { found }
}

/// How long a socket's calls wait for something to receive (SO_RCVTIMEO); 0: for ever.
pub fn receive_time_ns(socket: u64) -> Option<u64> {
    system_call::receive_time(socket as i32).ok().map(|time| nanoseconds(time, 1000))
}

/// See [`super::note_coming`].
#[cold]
#[inline(never)]
pub fn note_coming(ticket: Ticket) {
    if let (Some(slot), Some(now)) = (ticket.slot(), now()) {
        slot.looked.came(now);
    }
}

/// This thread, now.
pub fn now() -> Option<Now> {
    Some(Now {
        cpu_ns: system_call::clock(system_call::CLOCK_THREAD_CPUTIME).ok()?,
        at_ns: system_call::clock(system_call::CLOCK_MONOTONIC).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn the_kernels_ucontext_has_the_mask_where_we_read_it() {
        assert_eq!(offset_of!(libc::ucontext_t, uc_sigmask), MASK);
    }

    #[test]
    fn the_clocks_go_on() {
        let first = now().expect("clocks");
        let spent = (0..10_000_000u64).fold(1, |sum: u64, n| core::hint::black_box(sum.wrapping_mul(31) ^ n));
        let second = now().expect("clocks");
        let moved = second.cpu_ns > first.cpu_ns;
        assert!(moved && second.at_ns > first.at_ns, "{spent}");
    }
}
