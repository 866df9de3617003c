//! Threads that must not be signalled while they run, because a signal would kill them. Where the
//! library is preloaded, that is known from the threads' own calls (`interpose/sigaltstack.rs`,
//! `interpose/single_threaded.rs`).
//!
//! A thread excludes itself, also from a signal handler: no lock, no allocation. There is one bit
//! for each possible thread id. The memory is mapped when the first thread needs it. A bit stays
//! when its thread ends: a later thread with the same id is sampled in system calls only, until it
//! removes the reason itself. That is the safe side.
//!
//! A timer that is armed already could raise its signal after the exclusion. So the sampler
//! publishes which thread's timer it is arming ([`unless_excluded`]). A thread that excludes itself
//! waits until that is not its own, disarms its timers, and takes pending signals before it
//! continues.

mod handshake;
pub mod split_stacks;

use crate::atomic::{AtomicU8, AtomicU32};
use std::cell::Cell;
use std::sync::atomic::{
    AtomicBool, AtomicPtr,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;
use swipr_os::{cpu_timers, host_thread, memory, process, timer_delivery};
use swipr_unwind::slot;

/// Thread ids are below this (Linux, PID_MAX_LIMIT).
const TIDS: usize = 1 << 22;
/// Bytes for one reason: a bit per thread id.
const BYTES: usize = TIDS / 8;
const REASONS: usize = 4;
/// How often at most, and how long each time, a thread waits until the sampler has armed its timer.
const WAITS: u32 = 100;
const WAIT: Duration = Duration::from_micros(100);

/// Why a thread must not be signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A signal's frame does not fit on its alternate stack.
    SmallStack,
    /// It may not be allowed to return from a signal handler.
    Sandbox,
    /// Its system calls are not the kernel's.
    ForeignCalls,
    /// It is in fork(2).
    Fork,
}

const ALL: [Reason; REASONS] = [Reason::SmallStack, Reason::Sandbox, Reason::ForeignCalls, Reason::Fork];

/// Those for which the agent makes no system calls on the thread.
const SANDBOXES: u8 = 1 << Reason::Sandbox as u8 | 1 << Reason::ForeignCalls as u8;
/// No reason: the thread was not started by one in a sandbox.
const OUTSIDE_SANDBOX: u8 = 1 << 7;

thread_local! {
    /// The calling thread's own reasons, one bit each, and [`OUTSIDE_SANDBOX`]: known without a
    /// system call, and after a fork.
    static MINE: Cell<u8> = const { Cell::new(0) };
}

static MAP: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
/// There was no memory for the map: no thread is signalled any more.
static NOBODY: AtomicBool = AtomicBool::new(false);
/// A thread has entered a sandbox, or its system calls are emulated. What it starts is there, too.
static ANY_SANDBOX: AtomicBool = AtomicBool::new(false);
/// All threads are in a sandbox, also those that are still to start.
static ALL_IN_SANDBOX: AtomicBool = AtomicBool::new(false);
/// The thread that the sampler is signalling, or whose timer it is arming, right now; else 0.
static ASKED: AtomicU32 = AtomicU32::new(0);

fn map_or_new() -> Option<*mut u8> {
    let known = MAP.load(SeqCst);
    if !known.is_null() {
        return Some(known);
    }
    let new = memory::map_forever(BYTES * REASONS)?;
    match MAP.compare_exchange(std::ptr::null_mut(), new, SeqCst, SeqCst) {
        Ok(_) => Some(new),
        Err(other) => Some(other), // two at once, once: a MiB of addresses is lost
    }
}

fn byte(map: *mut u8, tid: u32, reason: Reason) -> Option<(&'static AtomicU8, u8)> {
    let at = tid as usize / 8;
    // SAFETY: the map has BYTES for each reason, mapped for ever, and is only accessed in this way.
    let byte = (at < BYTES).then(|| unsafe { AtomicU8::from_ptr(map.add(reason as usize * BYTES + at)) })?;
    Some((byte, 1 << (tid % 8)))
}

fn has(tid: u32, reason: Reason) -> bool {
    let map = MAP.load(SeqCst);
    let found = (!map.is_null()).then(|| byte(map, tid, reason)).flatten();
    found.is_some_and(|(byte, bit)| handshake::is_out(byte, bit))
}

fn set(tid: u32, reason: Reason) {
    match map_or_new().and_then(|map| byte(map, tid, reason)) {
        Some((byte, bit)) => handshake::set(byte, bit),
        None => NOBODY.store(true, SeqCst),
    }
}

/// Excludes the calling thread from signals. Returns whether the reason is new. Async-signal-safe.
pub fn add(reason: Reason) -> bool {
    let bit = 1 << reason as u8;
    if MINE.replace(MINE.get() | bit) & bit != 0 {
        return false;
    }
    if SANDBOXES & bit != 0 {
        ANY_SANDBOX.store(true, SeqCst);
    }
    let tid = process::tid();
    set(tid, reason);
    let mut left = 0..WAITS;
    handshake::wait_until_out(&ASKED, tid, || left.next().map(|_| process::sleep(WAIT)).is_some());
    if is_of_timers(reason) {
        slot::timers_of(tid).for_each(cpu_timers::disarm);
    }
    // Any system call: signals that were raised before are taken when it returns.
    process::tid();
    true
}

/// Removes a reason of the calling thread. Async-signal-safe.
pub fn remove(reason: Reason) {
    let bit = 1 << reason as u8;
    let map = MAP.load(SeqCst);
    if MINE.replace(MINE.get() & !bit) & bit != 0
        && !map.is_null()
        && let Some((byte, bit)) = byte(map, process::tid(), reason)
    {
        byte.fetch_and(!bit, SeqCst);
    }
}

/// The calling thread is in no sandbox, until it enters one itself.
pub fn begin_outside_sandbox() {
    MINE.set(MINE.get() | OUTSIDE_SANDBOX);
}

/// Whether the calling thread may be in a sandbox, or its system calls are emulated: the agent may
/// make none on it. Once a thread has entered a sandbox, that may be any that it started. Of a
/// thread without thread-local data nothing is known. Makes no system call itself.
pub fn is_in_sandbox() -> bool {
    if !host_thread::has_thread_data() {
        return true;
    }
    let mine = MINE.get();
    mine & SANDBOXES != 0
        || ALL_IN_SANDBOX.load(Relaxed)
        || mine & OUTSIDE_SANDBOX == 0 && ANY_SANDBOX.load(Relaxed)
}

/// All threads are about to enter a sandbox, or stay out of it after all.
pub fn set_all_in_sandbox(are_in: bool) {
    ALL_IN_SANDBOX.store(are_in, Relaxed);
}

/// Whether a new thread may arm a timer itself: no thread that may have started it was in a
/// sandbox, and it has room for a signal. Makes no system call.
pub fn may_new_threads_arm() -> bool {
    !ANY_SANDBOX.load(SeqCst) && !split_stacks::are_used()
}

/// In the child of a fork, first of all: it is not in fork(2) any more, and its system calls are
/// the kernel's again (prctl(2), PR_SET_SYSCALL_USER_DISPATCH, is not inherited).
pub fn forget_after_fork() {
    MINE.set(MINE.get() & !(1 << Reason::ForeignCalls as u8 | 1 << Reason::Fork as u8));
}

/// In the child of a fork: takes over the reasons of the thread that forked, under the new id.
pub fn inherit() {
    let mine = ALL.into_iter().filter(|&reason| MINE.get() & 1 << reason as u8 != 0);
    mine.for_each(|reason| set(process::tid(), reason));
}

/// Whether a thread's timers must not be armed for that reason. A signal that is raised as a system
/// call returns leaves fork(2) alone.
fn is_of_timers(reason: Reason) -> bool {
    reason != Reason::Fork || !timer_delivery::is_task_work()
}

fn has_any(tid: u32, counts: impl Fn(Reason) -> bool) -> bool {
    let is_listed = || ALL.into_iter().any(|reason| has(tid, reason) && counts(reason));
    NOBODY.load(SeqCst) || split_stacks::are_used() || !MAP.load(SeqCst).is_null() && is_listed()
}

/// Whether a thread's timers must not be armed.
pub fn is_excluded(tid: u32) -> bool {
    has_any(tid, is_of_timers)
}

/// Calls `arm`, which arms a thread's timer; `None`: the thread is excluded.
pub fn unless_excluded<T>(tid: u32, arm: impl FnOnce() -> T) -> Option<T> {
    handshake::ask(&ASKED, tid, || is_excluded(tid), arm)
}

/// The same for `send`, which signals the thread, whatever it does.
pub fn unless_excluded_from_signals<T>(tid: u32, send: impl FnOnce() -> T) -> Option<T> {
    handshake::ask(&ASKED, tid, || has_any(tid, |_| true), send)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next thread's id may be another test's.
    const NOBODYS: u32 = 1 << 22;

    #[test]
    fn a_thread_that_took_itself_out_is_not_asked_until_it_says_otherwise() {
        std::thread::spawn(|| {
            let tid = process::tid();
            assert_eq!(unless_excluded(tid, || 1), Some(1));
            assert!(add(Reason::SmallStack) && !add(Reason::SmallStack));
            assert!(add(Reason::Sandbox));
            assert_eq!(unless_excluded(tid, || 1), None);
            remove(Reason::SmallStack);
            assert!(is_excluded(tid) && !is_excluded(NOBODYS));
            remove(Reason::Sandbox);
            assert_eq!(unless_excluded(tid, || 1), Some(1));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_in_a_sandbox_knows_it() {
        begin_outside_sandbox();
        assert!(!is_in_sandbox());
        add(Reason::Sandbox);
        assert!(is_in_sandbox());
        remove(Reason::Sandbox);
        assert!(!is_in_sandbox());
    }

    #[test]
    fn an_id_that_cannot_be_is_nobodys() {
        add(Reason::SmallStack);
        assert!(!is_excluded(u32::MAX));
        remove(Reason::SmallStack);
    }
}
