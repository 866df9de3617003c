//! A thread that stands in a synthetic stack, on another processor, and can be interrupted.

use crate::machine;
use crate::synthetic::{self, Watch};
use crate::ticks::{self, Scale};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use swipr_os::{maps, memory, process};
use swipr_unwind::slot::StackBounds;

/// Pauses of the thread that are longer count as gaps, nanoseconds.
const GAP_NS: f64 = 600.0;
/// How long a gap is waited for.
const TIMEOUT_NS: f64 = 300_000.0;
/// After a gap, so long nothing else may interrupt.
const QUIET_NS: f64 = 15_000.0;
/// Bytes of the thread's alternate signal stack.
pub const SIGNAL_STACK_BYTES: usize = 512 << 10;

/// The thread.
#[derive(Debug)]
pub struct Target {
    watch: Arc<Watch>,
    thread: Option<JoinHandle<u64>>,
    scale: Scale,
    /// Its id.
    pub tid: u32,
    /// The mapping of its stack.
    pub bounds: StackBounds,
    /// The first byte of its alternate stack, of [`SIGNAL_STACK_BYTES`].
    pub signal_stack: *mut u8,
}

/// How to interrupt, and how long it took at the most.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Nanoseconds between the last look at the clock before and the first one after.
    pub ns: f64,
}

impl Target {
    /// Starts the thread on `cpu`, `levels` functions deep. It runs before all ordinary threads if
    /// it may.
    pub fn start(cpu: usize, levels: u32, scale: Scale) -> io::Result<Target> {
        let mut watch = Watch::default();
        watch.threshold.0 = scale.ticks(GAP_NS);
        let watch = Arc::new(watch);
        let signal_stack = memory::map_forever(SIGNAL_STACK_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        let (sender, receiver) = channel();
        let (watched, stack) = (watch.clone(), signal_stack as usize);
        let thread = std::thread::Builder::new().name("target".into()).spawn(move || {
            machine::pin(cpu);
            machine::run_first();
            use_signal_stack(stack as *mut u8);
            let local = 0;
            let _ = sender.send((process::tid(), &raw const local as u64));
            synthetic::run(&watched, levels)
        })?;
        let (tid, local) = receiver.recv().map_err(io::Error::other)?;
        let mappings = maps::read()?;
        let stack = maps::find(&mappings, local).ok_or(io::ErrorKind::NotFound)?;
        // The thread was made for this: nothing else is in there.
        let bounds = StackBounds::of_first_thread(stack.low, stack.high);
        Ok(Target { watch, thread: Some(thread), scale, tid, bounds, signal_stack })
    }

    /// Calls `interrupt`, which sends one signal, and measures how long it kept the thread from
    /// running. `None`: no pause, or more than one, so that it is not known which was the signal's.
    pub fn held(&self, interrupt: impl FnOnce()) -> Option<Held> {
        let gap = &self.watch.gap.0;
        let count = gap.count.load(Acquire);
        let sent = ticks::now();
        interrupt();
        while gap.count.load(Acquire) == count {
            if self.scale.ns(sent, ticks::now()) > TIMEOUT_NS {
                return None;
            }
            std::hint::spin_loop();
        }
        let (before, after) = (gap.before.load(Relaxed), gap.after.load(Relaxed));
        let seen = ticks::now();
        while self.scale.ns(seen, ticks::now()) < QUIET_NS {
            std::hint::spin_loop();
        }
        let alone = gap.count.load(Acquire) == count.wrapping_add(1);
        (alone && after > sent).then(|| Held { ns: self.scale.ns(before, after) })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.watch.stop.0.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn use_signal_stack(memory: *mut u8) {
    let stack = libc::stack_t { ss_sp: memory.cast(), ss_flags: 0, ss_size: SIGNAL_STACK_BYTES };
    // SAFETY: the memory is mapped for ever and used by this thread only.
    unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) };
}
