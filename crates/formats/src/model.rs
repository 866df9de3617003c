//! What a recording is made of: samples of stacks of frames, and what was lost.

mod code;
mod recording;

pub use code::{Frame, FrameKind, Function, Language, Module, Stack};
pub use recording::{Cost, Count, Header, Measure, Summary};

use std::sync::Arc;

/// The thread a sample was taken of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Kernel thread id.
    pub tid: u32,
    /// Its name, as the program gave it: not trusted.
    pub name: String,
}

/// What the thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// On a CPU.
    Running,
    /// Ready to run but waiting for a CPU.
    Runnable,
    /// Blocked in the kernel; the number of the system call where known.
    Blocked(Option<u32>),
}

/// One stack of one thread, at one time or at several ticks in a row.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    /// Nanoseconds since the epoch; of the last tick, where there are several. 0: the time is not
    /// known, as in
    /// recordings that were read from sums.
    pub time_ns: u64,
    /// How many ticks it represents, at least 1. Each is a sample.
    pub ticks: u32,
    /// Whose stack.
    pub thread: &'a Arc<Thread>,
    /// What it was doing.
    pub state: State,
    /// What one tick represents: the interval in wall mode, the thread's CPU
    /// time around its sample in CPU mode. Nanoseconds.
    pub weight_ns: u64,
    /// The stack.
    pub stack: &'a Arc<Stack>,
}

impl Sample<'_> {
    /// When each of its ticks was. Where there are several the interval lies between them.
    pub fn times_ns(&self) -> impl Iterator<Item = u64> + use<> {
        let (last_ns, interval_ns) = (self.time_ns, self.weight_ns);
        (0..u64::from(self.ticks))
            .rev()
            .map(move |before| last_ns.saturating_sub(before.saturating_mul(interval_ns)))
    }
}

/// What a weight counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Every thread at every tick, on or off CPU.
    Wall,
    /// Only threads that used CPU time.
    Cpu,
}
