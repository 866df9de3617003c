//! `/status`: what the agent is doing, and what it lost, as one JSON object. `/metrics` is made of
//! the same.

use super::Agent;
use crate::agent_threads;
use crate::histogram::{Histogram, Percentiles};
use crate::registered_frames;
use serde_json::{Map, Value, json};
use swipr_os::disabled;
use swipr_os::{cpu_timers, process, timer_delivery};

/// The whole object.
pub fn json(agent: &Agent) -> Value {
    let (running, recorded) = agent.recorded();
    let recorded = recorded.summary();
    let counters = &agent.counters;
    let stops: Map<String, Value> =
        counters.stops().map(|(stop, count)| (stop.text().into(), count.into())).collect();
    let [objects, rows, bytes, build_ns, failed] = counters.tables.each_ref().map(|counter| counter.get());
    let interpreted: Map<String, Value> =
        counters.interpreted_ends().map(|(end, count)| (end.text().into(), count.into())).collect();
    let unreadable = counters.unreadable.get();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": process::pid(),
        "address": agent.address(),
        "not_listening": agent.not_listening.get().map_or(&[][..], Vec::as_slice),
        "off": disabled::reason(),
        "uptime_seconds": agent.started.elapsed().as_secs(),
        "recordings": { "running": running, "started": counters.recordings.get() },
        "threads": { "sampled": counters.threads.get(), "without_syscall_file": unreadable, "run_with_our_signal_blocked": counters.signal_blockers(), "must_not_be_signalled": counters.excluded(), "in_step_with_the_kernels_tick": counters.in_step() },
        "blocked_threads_are_sampled_by": blocked_threads_by(unreadable),
        "kernel_tick_ns": cpu_timers::kernel_tick_ns(),
        "timer_signals_are_raised_by": timer_delivery::measured().map(timer_delivery::Delivery::name),
        "samples": {
            "taken": recorded.samples,
            "truncated": recorded.truncated,
            "dropped": recorded.dropped,
            "filled": recorded.filled,
            "inferred": recorded.inferred,
            "unsampled_cpu_ns": recorded.unsampled_cpu_ns,
            "cpu_wait_ns": recorded.cpu_wait_ns,
        },
        "ticks": { "taken": recorded.ticks, "late": recorded.late },
        "sweeps": counters.sweeps.get(),
        "stacks": {
            "copied": counters.copied.get(),
            "reused": counters.reused.get(),
            "moved_while_copied": counters.moved.get(),
            "timers_armed": counters.signals.get(),
            "timers_refused": counters.refused.get(),
            "timers_answered": counters.answered.get(),
        },
        "held": durations(&counters.held),
        "sweep": durations(&counters.sweep),
        "agent_cpu_ns": agent_threads::cpu_ns(),
        "walks_ended": stops,
        "unwind_tables": {
            "objects": objects, "without": failed, "rows": rows, "bytes": bytes, "build_ns": build_ns,
            "registrations_not_noted": registered_frames::not_noted(),
        },
        "symbols": symbols(agent),
        "jit_code": jit_code(agent),
        "interpreter": counters.interpreter(),
        "interpreted_stacks": interpreted,
    })
}

/// What is held of object files. A writer may be symbolizing right now; the server does not wait
/// for it.
fn symbols(agent: &Agent) -> Value {
    let Ok(symbolizer) = agent.symbolizer.try_lock() else { return json!("busy") };
    let stats = symbolizer.stats();
    json!({
        "objects": stats.objects,
        "bytes": stats.bytes,
        "refused_files": stats.refused_files,
        "unreadable_files": stats.unreadable_files,
        "without_symbols": stats.without_symbols,
        "without_lines": stats.without_lines,
        "dropped_objects": stats.dropped_objects,
    })
}

/// What is held of JIT code.
fn jit_code(agent: &Agent) -> Value {
    match agent.jit_code.try_lock() {
        Ok(made) => json!({ "bytes": made.bytes(), "refused": made.refused() }),
        Err(_) => json!("busy"),
    }
}

/// What handlers and sweeps took.
fn durations(histogram: &Histogram) -> Value {
    let Percentiles { count, p50_ns, p99_ns, largest_ns } = histogram.figures();
    json!({ "count": count, "p50_ns": p50_ns, "p99_ns": p99_ns, "largest_ns": largest_ns })
}

/// How blocked threads are sampled. For a process that is not dumpable the kernel does not say
/// where they are blocked.
fn blocked_threads_by(without_syscall_file: u64) -> &'static str {
    if without_syscall_file == 0 { "copy" } else { "nothing" }
}
