//! A program with many threads that wait, each in a stack of 36 functions, and some that work. It
//! is recorded, or takes a signal in every thread, as from wall-clock profilers that wait for all
//! answers.
//!
//! It answers each line on its input with one on its output: to [`REPORT`] a [`Report`], to
//! [`ASK_ALL`] how long one such pass took, nanoseconds.

use crate::asking::{self, Stack};
use crate::synthetic::{self, Watch};
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use swipr_os::process::{self, clock_ns};
use swipr_os::threads;

/// Functions above each waiting thread's first ones.
const LEVELS: u32 = 30;
const STACK_BYTES: usize = 64 << 10;
/// The line that asks what the threads noticed.
pub const REPORT: &str = "report";
/// The line that asks for a pass over all threads by signals.
pub const ASK_ALL: &str = "ask all";
/// An answer that does not come in this time is given up.
const TIMEOUT: Duration = Duration::from_secs(10);

static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// What the waiting threads noticed so far, and what the process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// System calls that came back with EINTR.
    pub interrupted: u64,
    /// CPU time of the waiting threads.
    pub stolen_ns: u64,
    /// CPU time of the whole process.
    pub process_ns: u64,
}

impl Report {
    /// As a line.
    pub fn line(&self) -> String {
        format!("{} {} {}", self.interrupted, self.stolen_ns, self.process_ns)
    }

    /// From a line.
    pub fn parse(line: &str) -> Option<Report> {
        let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Report { interrupted: next()?, stolen_ns: next()?, process_ns: next()? })
    }

    /// What came since `earlier`.
    pub fn since(&self, earlier: Report) -> Report {
        Report {
            interrupted: self.interrupted - earlier.interrupted,
            stolen_ns: self.stolen_ns - earlier.stolen_ns,
            process_ns: self.process_ns - earlier.process_ns,
        }
    }
}

/// Runs `waiting` threads that wait and `busy` ones that work, until its input ends.
pub fn main(waiting: usize, busy: usize) -> io::Result<()> {
    asking::install(signal(), answer, Stack::Alternate)?;
    let (sender, receiver) = channel();
    for number in 0..waiting {
        // One half waits for a futex, the other in a sleep.
        let leaf: fn() = if number % 2 == 0 { wait_for_futex } else { sleep };
        spawn("waiting", &sender, move || {
            synthetic::run(&Watch { instead: Some(leaf), ..Watch::default() }, LEVELS)
        })?;
    }
    for _ in 0..busy {
        spawn("busy", &sender, || {
            loop {
                black_box(0u64);
            }
        })?;
    }
    let tids: Vec<u32> = receiver.iter().take(waiting + busy).collect();
    let waiting = tids.get(..waiting).unwrap_or(&[]);
    let mut output = io::stdout();
    writeln!(output, "ready")?;
    for line in io::stdin().lock().lines() {
        match line?.as_str() {
            REPORT => writeln!(output, "{}", report(waiting).line())?,
            ASK_ALL => writeln!(output, "{}", ask_all(&tids))?,
            other => return Err(io::Error::other(format!("what is {other:?}?"))),
        }
        output.flush()?;
    }
    Ok(())
}

fn spawn<T: Send + 'static>(
    name: &str,
    tids: &Sender<u32>,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<()> {
    let tids = tids.clone();
    std::thread::Builder::new().name(name.into()).stack_size(STACK_BYTES).spawn(move || {
        let _ = tids.send(process::tid());
        drop(tids);
        body()
    })?;
    Ok(())
}

fn report(waiting: &[u32]) -> Report {
    Report {
        interrupted: INTERRUPTED.load(Relaxed),
        stolen_ns: waiting.iter().filter_map(|&tid| threads::cpu_ns(tid)).sum(),
        process_ns: clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0),
    }
}

fn signal() -> i32 {
    libc::SIGRTMIN() + 1
}

/// The least that such a profiler does: it says that it was here. A walk would come on top.
unsafe extern "C" fn answer(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    ANSWERED.fetch_add(1, Release);
}

fn ask_all(tids: &[u32]) -> u64 {
    let started = Instant::now();
    let before = ANSWERED.load(Acquire);
    tids.iter().for_each(|&tid| asking::send(tid, signal()));
    while ANSWERED.load(Acquire) - before < tids.len() as u64 && started.elapsed() < TIMEOUT {
        std::thread::yield_now();
    }
    started.elapsed().as_nanos() as u64
}

/// Waits for ever, and counts how often it was told that it was interrupted.
fn wait(call: impl Fn() -> i64) {
    loop {
        if call() < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            INTERRUPTED.fetch_add(1, Relaxed);
        }
    }
}

fn wait_for_futex() {
    let word = 0u32;
    let for_ever = std::ptr::null::<libc::timespec>();
    // SAFETY: the word lives as long as the wait; nobody wakes it.
    wait(|| unsafe {
        libc::syscall(
            libc::SYS_futex,
            &raw const word,
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            0,
            for_ever,
        )
    });
}

fn sleep() {
    let long = libc::timespec { tv_sec: 3600, tv_nsec: 0 };
    let remaining = std::ptr::null_mut::<libc::timespec>();
    // SAFETY: the time lives as long as the call, the rest is not asked for.
    wait(|| unsafe { libc::syscall(libc::SYS_nanosleep, &raw const long, remaining) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_way_as_a_line() {
        let report = Report { interrupted: 1, stolen_ns: 2, process_ns: 3 };
        assert_eq!(Report::parse(&report.line()), Some(report));
        assert_eq!(Report::parse("1 2"), None);
    }
}
