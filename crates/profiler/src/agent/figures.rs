//! Every figure of the agent, once: where it is in `/status`, and which metric it is. Metrics have
//! names as Prometheus wants them: base units, `_total` where a figure only grows.

use super::Agent;
use crate::agent_threads;
use crate::counters::AgentCounters;
use crate::histogram::{Histogram, Percentiles};
use crate::registered_frames;
use serde_json::{Map, Value, json};
use swipr_formats::Decimal;
use swipr_formats::model::Summary;
use swipr_os::{cpu_timers, disabled, process, timer_delivery};
use swipr_symbols::symbolizer::Stats;

/// What the agent says of itself at one moment.
pub struct Snapshot<'a> {
    agent: &'a Agent,
    running: usize,
    /// Of all recordings, also those that ended.
    recorded: Summary,
    /// What is held of object files; `None`: a writer symbolizes now, and nobody waits for it.
    symbols: Option<Stats>,
    /// Bytes of names of JIT code, and how many functions have none for want of memory.
    jit_code: Option<(usize, u64)>,
}

impl<'a> Snapshot<'a> {
    /// As it is now.
    pub fn of(agent: &'a Agent) -> Snapshot<'a> {
        let (running, recorded) = agent.recorded();
        let symbols = agent.symbolizer.try_lock().ok().map(|symbolizer| symbolizer.stats());
        let jit_code = agent.jit_code.try_lock().ok().map(|jit| (jit.bytes(), jit.refused()));
        Snapshot { agent, running, recorded: recorded.summary(), symbols, jit_code }
    }

    /// What it counted since it started.
    pub fn counters(&self) -> &'a AgentCounters {
        &self.agent.counters
    }

    fn symbols<T: Into<Value>>(&self, figure: impl FnOnce(&Stats) -> T) -> Value {
        self.symbols.as_ref().map(figure).map_or(Value::Null, Into::into)
    }

    fn table(&self, at: usize) -> Value {
        self.counters().tables.get(at).map(|counter| counter.get()).into()
    }
}

/// A figure. Null: not known now.
#[derive(Debug)]
pub struct Figure {
    /// Its place in `/status`, with slashes.
    pub at: &'static str,
    pub value: fn(&Snapshot<'_>) -> Value,
    /// `None`: it is in `/status` alone.
    pub metric: Option<Metric>,
}

/// A number, an object (a sample for each of its numbers), or a list (its length), as a metric.
#[derive(Debug)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub help: &'static str,
    /// The label that distinguishes samples of one name; empty where there is one only.
    pub label: &'static str,
    /// The label's value; empty: the names in the object are.
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

type Read = fn(&Snapshot<'_>) -> Value;

const fn plain(at: &'static str, value: Read) -> Figure {
    Figure { at, value, metric: None }
}

const fn metric(
    at: &'static str,
    value: Read,
    kind: MetricKind,
    name: &'static str,
    help: &'static str,
) -> Figure {
    Figure { at, value, metric: Some(Metric { name, kind, help, label: "", label_value: "" }) }
}

const fn gauge(at: &'static str, value: Read, name: &'static str, help: &'static str) -> Figure {
    metric(at, value, MetricKind::Gauge, name, help)
}

const fn counter(at: &'static str, value: Read, name: &'static str, help: &'static str) -> Figure {
    metric(at, value, MetricKind::Counter, name, help)
}

impl Figure {
    /// One of several samples of its metric.
    const fn labelled(mut self, label: &'static str, label_value: &'static str) -> Figure {
        if let Some(metric) = &mut self.metric {
            metric.label = label;
            metric.label_value = label_value;
        }
        self
    }

    /// `/status` has nanoseconds, and says so in its fields' names.
    pub fn base_unit(&self, number: u64) -> Decimal {
        if self.at.ends_with("_ns") { seconds(number) } else { Decimal::new(number, 0) }
    }
}

/// Nanoseconds as seconds.
pub fn seconds(ns: u64) -> Decimal {
    Decimal::new(ns, 9).trimmed()
}

const STACKS: &str = "Stacks, by how they were taken: copied (blocked threads), reused (threads that had not run), signalled (running threads).";
const FILES: &str = "Object files, or separate files of debug information, that were passed over, by why.";
const WITHOUT: &str = "Object files without symbols, or without lines.";

/// All of them; those of one metric follow each other.
#[rustfmt::skip] // a row each
pub static FIGURES: &[Figure] = &[
    plain("version", |_| env!("CARGO_PKG_VERSION").into()),
    plain("pid", |_| process::pid().into()),
    plain("address", |now| json!(now.agent.address())),
    plain("not_listening", |now| json!(now.agent.not_listening.get().map_or(&[][..], Vec::as_slice))),
    plain("off", |_| disabled::reason().into()),
    plain("blocked_threads_are_sampled_by", |now| blocked_threads_by(now.counters().unreadable.get()).into()),
    plain("timer_signals_are_raised_by", |_| timer_delivery::measured().map(timer_delivery::Delivery::name).into()),
    plain("interpreter", |now| now.counters().interpreter().into()),
    plain("held", |now| durations(&now.counters().held)),
    plain("sweep", |now| durations(&now.counters().sweep)),
    gauge("uptime_seconds", |now| now.agent.started.elapsed().as_secs().into(),
        "swipr_uptime_seconds", "How long the agent has been there."),
    gauge("recordings/running", |now| now.running.into(),
        "swipr_recordings_running", "Recordings under way."),
    counter("recordings/started", |now| now.counters().recordings.get().into(),
        "swipr_recordings_total", "Recordings started."),
    gauge("threads/sampled", |now| now.counters().threads.get().into(),
        "swipr_threads", "Threads at the last sweep."),
    gauge("threads/without_syscall_file", |now| now.counters().unreadable.get().into(),
        "swipr_threads_without_syscall_file", "Threads of which the kernel does not say where they are blocked."),
    gauge("threads/run_with_our_signal_blocked", |now| now.counters().signal_blockers().into(),
        "swipr_threads_with_signal_blocked", "Threads that run with the agent's signal blocked and are seen in system calls only."),
    gauge("threads/must_not_be_signalled", |now| now.counters().excluded().into(),
        "swipr_threads_not_signalled", "Threads that a signal might kill (a small alternate stack, split stacks, a seccomp filter) and that are seen in system calls only."),
    gauge("threads/in_step_with_the_kernels_tick", |now| now.counters().in_step().into(),
        "swipr_threads_in_step", "Threads that run in step with the kernel's tick, so that their CPU time is not sampled."),
    gauge("kernel_tick_ns", |_| cpu_timers::kernel_tick_ns().into(),
        "swipr_kernel_tick_seconds", "Time between two ticks of the kernel (1/HZ)."),
    counter("ticks/taken", |now| now.recorded.ticks.into(),
        "swipr_ticks_total", "Ticks of all recordings."),
    counter("ticks/late", |now| now.recorded.late.into(),
        "swipr_ticks_late_total", "Ticks left out because the agent came too late."),
    counter("samples/taken", |now| now.recorded.samples.into(),
        "swipr_samples_total", "Samples of all recordings."),
    counter("samples/dropped", |now| now.recorded.dropped.into(),
        "swipr_samples_lost_total", "Samples that were not written in time (dropped).").labelled("reason", "dropped"),
    counter("samples/truncated", |now| now.recorded.truncated.into(),
        "swipr_samples_truncated_total", "Samples whose stack does not reach the thread's root."),
    counter("samples/unsampled_cpu_ns", |now| now.recorded.unsampled_cpu_ns.into(),
        "swipr_unsampled_cpu_seconds_total", "CPU time for which no stack could be taken."),
    counter("samples/filled", |now| now.recorded.filled.into(),
        "swipr_samples_filled_total", "Wall mode: samples for late ticks, by the threads' clocks."),
    counter("samples/inferred", |now| now.recorded.inferred.into(),
        "swipr_samples_inferred_total", "Wall mode: samples that the threads' clocks make likely and do not prove."),
    counter("samples/cpu_wait_ns", |now| now.recorded.cpu_wait_ns.into(),
        "swipr_cpu_wait_seconds_total", "Time that recorded threads were ready to run and got no CPU."),
    counter("sweeps", |now| now.counters().sweeps.get().into(),
        "swipr_sweeps_total", "Passes over the threads."),
    counter("stacks/copied", |now| now.counters().copied.get().into(), "swipr_stacks_total", STACKS).labelled("by", "copy"),
    counter("stacks/reused", |now| now.counters().reused.get().into(), "swipr_stacks_total", STACKS).labelled("by", "reuse"),
    counter("stacks/timers_answered", |now| now.counters().answered.get().into(), "swipr_stacks_total", STACKS).labelled("by", "signal"),
    counter("stacks/moved_while_copied", |now| now.counters().moved.get().into(),
        "swipr_copies_discarded_total", "Copies thrown away because the thread woke up meanwhile."),
    counter("stacks/timers_armed", |now| now.counters().signals.get().into(),
        "swipr_timers_armed_total", "Times that a thread's timer was armed, to hit it if it runs at the kernel's next tick."),
    counter("stacks/timers_refused", |now| now.counters().refused.get().into(),
        "swipr_timers_refused_total", "Timers that were not made: half of RLIMIT_SIGPENDING is used, or the kernel refused."),
    counter("walks_ended", |now| counts(now.counters().stops().map(|(stop, count)| (stop.text(), count))),
        "swipr_walks_total", "Walks of stacks, by why they ended.").labelled("end", ""),
    counter("interpreted_stacks", |now| counts(now.counters().interpreted_ends().map(|(end, count)| (end.text(), count))),
        "swipr_interpreted_walks_total", "Walks of an interpreter's frames, by how they ended.").labelled("end", ""),
    counter("agent_cpu_ns", |_| agent_threads::cpu_ns().into(),
        "swipr_agent_cpu_seconds_total", "CPU time of the agent's own threads."),
    gauge("unwind_tables/objects", |now| now.table(0), "swipr_unwind_tables", "Object files with unwind information."),
    gauge("unwind_tables/without", |now| now.table(4), "swipr_unwind_tables_without", "Object files without unwind information."),
    gauge("unwind_tables/rows", |now| now.table(1), "swipr_unwind_table_rows", "Rows of the unwind tables; an object has one once its look-ups pay for it."),
    gauge("unwind_tables/bytes", |now| now.table(2), "swipr_unwind_table_bytes", "Size of the unwind tables, and of the frame descriptions that are used before."),
    gauge("unwind_tables/build_ns", |now| now.table(3), "swipr_unwind_table_build_seconds", "Time it took to make the unwind tables."),
    counter("unwind_tables/registrations_dropped", |_| registered_frames::dropped().into(),
        "swipr_frame_registrations_dropped_total", "Frame descriptions that the program registered beyond what there is room for."),
    gauge("symbols/objects", |now| now.symbols(|stats| stats.objects),
        "swipr_symbol_objects", "Object files whose symbols are held."),
    gauge("symbols/bytes", |now| now.symbols(|stats| stats.bytes), "swipr_symbol_bytes", "Memory that symbols take."),
    counter("symbols/refused_files", |now| now.symbols(|stats| stats.refused_files),
        "swipr_symbol_files_passed_over_total", FILES).labelled("reason", "refused"),
    counter("symbols/unreadable_files", |now| now.symbols(|stats| stats.unreadable_files),
        "swipr_symbol_files_passed_over_total", FILES).labelled("reason", "unreadable"),
    counter("symbols/without_symbols", |now| now.symbols(|stats| stats.without_symbols),
        "swipr_symbol_objects_without_total", WITHOUT).labelled("what", "symbols"),
    counter("symbols/without_lines", |now| now.symbols(|stats| stats.without_lines),
        "swipr_symbol_objects_without_total", WITHOUT).labelled("what", "lines"),
    counter("symbols/dropped_objects", |now| now.symbols(|stats| stats.dropped_objects),
        "swipr_symbol_objects_dropped_total", "Object files whose symbols were given up for want of memory."),
    gauge("jit_code/bytes", |now| now.jit_code.map(|(bytes, _)| bytes).into(),
        "swipr_jit_code_bytes", "Memory that names of JIT code take."),
    counter("jit_code/refused", |now| now.jit_code.map(|(_, refused)| refused).into(),
        "swipr_jit_code_refused_total", "Functions of JIT code that have no name for want of memory."),
];

type Named = (&'static str, &'static str, fn(&AgentCounters) -> &Histogram);

/// Durations, of which `/status` has the percentiles.
pub const HISTOGRAMS: &[Named] = &[
    ("swipr_hold_seconds", "How long the signal handler held a thread.", |counters| &counters.held),
    ("swipr_sweep_seconds", "How long a pass over the threads took.", |counters| &counters.sweep),
];

fn counts<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> Value {
    let mut object = Map::new();
    counts.for_each(|(name, count)| _ = object.insert(name.to_owned(), count.into()));
    object.into()
}

fn durations(histogram: &Histogram) -> Value {
    let Percentiles { count, p50_ns, p99_ns, largest_ns } = histogram.figures();
    json!({ "count": count, "p50_ns": p50_ns, "p99_ns": p99_ns, "largest_ns": largest_ns })
}

/// How blocked threads are sampled. For a process that is not dumpable the kernel does not say
/// where they are blocked.
fn blocked_threads_by(without_syscall_file: u64) -> &'static str {
    if without_syscall_file == 0 { "copy" } else { "nothing" }
}
