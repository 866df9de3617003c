//! Why a recording has not a single sample, by its figures, and what to do.

use super::progress::grouped;
use crate::args::Sampling;
use crate::error::Error;
use swipr_formats::model::Summary;

/// The command that records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// `swipr run`.
    Run,
    /// `swipr record`.
    Record,
    /// The same, with child processes.
    RecordAll,
}

impl Recorder {
    /// `swipr record` with these options.
    pub fn of_running(sampling: &Sampling) -> Recorder {
        if sampling.subprocesses { Recorder::RecordAll } else { Recorder::Record }
    }

    /// What else an agent may have done that gave nothing. One that `record` asks has started.
    fn no_start(self) -> &'static str {
        match self {
            Recorder::Run => ", or did not start (SWIPR_LOG=1 says why)",
            Recorder::Record | Recorder::RecordAll => "",
        }
    }

    /// What else helps with a process that waits, or whose child processes use the CPU: `run`
    /// itself says that there are some.
    fn if_idle(self) -> &'static str {
        match self {
            Recorder::Run => "",
            Recorder::Record => " `swipr dump` shows where they are; -s records child processes;",
            Recorder::RecordAll => " `swipr dump -s` shows where they are;",
        }
    }

    /// What runs a program often.
    fn iteration_count(self) -> &'static str {
        match self {
            Recorder::Run => "--iteration-count",
            Recorder::Record | Recorder::RecordAll => "`swipr run --iteration-count`",
        }
    }
}

/// Of a program that ran long enough for an agent to start.
pub(super) fn no_agent() -> Error {
    let why =
        "its agent did not start: a variable is wrong, its socket's place cannot be used, or it got no CPU";
    Error::new(format!("not a single sample came: {why}"), "SWIPR_LOG=1 has the agent say why")
}

/// Of a process that ended, or stopped answering, before a sample was sent.
pub(super) fn cut(summary: &Summary, recorder: Recorder) -> Error {
    let (ticks, seconds) = (grouped(summary.ticks), summary.duration_ns as f64 / 1e9);
    let why = format!("the process ended, or stopped answering, after {ticks} ticks in {seconds:.1} s");
    let last = match recorder {
        Recorder::Run => "of a program that ends by a signal the last ones are lost",
        Recorder::Record | Recorder::RecordAll => "`swipr run` has the last ones",
    };
    let next = format!(
        "samples are sent up to 2 s after they are taken: {last}, a higher -r has them sent sooner; \
         --idle records threads that wait, too"
    );
    Error::new(format!("not a single sample came: {why}"), next)
}

/// Recordings that are longer have ticks, if there is a CPU for the agent.
pub(super) const LONG_NS: u64 = 1_000_000_000;

/// A program that used less CPU time than this is a short one, and so is one that ran for less.
const SHORT_NS: u64 = 100_000_000;

/// A program is idle that uses a CPU for less than one part in so many of the time.
const IDLE_SHARE: u64 = 100;

/// What to do where threads that ran could not be sampled.
const DOCTOR: &str = "`swipr doctor` says why, while the program runs; `--source preempt` samples threads in step with the kernel's tick";

/// Why threads that ran have no sample, and what to do.
fn unsampled(
    summary: &Summary,
    hindrance: Option<(String, &'static str)>,
    short_programs: String,
) -> (String, String) {
    let cpu = summary.unsampled_cpu_ns as f64 / 1e9;
    let seconds = summary.duration_ns as f64 / 1e9;
    let why =
        format!("{cpu:.3} s of CPU time were used, in {seconds:.1} s, while no thread could be sampled");
    match hindrance {
        Some((reason, next)) => (format!("{why}: {reason}"), next.to_owned()),
        None if summary.unsampled_cpu_ns < SHORT_NS => (why, short_programs),
        None => (why, DOCTOR.to_owned()),
    }
}

/// Why there is not a single sample, by the figures, and by what agents said of threads that ran.
pub(super) fn nothing(
    summary: &Summary,
    hindrance: Option<(String, &'static str)>,
    recorder: Recorder,
    is_filtered: bool,
) -> Error {
    let seconds = summary.duration_ns as f64 / 1e9;
    let (ticks, late) = (grouped(summary.ticks), grouped(summary.late));
    let starved = "give the program more CPU (its cgroup's quota, the machine's load), or try again";
    let often = recorder.iteration_count();
    let short_programs = format!("a higher -r and {often} are for short programs");
    let (why, next) = match summary {
        Summary { ticks: 0, .. } if summary.duration_ns > LONG_NS => {
            (format!("its agent got no CPU to sample, in {seconds:.1} s (starved)"), starved.to_owned())
        }
        Summary { ticks: 0, .. } => (
            format!(
                "the process ended before its first sample, or its agent got no CPU{}",
                recorder.no_start()
            ),
            format!("{often} runs a short program often"),
        ),
        _ if summary.dropped > 0 => {
            ("the samples came faster than they were read".to_owned(), "take a lower -r".to_owned())
        }
        // A known reason counts more than a starved agent.
        _ if summary.late > summary.ticks && (hindrance.is_none() || summary.samples == 0) => (
            format!("its agent got too little CPU: {ticks} ticks were taken, {late} were too late"),
            starved.to_owned(),
        ),
        _ if summary.threads == 0 && is_filtered => (
            "no thread has the name or the id that was asked for".to_owned(),
            "`swipr dump` lists the threads of a running process".to_owned(),
        ),
        _ if summary.samples > 0 && hardly_unsampled(summary) => (
            idle(summary),
            format!("--idle records threads that wait, too;{} {short_programs}", recorder.if_idle()),
        ),
        _ if summary.samples > 0 => unsampled(summary, hindrance, short_programs),
        _ if summary.duration_ns < SHORT_NS => {
            (format!("the process ended after {:.0} ms", seconds * 1e3), short_programs)
        }
        _ => (
            format!("no thread used the CPU in {seconds:.1} s (idle)"),
            format!("--idle records threads that wait, too;{} {short_programs}", recorder.if_idle()),
        ),
    };
    Error::new(format!("not a single sample came: {why}"), next)
}

fn idle(summary: &Summary) -> String {
    format!("its threads waited for nearly all of the {:.1} s (idle)", summary.duration_ns as f64 / 1e9)
}

/// Threads used CPU time that counts, and were not sampled.
pub(super) fn is_unsampled(summary: &Summary) -> bool {
    summary.unsampled_cpu_ns >= summary.duration_ns / IDLE_SHARE
}

fn hardly_unsampled(summary: &Summary) -> bool {
    summary.duration_ns > LONG_NS && !is_unsampled(summary)
}

/// Of a recording of CPU time that has some samples: that there was hardly anything to record, if
/// so, and what to do. A program that hangs is recorded, too.
pub(super) fn hardly_any(summary: &Summary) -> Option<String> {
    let possible = match summary.at_most_hz {
        0 => summary.ticks,
        hz => hz * summary.duration_ns / 1_000_000_000,
    };
    (hardly_unsampled(summary) && summary.samples < possible / IDLE_SHARE).then(|| idle(summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Stacks, Status};

    /// One sentence was said of all of them: the process ended too soon, or no thread used the CPU.
    #[test]
    fn why_nothing_was_recorded_is_told_by_the_figures() {
        let long = Summary { duration_ns: 3_000_000_000, ..Summary::default() };
        let why = |summary: &Summary| nothing(summary, None, Recorder::Run, true).what;
        assert!(why(&long).contains("its agent got no CPU") && why(&long).contains("in 3.0 s (starved)"));
        assert!(why(&Summary::default()).contains("ended before its first sample"));
        // Advice was --idle, also to who had given it.
        let short = Summary { ticks: 1, duration_ns: 3_000_000, ..Summary::default() };
        let said = nothing(&short, None, Recorder::Run, false);
        assert!(said.what.ends_with("the process ended after 3 ms") && !said.next.contains("idle"), "{said}");
        let idle = Summary { ticks: 300, threads: 1, ..long.clone() };
        assert!(why(&idle).contains("no thread used the CPU in 3.0 s (idle)"));
        assert!(nothing(&idle, None, Recorder::Run, false).next.contains("--idle"));
        // Its threads woke for moments, and one blocks signals.
        let nearly = Summary { samples: 1, unsampled_cpu_ns: 3_000_000, ..idle.clone() };
        let said = nothing(&nearly, Some(("a thread blocks signals".into(), "")), Recorder::Record, false);
        assert!(said.what.contains("(idle)") && said.next.contains("--idle"), "{said}");
        let none = Summary { threads: 0, ..idle };
        assert!(why(&none).contains("no thread has the name"), "{}", why(&none));
        // A shell that waits for its child has not used the CPU since its recording began.
        let waits = nothing(&none, None, Recorder::Run, false).what;
        assert!(waits.contains("no thread used the CPU"), "{waits}");
        assert!(why(&Summary { late: 290, ticks: 10, ..long.clone() }).contains("too little CPU"));
    }

    #[test]
    fn a_hundredth_of_the_time_is_enough_to_say_why_it_was_not_sampled() {
        let of =
            |unsampled_cpu_ns| Summary { duration_ns: 6_000_000_000, unsampled_cpu_ns, ..Summary::default() };
        assert!(is_unsampled(&of(60_000_000)) && !is_unsampled(&of(59_000_000)));
    }

    /// Two samples of a deadlocked program were a recording without a word.
    #[test]
    fn a_recording_of_a_program_that_hangs_says_so() {
        let of = |samples, at_most_hz| {
            let long = Summary { duration_ns: 5_000_000_000, ticks: 500, ..Summary::default() };
            hardly_any(&Summary { samples, at_most_hz, ..long })
        };
        assert_eq!(of(2, 0).unwrap(), "its threads waited for nearly all of the 5.0 s (idle)");
        assert_eq!([of(5, 0), of(2, 40)], [None, None]);
    }

    /// Advice for short programs was given after a second of CPU time.
    #[test]
    fn what_hindered_the_agent_goes_before_advice_for_short_programs() {
        let hindered = |unsampled_cpu_ns| Summary {
            samples: 1,
            threads: 1,
            ticks: 90,
            unsampled_cpu_ns,
            ..Summary::default()
        };
        assert!(nothing(&hindered(9_000_000), None, Recorder::Run, false).next.contains("short programs"));
        assert!(!nothing(&hindered(900_000_000), None, Recorder::Run, false).next.contains("short programs"));
        let refused = Stacks { timers_refused: 90, ..Stacks::default() };
        let status = Status { stacks: refused, ..Status::default() };
        let said = nothing(&hindered(900_000_000), status.hindrance(), Recorder::Run, false);
        assert!(said.what.contains("refuses the timers") && said.next.contains("ulimit -i"), "{said}");
        let mut in_step = Status::default();
        in_step.threads.in_step_with_the_kernels_tick = ["loop", "timer"].map(str::to_owned).into();
        let (why, next) = in_step.hindrance().expect("it is known");
        assert!(
            why.ends_with("in step with the kernel's tick: loop, timer") && next.contains("--source preempt")
        );
        assert_eq!(Status::default().hindrance(), None);
        let starved = Summary { late: 105, ..hindered(900_000_000) };
        let said = nothing(&starved, status.hindrance(), Recorder::Run, false);
        assert!(said.what.contains("refuses the timers"), "{said}");
    }

    /// `swipr run` said "--iteration-count of `swipr run`".
    #[test]
    fn a_hint_does_not_name_its_own_command() {
        let next = |recorder| nothing(&Summary::default(), None, recorder, false).next;
        assert_eq!(next(Recorder::Run), "--iteration-count runs a short program often");
        assert_eq!(next(Recorder::Record), "`swipr run --iteration-count` runs a short program often");
    }
}
