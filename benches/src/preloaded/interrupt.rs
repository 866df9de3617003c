//! One interruption of a thread of the host: swipr's own handler first, then its peers, on the same
//! stack.

use crate::asking::{self, Stack};
use crate::comparison::WAYS;
use crate::peers::{self, Buffer, Framehop};
use crate::ticks;
use crate::walking::{self, Timed};
use std::io;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use std::time::{Duration, Instant};
use swipr_os::process;
use swipr_unwind::slot::{self, StackBounds, Ticket};
use swipr_unwind::walk::Stop;
use swipr_unwind::{frames, handler, memory};

/// How long an answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(2);

const IDLE: u64 = 0;
const ASKED: u64 = 1;
const WALKING: u64 = 2;
const ANSWERED: u64 = 3;

/// Idle, asked, walking, answered. The handler that finds ASKED has the buffers for itself until it
/// stores ANSWERED (release; the waiting thread acquires it).
static STATE: AtomicU64 = AtomicU64::new(IDLE);
static LOW: AtomicU64 = AtomicU64::new(0);
static HIGH: AtomicU64 = AtomicU64::new(0);
static PC: AtomicU64 = AtomicU64::new(0);
static TURN: AtomicU64 = AtomicU64::new(0);
static FIRST: [AtomicU64; WAYS.len()] = [const { AtomicU64::new(0) }; WAYS.len()];
static WARM: [AtomicU64; WAYS.len()] = [const { AtomicU64::new(0) }; WAYS.len()];
static LIBGCC: Buffer = Buffer::new();
static OTHERS: Buffer = Buffer::new();
static TIMED: Timed = Timed::new();
static FRAMEHOP: AtomicPtr<Framehop> = AtomicPtr::new(std::ptr::null_mut());

/// Two stacks of one moment.
#[derive(Debug)]
pub struct Answer {
    /// swipr's, as far as kept.
    pub frames: Vec<u64>,
    /// All frames of swipr's stack.
    pub total: usize,
    /// Why swipr's walk ended.
    pub stop: Stop,
    /// libgcc's.
    pub libgcc: Vec<u64>,
    /// The stack pointer, and the one to the thread's control block.
    pub sp: u64,
    /// See `sp`.
    pub thread_pointer: u64,
    /// What the one of [`WAYS`] that was the first took; 0: the others.
    pub first: [u64; WAYS.len()],
    /// What each of [`WAYS`] took when all had walked before.
    pub warm: [u64; WAYS.len()],
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
        asking::install(signal, on_signal, Stack::Interrupted)?;
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
            if asked.elapsed() > TIMEOUT {
                if STATE.compare_exchange(ASKED, IDLE, AcqRel, Relaxed).is_ok() {
                    slot::release(ticket);
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
        let Some(slot) = ticket.slot().filter(|_| slot::is_done(ticket)) else {
            slot::release(ticket);
            return None;
        };
        let total = slot.total.load(Relaxed) as usize;
        let answer = Answer {
            frames: frames::kept(&slot.frames, total).collect(),
            total,
            stop: Stop::from_number(slot.stop.load(Relaxed)),
            // SAFETY: answered, so no handler fills the buffer.
            libgcc: unsafe { LIBGCC.stack(PC.load(Relaxed)) },
            sp: slot.sp.load(Relaxed),
            thread_pointer: slot.thread_pointer.load(Relaxed),
            first: FIRST.each_ref().map(|ticks| ticks.load(Relaxed)),
            warm: WARM.each_ref().map(|ticks| ticks.load(Relaxed)),
        };
        slot::release(ticket);
        Some(answer)
    }
}

unsafe extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if STATE.compare_exchange(ASKED, WALKING, AcqRel, Relaxed).is_err() {
        return; // too late: given up
    }
    swipr_os::host_thread::kept(|| {
        // SAFETY: this handler is the only one that walks (see STATE); the tables are refreshed
        // between questions only.
        unsafe { walk_all(signal, info, context) };
    });
    STATE.store(ANSWERED, Release);
}

/// Each way in turn is the first that touches the stack at a sample: its time as a profiler has it.
/// After that all walk once more, warm.
///
/// # Safety
/// In a signal handler, whose arguments these are; nobody else walks, and no other tables are
/// published meanwhile.
unsafe fn walk_all(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let start = walking::interrupted(context as u64);
    PC.store(start.map_or(0, |start| start.pc), Relaxed);
    let (low, high) = (LOW.load(Relaxed), HIGH.load(Relaxed));
    // SAFETY: an unwinder that was given is never freed.
    let framehop = unsafe { FRAMEHOP.load(Acquire).as_ref() };
    let walk = |way: usize| match way {
        // SAFETY: all of it comes from the kernel; a `siginfo_t` begins with a `TimerSignal`. A
        // second call finds its slot answered, and writes nothing.
        0 => unsafe { handler::on_signal(signal, info.cast(), context) },
        1 => {
            if let (Some(start), Some(framehop)) = (start, framehop) {
                // SAFETY: by this function's contract; the interrupted thread stands on that stack.
                unsafe { OTHERS.fill(|frames| framehop.walk(start, low, high, frames)) };
            }
        }
        // SAFETY: by this function's contract.
        3 => unsafe { LIBGCC.fill(peers::by_backtrace_crate) },
        _ => {
            let Some(libunwind) = peers::libunwind() else { return };
            match way {
                // SAFETY: by this function's contract.
                2 => unsafe { OTHERS.fill(|frames| libunwind.backtrace(frames)) },
                // SAFETY: by this function's contract.
                _ => unsafe { OTHERS.fill(|frames| libunwind.step(context, frames)) },
            }
        }
    };
    let turn = TURN.fetch_add(1, Relaxed) as usize % WAYS.len();
    let first = ticks_of(|| walk(turn));
    FIRST.iter().for_each(|place| place.store(0, Relaxed));
    if let Some(place) = FIRST.get(turn) {
        place.store(first, Relaxed);
    }
    (0..WAYS.len()).filter(|&way| way != turn).for_each(walk);
    // SAFETY: by this function's contract.
    unsafe { TIMED.measure(context as u64, low, high) };
    for (way, place) in WARM.iter().enumerate() {
        place.store(if way == 0 { TIMED.warm.load(Relaxed) } else { ticks_of(|| walk(way)) }, Relaxed);
    }
}

fn ticks_of(action: impl FnOnce()) -> u64 {
    let started = ticks::now();
    action();
    ticks::now().wrapping_sub(started)
}
