//! What an agent says of itself, as far as it is needed here.

use serde::Deserialize;

/// What `/status` says, as far as it is needed here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The agent's version.
    pub version: String,
    /// The process, as it sees itself.
    pub pid: u32,
    /// Why the agent has turned itself off, if it has.
    pub off: Option<String>,
    /// How long it has been there.
    pub uptime_seconds: u64,
    /// Recordings.
    pub recordings: Recordings,
    /// Threads.
    pub threads: Threads,
    /// Samples of all recordings.
    pub samples: Samples,
    /// Ticks of all recordings.
    pub ticks: Ticks,
    /// How stacks were had.
    pub stacks: Stacks,
    /// The CPU time of the agent's own threads.
    pub agent_cpu_ns: u64,
    /// How the kernel raises timers' signals: `task work`, or in an `interrupt`.
    pub timer_signals_are_raised_by: Option<String>,
    /// The interpreter whose frames are read, or why they are not.
    pub interpreter: Option<String>,
}

/// Recordings of an agent.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Recordings {
    /// Under way.
    pub running: u64,
}

/// Threads of an agent's process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Threads {
    /// Of which the kernel does not say whether they are blocked.
    pub without_syscall_file: u64,
    /// Names of those that run with the agent's signal blocked.
    pub run_with_our_signal_blocked: Vec<String>,
    /// Names of those that a signal might kill.
    pub must_not_be_signalled: Vec<String>,
    /// Names of those whose CPU time is not sampled, because they run in step with the kernel's
    /// tick.
    pub in_step_with_the_kernels_tick: Vec<String>,
}

/// Samples of an agent, of all recordings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Samples {
    /// Taken.
    pub taken: u64,
    /// Stacks that do not reach the thread's root.
    pub truncated: u64,
    /// Thrown away because the client was too slow.
    pub dropped: u64,
    /// Told by the threads' clocks.
    pub filled: u64,
    /// Made likely by the threads' clocks.
    pub inferred: u64,
    /// CPU time of threads that no sample met.
    pub unsampled_cpu_ns: u64,
    /// Time ready to run without a CPU.
    pub cpu_wait_ns: u64,
}

/// Ticks of an agent, of all recordings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ticks {
    /// At which threads were observed.
    pub taken: u64,
    /// Left out because the agent came too late.
    pub late: u64,
}

/// How an agent had its stacks, of all recordings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Stacks {
    /// Timers that hit running threads.
    pub timers_armed: u64,
    /// Timers that the kernel did not make.
    pub timers_refused: u64,
}

/// What the kernel refuses where no thread gets a timer, and what to do.
pub const NO_TIMERS: (&str, &str) = (
    "the kernel refuses the timers that sample running threads (a seccomp filter forbids timer_create), or half of RLIMIT_SIGPENDING (`ulimit -i`) is used: the rest is the program's",
    "start it with a higher `ulimit -i`, or under a filter that lets timer_create pass; --idle records what waits all the same",
);

/// How the agent says that an interpreter's frames are not read.
const UNREAD: &str = "shown as the interpreter's functions";

impl Status {
    /// Why the functions of the program's language are missing, if the agent has found one.
    pub fn unread(&self) -> Option<String> {
        self.interpreter.clone().filter(|text| text.ends_with(UNREAD))
    }

    /// Why threads that ran could not be sampled, and what to do, if the agent knows.
    pub fn hindrance(&self) -> Option<(String, &'static str)> {
        let Stacks { timers_armed, timers_refused } = self.stacks;
        if timers_armed == 0 && timers_refused > 0 {
            return Some((NO_TIMERS.0.to_owned(), NO_TIMERS.1));
        }
        let threads = &self.threads;
        let reasons = [
            (
                &threads.run_with_our_signal_blocked,
                "run with the agent's signal blocked",
                "have them block signals by pthread_sigmask(3), not by system calls of their own; io_uring's (iou-wrk) are the kernel's, and have no stack",
            ),
            (
                &threads.must_not_be_signalled,
                "must not be signalled (small alternate stack, split stacks, or a seccomp filter)",
                "alternate stacks of 8 KiB or more; --idle shows where such threads wait",
            ),
            (
                &threads.in_step_with_the_kernels_tick,
                "run in step with the kernel's tick",
                "--source preempt samples them, and may end their system calls early",
            ),
        ];
        let (names, why, next) = reasons.into_iter().find(|(names, ..)| !names.is_empty())?;
        Some((format!("threads {why}: {}", names.join(", ")), next))
    }
}
