//! What a recording costs, as ratios of the same work's CPU time with and without it, and what it
//! costs to begin one.
//!
//! The profiler records for some seconds at a time. What is compared are equally long windows
//! inside and outside of its recordings: one that lies right before a recording with the
//! recording's first, its last with the one right after.

use crate::busy::Progress;
use crate::children::{self, Conversation};
use crate::figures::Series;
use crate::recorded_by::{Attached, Profiler};
use std::error::Error;
use std::time::Duration;

/// The argument that makes a bench the program that is recorded.
pub const BUSY: &str = "--busy";
/// A window.
const WINDOW: Duration = Duration::from_millis(500);
/// After a recording began and before its first window: tables are made and most names known then.
/// After it ended as well, and a program's first moments are as long.
const SETTLING: Duration = Duration::from_millis(500);

/// The agent's threads.
pub const AGENT: [&str; 3] = ["swipr-sampler", "swipr-writer", "swipr-server"];

/// The work of a stretch of time, and the CPU time of all that took part in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// What the program did.
    pub program: Progress,
    /// CPU time of a profiler that is a process of its own, nanoseconds.
    pub outside_ns: u64,
}

impl Work {
    /// CPU time of the busy threads, nanoseconds a round.
    fn own(&self) -> f64 {
        self.program.threads_ns as f64 / self.program.rounds as f64
    }

    /// CPU time of these and all others, nanoseconds a round.
    fn whole(&self) -> f64 {
        self.own() + self.others()
    }

    /// CPU time of all others, nanoseconds a round.
    fn others(&self) -> f64 {
        self.others_ns() as f64 / self.program.rounds as f64
    }

    /// CPU time of all but the busy threads, nanoseconds.
    fn others_ns(&self) -> u64 {
        self.program.others_ns + self.outside_ns
    }

    fn since(&self, earlier: &Work) -> Work {
        Work {
            program: self.program.since(&earlier.program),
            outside_ns: self.outside_ns.saturating_sub(earlier.outside_ns),
        }
    }

    fn and(&self, other: &Work) -> Work {
        Work {
            program: Progress {
                rounds: self.program.rounds + other.program.rounds,
                threads_ns: self.program.threads_ns + other.program.threads_ns,
                others_ns: self.program.others_ns + other.program.others_ns,
                wall_ns: self.program.wall_ns + other.program.wall_ns,
            },
            outside_ns: self.outside_ns + other.outside_ns,
        }
    }
}

/// What was measured of one profiler at one rate.
#[derive(Debug, Default)]
pub struct Overhead {
    /// The busy threads' own CPU time, with / without, of each pair.
    pub threads: Series,
    /// The same with the CPU time of the profiler's threads.
    pub whole: Series,
    /// What the profiler's threads are of that: their CPU time / that of the busy threads without.
    /// The windows of a pair may differ in speed; this hardly depends on it.
    pub profiler: Series,
    /// CPU time of each of [`AGENT`] while it records, milliseconds a second.
    pub agent: [Series; AGENT.len()],
    /// CPU time of the profiler's threads until its first recording in this process ran evenly,
    /// milliseconds.
    pub first_start_ms: f64,
    /// The same of the later ones.
    pub later_starts_ms: Series,
}

impl Overhead {
    fn pair(&mut self, with: &Work, without: &Work) {
        self.threads.push(with.own() / without.own());
        self.whole.push(with.whole() / without.whole());
        self.profiler.push((with.others() - without.others()) / without.own());
    }

    fn start(&mut self, recording: usize, ms: f64) {
        if recording == 0 {
            self.first_start_ms = ms;
        } else {
            self.later_starts_ms.push(ms);
        }
    }
}

/// CPU time of the profiler's threads while a recording began, without what they take anyway in so
/// long a time.
fn start_ms(start_up: &Work, steady: &Work) -> f64 {
    let rate = steady.others_ns() as f64 / steady.program.wall_ns as f64;
    (start_up.others_ns() as f64 - rate * start_up.program.wall_ns as f64) / 1e6
}

/// Records a program of busy threads again and again.
pub fn measure(profiler: &Profiler, hz: u32, recordings: usize) -> Result<Overhead, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut command = children::command(&program.to_string_lossy(), profiler.library());
    profiler.prepare(&mut command, hz);
    let mut busy = Conversation::start(command.arg(BUSY))?;
    read_work(&mut busy, &Attached::Nothing)?;
    let mut attached = profiler.attach(&busy.process, hz)?;
    let mut overhead = Overhead::default();
    std::thread::sleep(SETTLING);
    for recording in 0..recordings {
        let before = window(&mut busy, &attached)?;
        let started = read_work(&mut busy, &attached)?;
        attached.begin()?;
        std::thread::sleep(SETTLING);
        let start_up = read_work(&mut busy, &attached)?.since(&started);
        let agent = AGENT.map(|name| busy.process.cpu_ns_of(name));
        let (first, last) = (window(&mut busy, &attached)?, window(&mut busy, &attached)?);
        let steady = first.and(&last);
        for ((series, name), before) in overhead.agent.iter_mut().zip(AGENT).zip(agent) {
            let taken = busy.process.cpu_ns_of(name).saturating_sub(before);
            series.push(taken as f64 / steady.program.wall_ns as f64 * 1e3);
        }
        attached.end(&busy.process)?;
        std::thread::sleep(SETTLING);
        let after = window(&mut busy, &attached)?;
        overhead.pair(&first, &before);
        overhead.pair(&last, &after);
        overhead.start(recording, start_ms(&start_up, &steady));
    }
    Ok(overhead)
}

/// What is done within a window.
fn window(busy: &mut Conversation, attached: &Attached) -> Result<Work, Box<dyn Error>> {
    let before = read_work(busy, attached)?;
    std::thread::sleep(WINDOW);
    Ok(read_work(busy, attached)?.since(&before))
}

/// What was done so far.
fn read_work(busy: &mut Conversation, attached: &Attached) -> Result<Work, Box<dyn Error>> {
    let program = Progress::parse(&busy.ask("")?).ok_or("not a line of progress")?;
    Ok(Work { program, outside_ns: attached.own_cpu_ns() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(rounds: u64, threads_ns: u64, others_ns: u64, outside_ns: u64) -> Work {
        let program = Progress { rounds, threads_ns, others_ns, wall_ns: 1_000_000_000 };
        Work { program, outside_ns }
    }

    #[test]
    fn a_ratio_is_of_the_cpu_time_for_the_same_work() {
        let mut overhead = Overhead::default();
        // Half of the rounds in half of the time cost nothing; three quarters of the time are half
        // as much again.
        overhead.pair(&work(50, 500, 0, 0), &work(100, 1000, 0, 0));
        overhead.pair(&work(50, 750, 0, 0), &work(100, 1000, 0, 0));
        assert_eq!((overhead.threads.percentile(0.0), overhead.threads.percentile(1.0)), (1.0, 1.5));
    }

    #[test]
    fn threads_of_the_profiler_and_its_process_count_in_the_whole_only() {
        let mut overhead = Overhead::default();
        overhead.pair(&work(100, 1000, 30, 20), &work(100, 1000, 0, 0));
        assert_eq!((overhead.threads.median(), overhead.whole.median()), (1.0, 1.05));
        assert_eq!(overhead.profiler.median(), 0.05);
    }

    #[test]
    fn what_a_start_costs_is_without_what_the_recording_takes_anyway() {
        let (start_up, steady) = (work(1, 1, 50_000_000, 10_000_000), work(1, 1, 15_000_000, 5_000_000));
        assert_eq!(start_ms(&start_up, &steady), 40.0);
        assert_eq!(start_ms(&start_up, &steady.and(&steady)), 40.0);
    }

    #[test]
    fn only_the_first_recording_of_a_process_is_the_first() {
        let mut overhead = Overhead::default();
        [9.0, 2.0, 1.0, 3.0].iter().enumerate().for_each(|(recording, &ms)| overhead.start(recording, ms));
        assert_eq!((overhead.first_start_ms, overhead.later_starts_ms.median()), (9.0, 2.0));
    }
}
