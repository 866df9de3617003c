//! One interruption of a thread of the host: swipr's own handler first, then its peers, on the same stack.

use crate::asking;
use crate::comparison::TIMES;
use crate::peers::{self, Buffer, Framehop};
use crate::ticks;
use crate::walking::{self, Timed};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};
use swipr::platform::process;
use swipr_unwind::slot::{self, StackBounds, Ticket};
use swipr_unwind::walk::Stop;
use swipr_unwind::{frames, handler, memory};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

const IDLE: u64 = 0;
const ASKED: u64 = 1;
const WALKING: u64 = 2;
const ANSWERED: u64 = 3;

/// Idle, asked, walking, answered. The handler that finds it asked has the buffers for itself until it
/// says answered (released to the acquire of who waits).
static STATE: AtomicU64 = AtomicU64::new(IDLE);
static LOW: AtomicU64 = AtomicU64::new(0);
static HIGH: AtomicU64 = AtomicU64::new(0);
static PC: AtomicU64 = AtomicU64::new(0);
static TICKS: [AtomicU64; TIMES.len()] = [const { AtomicU64::new(0) }; TIMES.len()];
static LIBGCC: Buffer = Buffer::new();
static OTHERS: Buffer = Buffer::new();
static TIMED: Timed = Timed::new();
static FRAMEHOP: AtomicPtr<Framehop> = AtomicPtr::new(std::ptr::null_mut());

/// Two stacks of one moment.
#[derive(Debug)]
pub struct Answer {
    /// Ours, as far as kept.
    pub frames: Vec<u64>,
    /// All frames of ours.
    pub total: usize,
    /// Why ours ended.
    pub stop: Stop,
    /// libgcc's.
    pub libgcc: Vec<u64>,
    /// The stack pointer.
    pub sp: u64,
    /// What each of [`TIMES`] took; 0: not measured.
    pub ticks: [u64; TIMES.len()],
}

/// Proof that the handler is installed.
#[derive(Debug)]
pub struct Interrupter {
    signal: i32,
}

impl Interrupter {
    /// Warms the peers up and installs the handler.
    pub fn new() -> io::Result<Interrupter> {
        peers::warm_up();
        memory::set_process(process::pid() as i32);
        let signal = libc::SIGRTMAX() - 3;
        asking::install(signal, on_signal)?;
        Ok(Interrupter { signal })
    }

    /// Lets framehop learn of the objects that are loaded now. Its unwinder before is never freed.
    pub fn objects_changed(&self) {
        FRAMEHOP.store(Box::into_raw(Box::new(Framehop::of_loaded_objects())), Release);
    }

    /// Interrupts a thread whose stack is `bounds`. `None`: no answer in time.
    pub fn take(&self, tid: u32, bounds: StackBounds) -> Option<Answer> {
        if STATE.load(Acquire) != IDLE {
            return None; // an earlier handler never ended
        }
        let ticket = asking::lend(bounds).ok()?;
        LOW.store(bounds.low, Relaxed);
        HIGH.store(bounds.high, Relaxed);
        STATE.store(ASKED, Release);
        asking::ask(tid, self.signal, ticket);
        let asked = Instant::now();
        while STATE.load(Acquire) != ANSWERED {
            if asked.elapsed() > PATIENCE {
                if STATE.compare_exchange(ASKED, IDLE, AcqRel, Relaxed).is_ok() {
                    slot::revoke(ticket);
                }
                return None;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        let answer = self.answer(ticket);
        STATE.store(IDLE, Release);
        answer
    }

    /// The answer; `None` if it was a late one to an earlier question.
    fn answer(&self, ticket: Ticket) -> Option<Answer> {
        if slot::revoke(ticket) {
            return None;
        }
        let slot = ticket.slot().filter(|_| slot::is_done(ticket))?;
        let total = slot.total.load(Relaxed) as usize;
        let answer = Answer {
            frames: frames::kept(&slot.frames, total).collect(),
            total,
            stop: Stop::from_number(slot.stop.load(Relaxed)),
            // SAFETY: answered, so no handler fills the buffer.
            libgcc: unsafe { LIBGCC.stack(PC.load(Relaxed)) },
            sp: slot.sp.load(Relaxed),
            ticks: std::array::from_fn(|n| TICKS.get(n).map_or(0, |ticks| ticks.load(Relaxed))),
        };
        slot::release(ticket);
        Some(answer)
    }
}

unsafe extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if STATE.compare_exchange(ASKED, WALKING, AcqRel, Relaxed).is_err() {
        return; // too late: given up
    }
    swipr::platform::errno::kept(|| {
        // SAFETY: all of it comes from the kernel; a `siginfo_t` begins with a `QueuedSignal`.
        let first = ticks_of(|| unsafe { handler::on_signal(signal, info.cast(), context) });
        PC.store(walking::interrupted_pc(context as u64), Relaxed);
        // SAFETY: this handler is the only one that walks (see STATE); the tables are refreshed between questions only.
        unsafe { TIMED.measure(context as u64, LOW.load(Relaxed), HIGH.load(Relaxed)) };
        let (low, high) = (LOW.load(Relaxed), HIGH.load(Relaxed));
        let framehop = FRAMEHOP.load(Acquire);
        let start = walking::interrupted(context as u64);
        // SAFETY: as above; an unwinder that was given is never freed.
        let hop = start.zip(unsafe { framehop.as_ref() }).map_or(0, |(start, framehop)| {
            // SAFETY: as above; the interrupted thread stands on that stack.
            warm_ticks_of(|| unsafe { OTHERS.fill(|frames| framehop.walk(start, low, high, frames)) })
        });
        // SAFETY: as above.
        let libgcc = warm_ticks_of(|| unsafe { LIBGCC.fill(peers::by_backtrace_crate) });
        let (mut fast, mut step) = (0, 0);
        if let Some(libunwind) = peers::libunwind() {
            // SAFETY: as above.
            fast = warm_ticks_of(|| unsafe { OTHERS.fill(|frames| libunwind.backtrace(frames)) });
            // SAFETY: as above; the context is this handler's.
            step = warm_ticks_of(|| unsafe { OTHERS.fill(|frames| libunwind.step(context, frames)) });
        }
        let times = [first, TIMED.warm.load(Relaxed), hop, fast, libgcc, step];
        TICKS.iter().zip(times).for_each(|(place, ticks)| place.store(ticks, Relaxed));
    });
    STATE.store(ANSWERED, Release);
}

/// Of a second time.
fn warm_ticks_of(mut action: impl FnMut()) -> u64 {
    action();
    ticks_of(action)
}

fn ticks_of(action: impl FnOnce()) -> u64 {
    let started = ticks::now();
    action();
    ticks::now().wrapping_sub(started)
}
