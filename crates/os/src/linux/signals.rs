//! Which signal makes a running thread leave its stack, and its handler.

use super::{process, threads::TaskDirectory};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::io;
use std::time::Duration;
use swipr_unwind::handler;

/// Signals to try, in this order: those that are ignored by default and mean little. A signal of
/// the agent's may still be pending when the program executes another one, or resets all its
/// handlers. It must not kill it, as real-time signals and SIGPROF would. Debuggers pass SIGURG
/// quietly.
const CANDIDATES: [i32; 2] = [libc::SIGURG, libc::SIGWINCH];

/// What is chosen in nearly every program.
pub const FIRST_CHOICE: i32 = CANDIDATES[0];

/// Whether the signal does nothing to a program that does not know it.
pub fn is_ignored_by_default(signal: i32) -> bool {
    CANDIDATES.contains(&signal)
}

/// How often the threads that block a candidate are read again.
const LOOKS_AT_BLOCKED: u32 = 5;

/// What all threads together do with signals, one bit a signal, from `/proc/self/task/*/status`.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    caught: u64,
    blocked: u64,
}

fn uses() -> Uses {
    let mut tids = vec![];
    if let Ok(directory) = TaskDirectory::open() {
        let _ = directory.list(&mut tids);
    }
    // A thousand threads are enough: a signal is usually blocked by all workers of a kind.
    let tids = tids.into_iter().filter(|&tid| !crate::own_threads::contains(tid)).take(1000);
    let mut threads: Vec<(u32, Uses)> = tids.map(|tid| (tid, uses_of(tid))).collect();
    // A thread of the agent that is just starting blocks all signals, and is not registered yet.
    for (tid, uses) in threads.iter_mut().filter(|(_, uses)| uses.blocked & candidate_bits() != 0) {
        if crate::own_threads::has_agent_name(&super::threads::name(*tid)) {
            uses.blocked = 0;
        }
    }
    // raise(3), pthread_create(3) and others block all signals for a moment: that does not count.
    for _ in 0..LOOKS_AT_BLOCKED {
        let mut blocking =
            threads.iter_mut().filter(|(_, uses)| uses.blocked & candidate_bits() != 0).peekable();
        if blocking.peek().is_none() {
            break;
        }
        process::sleep(Duration::from_millis(1));
        blocking.for_each(|(tid, uses)| uses.blocked &= uses_of(*tid).blocked);
    }
    threads.iter().fold(Uses::default(), |all, (_, uses)| Uses {
        caught: all.caught | uses.caught,
        blocked: all.blocked | uses.blocked,
    })
}

fn uses_of(tid: u32) -> Uses {
    let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap_or_default();
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
    };
    Uses { caught: mask("SigCgt:"), blocked: mask("SigBlk:") }
}

fn candidate_bits() -> u64 {
    CANDIDATES.iter().fold(0, |bits, signal| bits | 1 << (signal - 1))
}

fn current_action(signal: i32) -> Option<libc::sigaction> {
    // SAFETY: sigaction is plain data, and the call only writes it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &mut action) == 0).then_some(action)
    }
}

/// Chooses the first candidate that fits, by these preferences:
/// 1. it has its default action, and no thread blocks it;
/// 2. it has its default action: a thread may block it for a moment only, as raise(3) does;
/// 3. no thread blocks it: the host's handler gets the signals that are not the agent's;
/// 4. SIGURG.
fn choose() -> i32 {
    let uses = uses();
    let bit = |mask: u64, signal: i32| mask >> (signal - 1) & 1 == 1;
    let is_default = |signal: i32| {
        current_action(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL)
            && !bit(uses.caught, signal)
    };
    let is_free = |signal: i32| !bit(uses.blocked, signal);
    let first = |suits: &dyn Fn(i32) -> bool| CANDIDATES.into_iter().find(|&signal| suits(signal));
    first(&|signal| is_default(signal) && is_free(signal))
        .or_else(|| first(&is_default))
        .or_else(|| first(&is_free))
        .unwrap_or(libc::SIGURG)
}

/// Whether some thread blocks the signal, and not for a moment only.
pub fn is_blocked_by_some(signal: i32) -> bool {
    uses().blocked >> (signal - 1) & 1 == 1
}

/// Chooses a signal (`wanted`: the user's choice) and installs the agent's handler in front of the
/// host's. It stays for ever: a late signal must not meet a default action.
pub fn install(wanted: Option<i32>) -> io::Result<i32> {
    let signal = wanted.unwrap_or_else(choose);
    let before = current_action(signal).ok_or_else(io::Error::last_os_error)?;
    let ours = handler::on_signal as *const () as usize;
    if before.sa_sigaction == ours {
        return Ok(signal);
    }
    let is_handler = before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN;
    handler::set_previous(
        signal,
        if is_handler { before.sa_sigaction } else { 0 },
        before.sa_flags & libc::SA_SIGINFO != 0,
    );
    // SAFETY: plain data; the handler has SA_SIGINFO's signature and is async-signal-safe.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ours;
        // Without optimization the handler needs more stack, by some KiB, than Rust's alternate
        // stacks have.
        let on_stack = if cfg!(debug_assertions) { 0 } else { libc::SA_ONSTACK };
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | on_stack;
        // All signals, while the handler runs. Not by sigfillset(3): glibc leaves out the two that
        // it uses itself, for cancellation and setuid(2). Their handlers would run on top of this
        // one.
        (&raw mut action.sa_mask).write_bytes(0xff, 1);
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    if result == 0 { Ok(signal) } else { Err(io::Error::last_os_error()) }
}

/// Whether the agent's handler is still the one for `signal`.
pub fn is_installed(signal: i32) -> bool {
    current_action(signal)
        .is_some_and(|action| action.sa_sigaction == handler::on_signal as *const () as usize)
}

fn change_mask(how: libc::c_int, signal: i32) -> Option<libc::sigset_t> {
    // SAFETY: plain data; changes this thread's own mask.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        (libc::pthread_sigmask(how, &set, &mut before) == 0).then_some(before)
    }
}

/// Blocks a signal in the calling thread; `true` if it was not blocked before.
pub fn block(signal: i32) -> bool {
    // SAFETY: `before` is a valid set.
    change_mask(libc::SIG_BLOCK, signal)
        .is_some_and(|before| unsafe { libc::sigismember(&before, signal) } == 0)
}

/// Unblocks a signal in the calling thread.
pub fn unblock(signal: i32) {
    change_mask(libc::SIG_UNBLOCK, signal);
}

/// Unblocks a signal in the calling thread, unless the program uses it: it has a handler of its
/// own, or one is pending. `true`: it was blocked before, and is not now.
pub fn unblock_unless_used(signal: i32) -> bool {
    // SAFETY: plain data, which is written before it is read; nothing is changed.
    let is_free = unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask) == 0
            && libc::sigismember(&mask, signal) == 1
            && libc::sigpending(&mut pending) == 0
            && libc::sigismember(&pending, signal) == 0
    };
    let is_free = is_free
        && current_action(signal).is_some_and(|action| {
            action.sa_sigaction == libc::SIG_DFL
                || action.sa_sigaction == handler::on_signal as *const () as usize
        })
        && !handler::has_previous(signal);
    if is_free {
        unblock(signal);
    }
    is_free
}

/// Runs `start` (which starts a thread) with all signals blocked that can be, so that the
/// new thread never takes a signal that is meant for the host.
pub fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = SigSet::all();
    for synchronous in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP] {
        all.remove(synchronous);
    }
    let before = all.thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let result = start();
    let _ = before.and_then(|before| before.thread_set_mask());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: glibc's own two signals, 32 and 33, ran their handlers on the small stack of the
    /// rarer steps of a walk.
    #[test]
    fn no_signal_at_all_interrupts_the_handler() {
        install(Some(libc::SIGURG)).unwrap();
        let action = current_action(libc::SIGURG).unwrap();
        // SAFETY: the first 64 signals are the set's first 64 bits.
        let mask = unsafe { (&raw const action.sa_mask).cast::<u64>().read() };
        let cannot_be_blocked = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
        assert_eq!(mask | cannot_be_blocked, u64::MAX);
    }

    #[test]
    fn no_candidate_kills_by_default() {
        assert!(CANDIDATES.iter().all(|signal| [libc::SIGURG, libc::SIGWINCH].contains(signal)));
        assert!(CANDIDATES.contains(&choose()));
    }
}
