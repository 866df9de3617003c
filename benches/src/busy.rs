//! A program with two busy threads, to be recorded: for each line on its input both do a fixed amount of work
//! and it prints what CPU time that took.

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use swipr::platform::process::clock_ns;

/// Busy threads.
const THREADS: usize = 2;
/// Functions that call each other before the work begins.
const DEPTH: u32 = 30;
/// A unit of work takes about so long.
const UNIT_NS: u64 = 250_000_000;

/// What one unit of work took, nanoseconds of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Of the busy threads.
    pub threads_ns: u64,
    /// Of the whole process, the agent's threads with it.
    pub process_ns: u64,
}

impl Unit {
    /// As a line.
    pub fn line(&self) -> String {
        format!("{} {}", self.threads_ns, self.process_ns)
    }

    /// From a line.
    pub fn parse(line: &str) -> Option<Unit> {
        let (threads, process) = line.trim().split_once(' ')?;
        Some(Unit { threads_ns: threads.parse().ok()?, process_ns: process.parse().ok()? })
    }
}

/// Works until its input ends.
pub fn main() -> io::Result<()> {
    let rounds = calibrate();
    let mut workers: Vec<(Sender<()>, Receiver<u64>)> = vec![];
    for _ in 0..THREADS {
        let ((go, started), (ended, done)) = (channel(), channel());
        std::thread::Builder::new().name("busy".into()).spawn(move || {
            while started.recv().is_ok() {
                let before = thread_ns();
                work(rounds);
                if ended.send(thread_ns() - before).is_err() {
                    break;
                }
            }
        })?;
        workers.push((go, done));
    }
    let (input, mut output) = (io::stdin(), io::stdout());
    for line in input.lock().lines() {
        line?;
        let before = process_ns();
        workers.iter().for_each(|(go, _)| _ = go.send(()));
        let threads_ns = workers.iter().filter_map(|(_, done)| done.recv().ok()).sum();
        let unit = Unit { threads_ns, process_ns: process_ns() - before };
        writeln!(output, "{}", unit.line())?;
        output.flush()?;
    }
    Ok(())
}

fn thread_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

fn process_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// Rounds that take one thread [`UNIT_NS`].
fn calibrate() -> u64 {
    let mut rounds = 1 << 10;
    loop {
        let before = thread_ns();
        work(rounds);
        let taken = thread_ns() - before;
        if taken > UNIT_NS / 8 {
            return rounds * UNIT_NS / taken;
        }
        rounds *= 2;
    }
}

fn work(rounds: u64) {
    black_box(deep(rounds, DEPTH));
}

#[inline(never)]
fn deep(rounds: u64, levels: u32) -> u64 {
    let result = if levels == 0 { leaf(rounds) } else { deep(rounds, levels - 1) };
    black_box(result).wrapping_add(1)
}

/// Works on memory that fits the processor's second cache.
#[inline(never)]
fn leaf(rounds: u64) -> u64 {
    let mut memory = vec![1u64; 16 << 10];
    let mut state = 88_172_645_463_325_252u64;
    for _ in 0..rounds {
        for _ in 0..64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = state as usize % memory.len();
            if let Some(word) = memory.get_mut(at) {
                *word = word.wrapping_mul(31).wrapping_add(state);
            }
        }
    }
    memory.iter().fold(state, |sum, word| sum.wrapping_add(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_survives_the_way_as_a_line() {
        let unit = Unit { threads_ns: 12, process_ns: 13 };
        assert_eq!(Unit::parse(&format!("{}\n", unit.line())), Some(unit));
        assert_eq!(Unit::parse("12"), None);
    }
}
