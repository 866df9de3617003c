//! Turned off for good: what becomes of the agent after a fault of its own.
//!
//! A panic on one of the agent's threads, or memory that cannot be had, turns the agent off once
//! and for all. Recordings end and their clients get the reason, and no new recording begins.
//! `/health` and `/status` say so for as long as the server lives. The children of a fork get no
//! agent. The host keeps running. Nothing here allocates, takes a lock or waits: it is called where
//! there is no memory left, and by threads that hold locks. Not here: finding the faults
//! (`agent_threads.rs`, `heap.rs`). Failures that may pass, such as a thread that the kernel
//! refuses, end one recording only.

use crate::hook::Hook;
use crate::host_thread;
use crate::locks;
use crate::log;
use crate::process::monotonic_ns;
use crate::text::Text;
use std::cell::UnsafeCell;
use std::fmt::{Display, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*};
use std::time::Duration;

/// Bytes of the reason; what is longer is cut.
const REASON_BYTES: usize = 200;

/// How long a recording has to end once the agent is off: its writer may be looking up names.
const TIMEOUT: Duration = Duration::from_secs(10);
/// As [`TIMEOUT`] where a thread of the agent has ended on the spot: it may be the writer.
const TIMEOUT_IF_LOST: Duration = Duration::from_secs(2);

/// Whether a thread of the agent has ended on the spot.
static LOST: AtomicBool = AtomicBool::new(false);

const ON: u8 = 0;
const TURNING: u8 = 1;
const OFF: u8 = 2;

/// On, or off with a reason.
struct Switch {
    phase: AtomicU8,
    since_ns: AtomicU64,
    reason: UnsafeCell<Text<REASON_BYTES>>,
}

// SAFETY: `reason` is written by the one thread that moves `phase` from ON to TURNING, and read
// once it is OFF.
unsafe impl Sync for Switch {}

static SWITCH: Switch = Switch::new();

impl Switch {
    const fn new() -> Switch {
        let reason = UnsafeCell::new(Text::empty());
        Switch { phase: AtomicU8::new(ON), since_ns: AtomicU64::new(0), reason }
    }

    /// Whether this call turned it off.
    fn disable(&self, reason: &dyn Display) -> bool {
        if self.phase.compare_exchange(ON, TURNING, AcqRel, Acquire).is_err() {
            return false;
        }
        // SAFETY: the exchange succeeds once; no thread reads before the store below.
        let text = unsafe { &mut *self.reason.get() };
        let _ = write!(text, "{reason}");
        self.since_ns.store(monotonic_ns(), Relaxed);
        self.phase.store(OFF, Release);
        true
    }

    fn reason(&self) -> Option<&str> {
        match self.phase.load(Acquire) {
            ON => None,
            // SAFETY: never written again.
            OFF => Some(unsafe { &*self.reason.get() }.as_str()),
            _ => Some("an internal error"),
        }
    }
}

/// Wakes the agent's threads, which then see that it is off.
static WAKE_ALL: Hook = Hook::new();

/// `wake_all` is called when the agent is turned off, in places where nothing may be allocated or
/// waited for.
pub fn on_disable(wake_all: &'static fn()) {
    WAKE_ALL.set(wake_all);
}

/// Turns the agent off. The first reason stays; it is logged where lines are wanted. Never
/// allocates, waits or panics.
pub fn disable(reason: impl Display) {
    turn_for(&reason);
}

fn turn_for(reason: &dyn Display) {
    if SWITCH.disable(reason) {
        locks::turn_off();
        log::wanted().line(format_args!("turned off for good: {}", SWITCH.reason().unwrap_or_default()));
        WAKE_ALL.call();
    }
}

/// Why the agent is off, if it is.
pub fn reason() -> Option<&'static str> {
    SWITCH.reason()
}

/// The reason as a sentence.
pub fn message() -> Option<String> {
    reason().map(|reason| format!("the agent has turned itself off: {reason}"))
}

/// Whether it is off.
pub fn is_disabled() -> bool {
    SWITCH.phase.load(Acquire) != ON
}

/// Disabled for longer than the grace period: no thread of the agent will report anything any more.
pub fn is_past_grace() -> bool {
    let timeout = if LOST.load(Relaxed) { TIMEOUT_IF_LOST } else { TIMEOUT };
    is_disabled() && monotonic_ns().saturating_sub(SWITCH.since_ns.load(Relaxed)) >= timeout.as_nanos() as u64
}

/// A thread of the agent is about to end on the spot.
pub fn lose_thread() {
    LOST.store(true, Relaxed);
}

/// Runs the agent's code in a call of the host's, which sees nothing of it. A panic turns the agent
/// off.
pub fn contained<T>(body: impl FnOnce() -> T) -> Option<T> {
    let result = host_thread::kept(|| catch_unwind(AssertUnwindSafe(body)));
    if result.is_err() {
        disable("a panic on a thread of the program");
    }
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays_and_is_one_line() {
        let switch = Switch::new();
        assert_eq!(switch.reason(), None);
        assert!(switch.disable(&format_args!("no\nmemory\u{1b}[31m for {} bytes", 7)));
        assert!(!switch.disable(&"another"));
        assert_eq!(switch.reason(), Some("no memory [31m for 7 bytes"));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let switch = Switch::new();
        assert!(switch.disable(&"ä".repeat(REASON_BYTES)));
        assert_eq!(switch.reason().map(str::len), Some(REASON_BYTES));
    }
}
