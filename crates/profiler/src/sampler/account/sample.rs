//! Hits, and the samples that are made of them.

use crate::stack::RawStack;
use std::sync::Arc;
use swipr_formats::model::{State, Thread};

/// What a hit weighs.
pub const WEIGHT: u32 = 256;

/// A sample with its weight.
#[derive(Clone, Debug)]
pub struct Weighted {
    /// The thread's state.
    pub state: State,
    /// The thread's stack.
    pub stack: Arc<RawStack>,
    /// Wall mode: ticks that the sample represents.
    pub ticks: u32,
    /// CPU mode: CPU time that the sample represents.
    pub cpu_ns: u64,
    /// Monotonic time.
    pub ns: u64,
    /// Whose it is, if not the account's thread's.
    pub thread: Option<Arc<Thread>>,
    /// It has no stack because the thread was not hit, by chance.
    pub is_unsampled: bool,
}

/// The three things that a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Running,
    Waiting,
    Blocked,
}

pub const KINDS: [Kind; 3] = [Kind::Running, Kind::Waiting, Kind::Blocked];

impl Kind {
    pub fn of(state: State) -> Kind {
        match state {
            State::Running => Kind::Running,
            State::Runnable => Kind::Waiting,
            State::Blocked(_) => Kind::Blocked,
        }
    }

    pub fn state(self) -> State {
        match self {
            Kind::Running => State::Running,
            Kind::Waiting => State::Runnable,
            Kind::Blocked => State::Blocked(None),
        }
    }
}

/// Where a thread was.
#[derive(Clone, Debug)]
pub struct Hit {
    pub state: State,
    pub stack: Arc<RawStack>,
    pub count: u32,
    /// In units of 1 / [`WEIGHT`].
    pub weight: u32,
    pub ns: u64,
    pub thread: Option<Arc<Thread>>,
}

impl Hit {
    pub fn sample(&self, ticks: u32, cpu_ns: u64) -> Weighted {
        let Hit { state, stack, ns, thread, .. } = self.clone();
        Weighted { state, stack, ticks, cpu_ns, ns, thread, is_unsampled: false }
    }
}

/// What becomes of time without a hit.
#[derive(Clone, Debug)]
pub enum Fate {
    /// It waits for a hit.
    Waits,
    /// It was spent where the thread was seen running last.
    At(Arc<RawStack>),
    /// Undersampled threads share it.
    Shared,
    /// It has no stack.
    Unsampled,
}

pub fn in_ticks(ticks: u64) -> u32 {
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// Divides `total` among hits, by their weights; the parts sum to it.
pub fn shares<'a>(hits: &'a [&'a Hit], total: u64) -> impl Iterator<Item = (&'a Hit, u64)> {
    let all: u128 = hits.iter().map(|hit| u128::from(hit.weight)).sum();
    let up_to = move |weight: u128| ((weight * u128::from(total) + all / 2) / all.max(1)) as u64;
    let mut before = 0;
    hits.iter().map(move |&hit| {
        let until = before + u128::from(hit.weight);
        let share = up_to(until) - up_to(before);
        before = until;
        (hit, share)
    })
}
