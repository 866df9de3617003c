//! Which figure of `/status` is which metric. Names as Prometheus wants them: base units, `_total`
//! where a figure only grows.

use crate::counters::AgentCounters;
use crate::histogram::Histogram;

/// Metrics of one name.
#[derive(Debug)]
pub struct Family {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    /// The label that distinguishes its samples; empty where there is one only.
    pub label: &'static str,
    pub sources: &'static [Source],
}

/// Where a value is in `/status`: a number, an object (a sample for each of its numbers), or a list
/// (its length).
#[derive(Debug)]
pub struct Source {
    /// A JSON pointer.
    pub at: &'static str,
    pub label_value: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
}

impl MetricKind {
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
        }
    }
}

impl Family {
    /// `/status` has nanoseconds, and says so in its fields' names.
    pub fn value(&self, number: f64) -> f64 {
        let in_ns = self.sources.iter().all(|source| source.at.ends_with("_ns"));
        if in_ns { number / 1e9 } else { number }
    }
}

const fn one(
    name: &'static str,
    kind: MetricKind,
    sources: &'static [Source; 1],
    help: &'static str,
) -> Family {
    Family { name, kind, help, label: "", sources }
}

const fn at(at: &'static str) -> [Source; 1] {
    [Source { at, label_value: "" }]
}

const fn labelled(label_value: &'static str, at: &'static str) -> Source {
    Source { at, label_value }
}

use MetricKind::{Counter, Gauge};

/// All but the histograms.
pub static FAMILIES: &[Family] = &[
    one("swipr_uptime_seconds", Gauge, &at("/uptime_seconds"), "How long the agent has been there."),
    one("swipr_recordings_running", Gauge, &at("/recordings/running"), "Recordings under way."),
    one("swipr_recordings_total", Counter, &at("/recordings/started"), "Recordings started."),
    one("swipr_threads", Gauge, &at("/threads/sampled"), "Threads at the last sweep."),
    one(
        "swipr_threads_without_syscall_file",
        Gauge,
        &at("/threads/without_syscall_file"),
        "Threads of which the kernel does not say where they are blocked.",
    ),
    one(
        "swipr_threads_with_signal_blocked",
        Gauge,
        &at("/threads/run_with_our_signal_blocked"),
        "Threads that run with the agent's signal blocked and are seen in system calls only.",
    ),
    one(
        "swipr_threads_not_signalled",
        Gauge,
        &at("/threads/must_not_be_signalled"),
        "Threads that a signal might kill (a small alternate stack, a seccomp filter) and that are seen in system calls only.",
    ),
    one(
        "swipr_threads_in_step",
        Gauge,
        &at("/threads/in_step_with_the_kernels_tick"),
        "Threads that run in step with the kernel's tick, so that their CPU time is not sampled.",
    ),
    one(
        "swipr_kernel_tick_seconds",
        Gauge,
        &at("/kernel_tick_ns"),
        "Time between two ticks of the kernel (1/HZ).",
    ),
    one("swipr_ticks_total", Counter, &at("/ticks/taken"), "Ticks of all recordings."),
    one(
        "swipr_ticks_late_total",
        Counter,
        &at("/ticks/late"),
        "Ticks left out because the agent came too late.",
    ),
    one("swipr_samples_total", Counter, &at("/samples/taken"), "Samples of all recordings."),
    Family {
        name: "swipr_samples_lost_total",
        kind: Counter,
        help: "Samples that were not written in time (dropped).",
        label: "reason",
        sources: &[labelled("dropped", "/samples/dropped")],
    },
    one(
        "swipr_samples_truncated_total",
        Counter,
        &at("/samples/truncated"),
        "Samples whose stack does not reach the thread's root.",
    ),
    one(
        "swipr_unsampled_cpu_seconds_total",
        Counter,
        &at("/samples/unsampled_cpu_ns"),
        "CPU time for which no stack could be taken.",
    ),
    one(
        "swipr_samples_filled_total",
        Counter,
        &at("/samples/filled"),
        "Wall mode: samples for late ticks, told by the threads' clocks.",
    ),
    one(
        "swipr_samples_inferred_total",
        Counter,
        &at("/samples/inferred"),
        "Wall mode: samples that the threads' clocks make likely and do not prove.",
    ),
    one(
        "swipr_cpu_wait_seconds_total",
        Counter,
        &at("/samples/cpu_wait_ns"),
        "Time that recorded threads were ready to run and got no CPU.",
    ),
    one("swipr_sweeps_total", Counter, &at("/sweeps"), "Passes over the threads."),
    Family {
        name: "swipr_stacks_total",
        kind: Counter,
        help: "Stacks, by how they were taken: copied (blocked threads), reused (threads that had not run), signalled (running threads).",
        label: "by",
        sources: &[
            labelled("copy", "/stacks/copied"),
            labelled("reuse", "/stacks/reused"),
            labelled("signal", "/stacks/timers_answered"),
        ],
    },
    one(
        "swipr_copies_discarded_total",
        Counter,
        &at("/stacks/moved_while_copied"),
        "Copies thrown away because the thread woke up meanwhile.",
    ),
    one(
        "swipr_timers_armed_total",
        Counter,
        &at("/stacks/timers_armed"),
        "Times that a thread's timer was armed, to hit it if it runs at the kernel's next tick.",
    ),
    one(
        "swipr_timers_refused_total",
        Counter,
        &at("/stacks/timers_refused"),
        "Timers that were not made: half of RLIMIT_SIGPENDING is used, or the kernel refused.",
    ),
    Family {
        name: "swipr_walks_total",
        kind: Counter,
        help: "Walks of stacks, by why they ended.",
        label: "end",
        sources: &at("/walks_ended"),
    },
    Family {
        name: "swipr_interpreted_walks_total",
        kind: Counter,
        help: "Walks of an interpreter's frames, by how they ended.",
        label: "end",
        sources: &at("/interpreted_stacks"),
    },
    one(
        "swipr_agent_cpu_seconds_total",
        Counter,
        &at("/agent_cpu_ns"),
        "CPU time of the agent's own threads.",
    ),
    one("swipr_unwind_tables", Gauge, &at("/unwind_tables/objects"), "Object files with an unwind table."),
    one(
        "swipr_unwind_tables_without",
        Gauge,
        &at("/unwind_tables/without"),
        "Object files without an unwind table.",
    ),
    one("swipr_unwind_table_rows", Gauge, &at("/unwind_tables/rows"), "Rows of the unwind tables."),
    one("swipr_unwind_table_bytes", Gauge, &at("/unwind_tables/bytes"), "Size of the unwind tables."),
    one(
        "swipr_unwind_table_build_seconds",
        Gauge,
        &at("/unwind_tables/build_ns"),
        "Time it took to make the unwind tables.",
    ),
    one(
        "swipr_frame_registrations_not_noted_total",
        Counter,
        &at("/unwind_tables/registrations_not_noted"),
        "Frame descriptions that the program registered beyond what there is room for.",
    ),
    one("swipr_symbol_objects", Gauge, &at("/symbols/objects"), "Object files whose symbols are held."),
    one("swipr_symbol_bytes", Gauge, &at("/symbols/bytes"), "Memory that symbols take."),
    Family {
        name: "swipr_symbol_files_passed_over_total",
        kind: Counter,
        help: "Object files, or separate files of debug information, that were passed over, by why.",
        label: "reason",
        sources: &[
            labelled("refused", "/symbols/refused_files"),
            labelled("unreadable", "/symbols/unreadable_files"),
        ],
    },
    Family {
        name: "swipr_symbol_objects_without_total",
        kind: Counter,
        help: "Object files without symbols, or without lines.",
        label: "what",
        sources: &[
            labelled("symbols", "/symbols/without_symbols"),
            labelled("lines", "/symbols/without_lines"),
        ],
    },
    one(
        "swipr_symbol_objects_dropped_total",
        Counter,
        &at("/symbols/dropped_objects"),
        "Object files whose symbols were given up for want of memory.",
    ),
    one("swipr_jit_code_bytes", Gauge, &at("/jit_code/bytes"), "Memory that names of JIT code take."),
    one(
        "swipr_jit_code_refused_total",
        Counter,
        &at("/jit_code/refused"),
        "Functions of JIT code that have no name for want of memory.",
    ),
];

type Named = (&'static str, &'static str, fn(&AgentCounters) -> &Histogram);

/// Durations.
pub static HISTOGRAMS: &[Named] = &[
    ("swipr_hold_seconds", "How long the signal handler held a thread.", |counters| &counters.held),
    ("swipr_sweep_seconds", "How long a pass over the threads took.", |counters| &counters.sweep),
];

/// Figures of `/status` that are no metrics: identities, and percentiles of what are histograms
/// here.
#[cfg(test)]
pub const NOT_METRICS: &[&str] = &["/pid", "/not_listening", "/held", "/sweep"];
