//! Which signal makes a running thread leave its stack, and its handler.
//!
//! It is one of the C library's own: number 33, by which glibc's setuid(3) reaches all threads.
//! glibc leaves it out of every mask, refuses to change or show its action, and never waits for it.
//! So a program cannot block, receive, handle or see the agent's signal, unless it makes system
//! calls of its own. glibc's handler is there before the agent's: the first pthread_create(3)
//! installs it. It ignores what is not from tgkill(2). The agent's handler passes on to it what is
//! not from the agent's timers.
//!
//! The default action of 33 ends a program. A pending signal of a timer does not survive execve(2):
//! the kernel drops those that have `SI_TIMER`. Reasons: `docs/decisions/0006-the-signal.md`.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::ffi::c_ulong;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use swipr_unwind::handler;

/// The signal: `SIGSETXID` of glibc's `internal-signals.h`.
pub const SAMPLING: i32 = 33;
/// Linux has so many.
const SIGNALS: i32 = 64;
/// SIGKILL and SIGSTOP, in a set.
const CANNOT_BE_BLOCKED: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
/// Of Linux' asm/signal.h: `restorer` counts.
const SA_RESTORER: c_ulong = 0x0400_0000;

/// The kernel's `struct sigaction`: glibc's sigaction(3) does not take its own signals.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Action {
    handler: usize,
    flags: c_ulong,
    /// What a handler returns to. The C library's; aarch64 has none.
    restorer: usize,
    mask: u64,
}

/// Two threads have the same alternate stack: the handler runs on none.
static LEAVES_ALTERNATE_STACKS: AtomicBool = AtomicBool::new(false);

/// Where the handler runs. Without optimization it needs more stack, by some KiB, than Rust's
/// alternate stacks have.
fn on_stack() -> c_ulong {
    let leaves = cfg!(debug_assertions) || LEAVES_ALTERNATE_STACKS.load(SeqCst);
    if leaves { 0 } else { libc::SA_ONSTACK as c_ulong }
}

/// From now on the handler runs on no alternate stack. Async-signal-safe.
pub fn leave_alternate_stacks() {
    if !LEAVES_ALTERNATE_STACKS.swap(true, SeqCst)
        && let Ok(before) = action(None)
        && before.is_ours()
    {
        _ = action(Some(&Action { flags: before.flags & !(libc::SA_ONSTACK as c_ulong), ..before }));
    }
}

impl Action {
    fn has_handler(self) -> bool {
        ![libc::SIG_DFL, libc::SIG_IGN].contains(&self.handler)
    }

    fn is_ours(self) -> bool {
        self.handler == handler::on_signal as *const () as usize
    }

    /// That of another copy of the agent in this process: the C library's blocks no signals. Each
    /// would hand the C library's signals on to the other, for ever.
    fn is_of_another_agent(self) -> bool {
        self.mask | CANNOT_BE_BLOCKED == u64::MAX
    }

    /// Ours, on the stacks on which it is to run.
    fn is_as_wanted(self) -> bool {
        self.is_ours() && self.flags & libc::SA_ONSTACK as c_ulong == on_stack()
    }
}

/// A signal's action; `new`: another one from now on (rt_sigaction(2)).
fn action_of(signal: i32, new: Option<&Action>) -> io::Result<Action> {
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    let mut old = Action::default();
    // SAFETY: the kernel reads one action or none, and writes one; a set is 8 bytes.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, &raw mut old, size_of::<u64>()) };
    if result == 0 { Ok(old) } else { Err(io::Error::last_os_error()) }
}

/// The action of the signal that the agent uses.
fn action(new: Option<&Action>) -> io::Result<Action> {
    action_of(SAMPLING, new)
}

/// Whether a signal's handler begins at this address.
pub fn is_handler(address: u64) -> bool {
    (1..=SIGNALS).filter_map(|signal| action_of(signal, None).ok()).any(|one| one.handler as u64 == address)
}

/// Installs the agent's handler in front of the C library's. It stays for ever: a late signal must
/// not meet a default action.
pub fn install() -> io::Result<()> {
    let before = action(None)?;
    if before.is_ours() {
        let flags = before.flags & !(libc::SA_ONSTACK as c_ulong) | on_stack();
        return action(Some(&Action { flags, ..before })).map(|_| ());
    }
    if before.is_of_another_agent() {
        return Err(io::Error::other("another copy of swipr in this process has recorded it"));
    }
    if !before.has_handler() {
        return Err(io::Error::other("the C library does not use signal 33, so it is not glibc"));
    }
    handler::set_previous(before.handler, before.flags & libc::SA_SIGINFO as c_ulong != 0);
    let flags = libc::SA_SIGINFO | libc::SA_RESTART;
    let ours = Action {
        handler: handler::on_signal as *const () as usize,
        flags: flags as c_ulong | on_stack() | before.flags & SA_RESTORER,
        restorer: before.restorer,
        // All signals, while the handler runs: also the two that glibc uses itself.
        mask: u64::MAX,
    };
    action(Some(&ours)).map(|_| ())
}

/// Whether the agent's handler is there.
pub fn is_installed() -> bool {
    action(None).is_ok_and(Action::is_as_wanted)
}

/// Has a thread of the agent return from the system call in which it waits
/// (rt_tgsigqueueinfo(2)). glibc lets no thread block this signal, and its handler leaves alone
/// what has this code. The agent's handler passes it on.
pub fn interrupt(tid: u32) {
    // SAFETY: zeroes are a valid siginfo.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    (info.si_signo, info.si_code) = (SAMPLING, libc::SI_QUEUE);
    // SAFETY: the kernel reads a siginfo. A process may send itself any code.
    unsafe {
        libc::syscall(libc::SYS_rt_tgsigqueueinfo, super::process::pid(), tid, SAMPLING, &raw const info)
    };
}

/// Whether the calling thread runs on its alternate stack.
pub fn is_on_alternate_stack() -> bool {
    // SAFETY: zeroes are a valid stack_t.
    let mut stack: libc::stack_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one; nothing is changed.
    let result = unsafe { libc::syscall(libc::SYS_sigaltstack, 0, &raw mut stack) };
    result == 0 && stack.ss_flags & libc::SS_ONSTACK != 0
}

/// What an instruction or a system call raises: blocked, it would end the process. A program may
/// handle its own, as collectors do that protect memory, also in what fork(2) calls.
const SYNCHRONOUS: [Signal; 6] =
    [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGSYS];

/// Which signals the calling thread blocks, a bit each; `with`: these from now on
/// (rt_sigprocmask(2)).
pub fn mask(with: Option<u64>) -> u64 {
    let new = with.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mut before = 0;
    // SAFETY: the kernel reads one set or none, and writes one; a set is 8 bytes.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, new, &raw mut before, size_of::<u64>())
    };
    before
}

/// On a thread of the agent: blocks those that its own instructions do not raise. The program may
/// have blocked one and wait for it. A filter of the program's, now or later, may have system calls
/// trapped.
pub fn block_synchronous() {
    let mut synchronous = SigSet::from_iter(SYNCHRONOUS);
    synchronous.remove(Signal::SIGSYS);
    let _ = synchronous.thread_block();
}

/// Runs `body` with all signals blocked that can be. A thread that it starts never takes a signal
/// that is meant for the host.
pub fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    with_blocked(&[], body)
}

/// Runs `fork`, which no handler interrupts. By which users and supervisors end programs, they
/// still do, if it has no handler.
pub fn with_handlers_blocked<T>(fork: impl FnOnce() -> T) -> T {
    const ENDING: [Signal; 4] = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];
    let ends = |signal: &Signal| action_of(*signal as i32, None).is_ok_and(|it| it.handler == libc::SIG_DFL);
    with_blocked(&ENDING.map(|signal| ends(&signal).then_some(signal)), fork)
}

fn with_blocked<T>(others: &[Option<Signal>], body: impl FnOnce() -> T) -> T {
    let mut all = SigSet::all();
    others.iter().flatten().chain(&SYNCHRONOUS).for_each(|signal| all.remove(*signal));
    let before = all.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let result = body();
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
        std::thread::spawn(install).join().unwrap().unwrap();
        assert_eq!(action(None).unwrap().mask | CANNOT_BE_BLOCKED, u64::MAX);
        assert!(is_installed());
    }

    #[test]
    fn the_signal_is_one_that_a_program_cannot_block() {
        let blocks_all = || {
            SigSet::all().thread_block().unwrap();
            crate::threads::signal_state(crate::process::tid()).unwrap().is_blocked
        };
        assert!(!std::thread::spawn(blocks_all).join().unwrap());
    }
}
