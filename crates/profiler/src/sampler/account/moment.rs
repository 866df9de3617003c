//! What an account is given: points in time, and what observations have found.

use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::State;

/// A point in time, by a thread's clocks and a recording's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Monotonic time.
    pub ns: u64,
    /// The thread's CPU clock.
    pub cpu_ns: u64,
    /// The part of it in which timers cannot hit the thread; `None`: as at the last moment.
    pub kernel_ns: Option<u64>,
    /// How long it has waited for CPUs.
    pub delay_ns: u64,
    /// How often it has got one.
    pub turns: u64,
    /// The recording's ticks until then, late ones included.
    pub ticks: u64,
    /// Those of `ticks` that were over before the sampler ran.
    pub late: u64,
}

/// What has happened between two observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// Late ticks.
    pub late: u64,
    /// Ticks between the two at which the thread may have been in another stack.
    pub unproven: u64,
    /// How long the thread has waited for CPUs.
    pub waited_ns: u64,
}

/// What an observation has found.
#[derive(Clone, Debug)]
pub enum Found {
    /// Blocked, or never run so far.
    At(State, Arc<RawStack>),
    /// Blocked there a moment ago: it has moved since.
    Was(State, Arc<RawStack>),
    /// Ready, without a CPU: which share of its waits is behind a block, if the kernel says so.
    Waiting(Option<f32>),
    /// None of these: it is on a CPU, it moved at each attempt, or it was not examined (CPU mode).
    Elsewhere,
    /// The kernel does not say.
    Unknown,
}

/// Whether the thread will be hit if it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerState {
    /// At the next kernel tick. The value is the interval of kernel ticks, in nanoseconds.
    Yes(u64),
    /// For long already: the next hit represents more than a tick, see `timers.rs`.
    Overdue,
    /// At a random moment, independent of kernel ticks.
    AtAnyMoment,
    /// It has not run lately.
    No,
    /// The thread cannot be signalled, for example because it blocks the signal.
    Never,
    /// The sampler may not run on the thread's CPU, or may not signal it (`preempt.rs`).
    Refused,
}
