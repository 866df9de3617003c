//! The ways to interrupt a running thread whose held times are compared: a signal number each, so
//! that no handler has to find out which one it is.

use crate::asking::{self, Handler, Stack};
use crate::peers::{self, Buffer, Framehop};
use crate::target::Target;
use crate::walking::{self, Timed};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::*};
use swipr::mappings::Tables;
use swipr_os::{process, signals};
use swipr_unwind::memory;
use swipr_unwind::slot::{self, Ticket};

/// What a signal's handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Nothing: an empty handler, the least that an interruption costs.
    Bare,
    /// Nothing, but the signal carries a value as ours does.
    BareQueued,
    /// swipr's handler, as in the product: slot, walk, frames.
    Swipr,
    /// `unw_backtrace` of libunwind.
    UnwBacktrace,
    /// The `backtrace` crate.
    BacktraceCrate,
    /// `unw_step` of libunwind.
    UnwStep,
    /// framehop, with a cache that does not allocate.
    Framehop,
    /// pprof-rs's own handler.
    Pprof,
    /// gperftools' own handler.
    Gperftools,
}

static PPROF_SIGNAL: OnceLock<Option<i32>> = OnceLock::new();
static GPERFTOOLS_SIGNAL: OnceLock<Option<i32>> = OnceLock::new();

impl Method {
    /// All that can be measured here.
    pub fn available() -> Vec<Method> {
        let own = [Method::Bare, Method::BareQueued, Method::Swipr, Method::Framehop, Method::BacktraceCrate];
        let libunwind = [Method::UnwBacktrace, Method::UnwStep];
        let handlers = [(Method::Pprof, &PPROF_SIGNAL), (Method::Gperftools, &GPERFTOOLS_SIGNAL)];
        let handlers = handlers.into_iter().filter(|(_, signal)| signal.get().is_some_and(Option::is_some));
        let mut methods = own.to_vec();
        methods.extend(libunwind.into_iter().filter(|_| peers::libunwind().is_some()));
        methods.extend(handlers.map(|(method, _)| method));
        methods
    }

    /// What it is called in the table.
    pub fn name(self) -> &'static str {
        match self {
            Method::Bare => "bare signal",
            Method::BareQueued => "bare signal with a value",
            Method::Swipr => "swipr",
            Method::UnwBacktrace => "libunwind `unw_backtrace`",
            Method::BacktraceCrate => "`backtrace` crate",
            Method::UnwStep => "libunwind `unw_step`",
            Method::Framehop => "framehop",
            Method::Pprof => "pprof-rs, its handler",
            Method::Gperftools => "gperftools, its handler",
        }
    }

    /// Whether its handler runs on the alternate stack: that of whole profilers does not.
    pub fn uses_signal_stack(self) -> bool {
        !matches!(self, Method::Pprof | Method::Gperftools)
    }

    fn signal(self) -> i32 {
        let installed = |place: &OnceLock<Option<i32>>| place.get().copied().flatten().unwrap_or(0);
        match self {
            Method::Pprof => installed(&PPROF_SIGNAL),
            Method::Gperftools => installed(&GPERFTOOLS_SIGNAL),
            Method::Swipr => signals::SAMPLING,
            _ => libc::SIGRTMIN() + 2 + self as i32,
        }
    }

    fn peer(self) -> Option<Handler> {
        match self {
            Method::Bare | Method::BareQueued => Some(empty),
            Method::Swipr | Method::Pprof | Method::Gperftools => None,
            Method::Framehop => Some(framehop),
            Method::UnwBacktrace => Some(unw_backtrace),
            Method::BacktraceCrate => Some(backtrace_crate),
            Method::UnwStep => Some(unw_step),
        }
    }
}

static BUFFER: Buffer = Buffer::new();
static PC: AtomicU64 = AtomicU64::new(0);
static TIMED: Timed = Timed::new();
static LOW: AtomicU64 = AtomicU64::new(0);
static HIGH: AtomicU64 = AtomicU64::new(0);
static FRAMEHOP: OnceLock<Framehop> = OnceLock::new();

unsafe extern "C" fn empty(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

unsafe extern "C" fn backtrace_crate(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    PC.store(walking::interrupted_pc(context as u64), Relaxed);
    // SAFETY: one thread is interrupted, one signal at a time.
    unsafe { BUFFER.fill(peers::by_backtrace_crate) };
}

unsafe extern "C" fn unw_backtrace(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    PC.store(walking::interrupted_pc(context as u64), Relaxed);
    if let Some(libunwind) = peers::libunwind() {
        // SAFETY: one thread is interrupted, one signal at a time.
        unsafe { BUFFER.fill(|frames| libunwind.backtrace(frames)) };
    }
}

unsafe extern "C" fn unw_step(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    PC.store(walking::interrupted_pc(context as u64), Relaxed);
    if let Some(libunwind) = peers::libunwind() {
        // SAFETY: one thread is interrupted, one signal at a time; the context is this handler's.
        unsafe { BUFFER.fill(|frames| libunwind.step(context, frames)) };
    }
}

unsafe extern "C" fn framehop(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if let (Some(framehop), Some(start)) = (FRAMEHOP.get(), walking::interrupted(context as u64)) {
        PC.store(start.pc, Relaxed);
        let (low, high) = (LOW.load(Relaxed), HIGH.load(Relaxed));
        // SAFETY: one thread is interrupted, one signal at a time; the bounds are the target's.
        unsafe { BUFFER.fill(|frames| framehop.walk(start, low, high, frames)) };
    }
}

unsafe extern "C" fn walk_alone(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's context; the bounds are the target's; the tables stay while there is a
    // `Bench`.
    unsafe { TIMED.measure(context as u64, LOW.load(Relaxed), HIGH.load(Relaxed)) };
}

/// One interruption.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// How long the thread was kept from running, nanoseconds.
    pub held_ns: f64,
    /// Frames from the interrupted function on; 0 for bare signals.
    pub frames: usize,
}

/// Handlers and tables, ready.
#[derive(Debug)]
pub struct Bench {
    _tables: Tables,
    nobody: Ticket,
}

/// glibc uses the signal from the first thread on that it makes.
fn install_handler() -> io::Result<()> {
    std::thread::spawn(signals::install).join().map_err(|_| io::Error::other("the thread panicked"))?
}

impl Bench {
    /// Installs all handlers and builds the tables.
    pub fn new() -> io::Result<Bench> {
        peers::warm_up();
        FRAMEHOP.get_or_init(Framehop::of_loaded_objects);
        GPERFTOOLS_SIGNAL.get_or_init(peers::hold_gperftools_handler);
        PPROF_SIGNAL.get_or_init(peers::hold_pprof_handler);
        memory::set_process(process::pid() as i32);
        let mut tables = Tables::new(-1);
        tables.refresh();
        for method in Method::available() {
            match method.peer() {
                Some(handler) => asking::install(method.signal(), handler, Stack::Alternate)?,
                None if method == Method::Swipr => install_handler()?,
                None => {}
            }
        }
        asking::install(walk_signal(), walk_alone, Stack::Alternate)?;
        Ok(Bench { _tables: tables, nobody: asking::ticket_of_nobody()? })
    }

    /// Interrupts the target once; `None` if something else interrupted it too.
    pub fn sample(&self, target: &Target, method: Method) -> io::Result<Option<Sample>> {
        let (tid, signal) = (target.tid, method.signal());
        LOW.store(target.bounds.low, Relaxed);
        HIGH.store(target.bounds.high, Relaxed);
        match method {
            Method::Swipr => {
                let ticket = asking::lend(target.bounds)?;
                let held = target.held(|| asking::ask(tid, signal, ticket));
                let frames = answered_frames(ticket);
                Ok(held.zip(frames).map(|(held, frames)| Sample { held_ns: held.ns, frames }))
            }
            Method::Bare | Method::Pprof | Method::Gperftools => {
                let held = target.held(|| asking::send(tid, signal));
                Ok(held.map(|held| Sample { held_ns: held.ns, frames: 0 }))
            }
            Method::BareQueued => {
                let held = target.held(|| asking::ask(tid, signal, self.nobody));
                Ok(held.map(|held| Sample { held_ns: held.ns, frames: 0 }))
            }
            _ => {
                let held = target.held(|| asking::send(tid, signal));
                // SAFETY: the target is running again, so its handler has returned.
                let frames = held.map(|_| unsafe { BUFFER.stack(PC.load(Relaxed)) }.len());
                Ok(held.zip(frames).map(|(held, frames)| Sample { held_ns: held.ns, frames }))
            }
        }
    }

    /// Ticks of a first and of a warm walk alone, and their frames.
    pub fn walk_alone(&self, target: &Target) -> Option<(u64, u64, u64)> {
        LOW.store(target.bounds.low, Relaxed);
        HIGH.store(target.bounds.high, Relaxed);
        target.held(|| asking::send(target.tid, walk_signal()))?;
        Some((TIMED.first.load(Relaxed), TIMED.warm.load(Relaxed), TIMED.total.load(Relaxed)))
    }
}

fn walk_signal() -> i32 {
    libc::SIGRTMIN() + 1
}

/// The frames of an answered slot, which is given back; an unanswered one is taken back.
fn answered_frames(ticket: Ticket) -> Option<usize> {
    if !slot::is_done(ticket) {
        slot::release(ticket);
        return None;
    }
    let frames = ticket.slot().map(|slot| slot.total.load(Relaxed) as usize);
    slot::release(ticket);
    frames
}
