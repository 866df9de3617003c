//! A program with two threads that work without a pause, to be recorded: for each line on its input
//! it prints how much they have done so far, and what CPU time that took.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use swipr_os::process::{clock_ns, monotonic_ns, tid};

/// Busy threads.
pub const THREADS: usize = 2;
/// Functions that call each other before the work begins.
const DEPTH: u32 = 30;
/// Steps of a round, which takes some 20 microseconds: as exactly is it known how much was done.
const STEPS: u32 = 6400;
/// All clocks are read within this time, else they are read again: between them nothing else has
/// run.
const AT_ONCE_NS: u64 = 20_000;
/// How often they are read again.
const TRIES: usize = 1000;

/// Rounds that each thread has done.
static DONE: [AtomicU64; THREADS] = [const { AtomicU64::new(0) }; THREADS];

/// What was done until one moment, and what it cost; or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rounds of all busy threads.
    pub rounds: u64,
    /// CPU time of the busy threads, nanoseconds.
    pub threads_ns: u64,
    /// CPU time of the other threads, a profiler's in the process among them, nanoseconds.
    pub others_ns: u64,
    /// The clock on the wall, nanoseconds.
    pub wall_ns: u64,
}

impl Progress {
    /// As a line.
    pub fn line(&self) -> String {
        format!("{} {} {} {}", self.rounds, self.threads_ns, self.others_ns, self.wall_ns)
    }

    /// From a line.
    pub fn parse(line: &str) -> Option<Progress> {
        let mut fields = line.split_whitespace().map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Progress { rounds: next()?, threads_ns: next()?, others_ns: next()?, wall_ns: next()? })
    }

    /// What came since an earlier moment.
    pub fn since(&self, earlier: &Progress) -> Progress {
        Progress {
            rounds: self.rounds.saturating_sub(earlier.rounds),
            threads_ns: self.threads_ns.saturating_sub(earlier.threads_ns),
            others_ns: self.others_ns.saturating_sub(earlier.others_ns),
            wall_ns: self.wall_ns.saturating_sub(earlier.wall_ns),
        }
    }
}

/// Works until its input ends.
pub fn main() -> io::Result<()> {
    let mut tids = vec![];
    for done in &DONE {
        let (sender, started) = channel();
        std::thread::Builder::new().name("busy".into()).spawn(move || {
            let _ = sender.send(tid());
            black_box(deep(DEPTH, done));
        })?;
        tids.push(started.recv().map_err(io::Error::other)?);
    }
    let (input, mut output) = (io::stdin(), io::stdout());
    for line in input.lock().lines() {
        line?;
        writeln!(output, "{}", progress(&tids).line())?;
        output.flush()?;
    }
    Ok(())
}

/// All figures of one moment: read again where something came between.
fn progress(tids: &[u32]) -> Progress {
    let mut read = Progress::default();
    for _ in 0..TRIES {
        let wall_ns = monotonic_ns();
        let rounds = DONE.iter().map(|done| done.load(Relaxed)).sum();
        let threads_ns = tids.iter().filter_map(|&tid| clock_ns(cpu_clock(tid))).sum();
        let process_ns = clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0);
        read = Progress { rounds, threads_ns, others_ns: process_ns.saturating_sub(threads_ns), wall_ns };
        if monotonic_ns() - wall_ns < AT_ONCE_NS {
            break;
        }
    }
    read
}

/// A thread's CPU clock: linux/posix-timers_types.h, CPUCLOCK_PERTHREAD and CPUCLOCK_SCHED.
fn cpu_clock(tid: u32) -> libc::clockid_t {
    (!(tid as i32) << 3) | 6
}

#[inline(never)]
fn deep(levels: u32, done: &AtomicU64) -> u64 {
    let result = if levels == 0 { leaf(done) } else { deep(levels - 1, done) };
    black_box(result).wrapping_add(1)
}

/// Works for ever on memory that fits the processor's second cache.
#[inline(never)]
fn leaf(done: &AtomicU64) -> u64 {
    let mut memory = vec![1u64; 16 << 10];
    let mut state = RandomState::new().build_hasher().finish() | 1;
    loop {
        for _ in 0..STEPS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % memory.len();
            if let Some(word) = memory.get_mut(at) {
                *word = word.wrapping_mul(31).wrapping_add(state);
            }
        }
        black_box(&memory);
        done.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_survives_the_way_as_a_line() {
        let progress = Progress { rounds: 1, threads_ns: 12, others_ns: 13, wall_ns: 14 };
        assert_eq!(Progress::parse(&format!("{}\n", progress.line())), Some(progress));
        assert_eq!(Progress::parse("12 13 14"), None);
    }

    #[test]
    fn what_came_since_is_the_difference_of_each_figure() {
        let earlier = Progress { rounds: 1, threads_ns: 20, others_ns: 300, wall_ns: 4000 };
        let later = Progress { rounds: 6, threads_ns: 27, others_ns: 309, wall_ns: 4011 };
        let since = Progress { rounds: 5, threads_ns: 7, others_ns: 9, wall_ns: 11 };
        assert_eq!(later.since(&earlier), since);
    }
}
