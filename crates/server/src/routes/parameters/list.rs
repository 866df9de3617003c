//! The one list of parameters, for queries, for the JSON body, and for the help.

use super::RecordingParams;
use super::texts::{format, id, once, regex, states, tids, title};
use crate::recording::{SampleSource, ShownFrames, Symbolize};
use crate::routes::values::{self, MAX_TICKS, SECOND_NS};
use swipr_formats::model::Mode;
use swipr_formats::{Names, Weight};

/// A parameter of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// The field of a JSON request that sets it.
    pub(crate) json: Option<&'static str>,
    pub(crate) values: &'static str,
    pub(crate) meaning: &'static str,
    pub(super) set: fn(&mut RecordingParams, &str) -> Result<(), String>,
}

/// Names of [`Symbolize`].
const SYMBOLIZERS: [(&str, Symbolize); 3] =
    [("native", Symbolize::Now), ("lazy", Symbolize::Lazy), ("fake", Symbolize::Never)];

/// Every parameter.
pub(crate) static PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "seconds",
        json: None,
        values: "number",
        meaning: "how long (30 unless `samples` is given; `swipr record`: until Ctrl-C), at most 86400",
        set: |params, text| once(&mut params.duration_ns, values::duration(text, SECOND_NS)),
    },
    Parameter {
        name: "samples",
        json: Some("numberOfSamples"),
        values: "number",
        meaning: "how many ticks, instead of `seconds`; at most 10000000",
        set: |params, text| once(&mut params.ticks, values::count(text, 1..=MAX_TICKS)),
    },
    Parameter {
        name: "hz",
        json: None,
        values: "number",
        meaning: "ticks a second (100), at most 10000",
        set: |params, text| once(&mut params.interval_ns, values::interval_of_hertz(text)),
    },
    Parameter {
        name: "rate",
        json: None,
        values: "number",
        meaning: "another name of `hz`",
        set: |params, text| once(&mut params.interval_ns, values::interval_of_hertz(text)),
    },
    Parameter {
        name: "interval",
        json: Some("timeInterval"),
        values: "time",
        meaning: "time between ticks, instead of `hz`: `10ms`, `500us`, `0.5s`; from 100us to 1h",
        set: |params, text| once(&mut params.interval_ns, values::interval(text)),
    },
    Parameter {
        name: "mode",
        json: Some("mode"),
        values: "wall, cpu",
        meaning: "every thread by the clock on the wall (wall, the default: what hangs uses no CPU), or those that use CPU \
                  time (cpu, the default of Go's /debug/pprof/profile and of `swipr record`, as of py-spy)",
        set: |params, text| {
            let mode = values::choice(text, &[("wall", Mode::Wall), ("cpu", Mode::Cpu)]);
            once(&mut params.mode, mode)
        },
    },
    Parameter {
        name: "source",
        json: Some("source"),
        values: "timer, preempt",
        meaning: "what hits running threads: a timer on the thread's CPU clock at the kernel's ticks (timer), or a signal at any \
                  moment (preempt): also threads in step with the tick, but it may end a system call early",
        set: |params, text| {
            let sources = [("timer", SampleSource::Timer), ("preempt", SampleSource::Preempt)];
            once(&mut params.source, values::choice(text, &sources))
        },
    },
    Parameter {
        name: "format",
        json: Some("format"),
        values: "see formats",
        meaning: "what comes back",
        set: |params, text| once(&mut params.format, format(text)),
    },
    Parameter {
        name: "threads",
        json: Some("threads"),
        values: "regex",
        meaning: "only threads whose name matches",
        set: |params, text| once(&mut params.threads, regex(text)),
    },
    Parameter {
        name: "tid",
        json: Some("tid"),
        values: "numbers",
        meaning: "only these threads, by their kernel ids, separated by commas",
        set: |params, text| once(&mut params.tids, tids(text)),
    },
    Parameter {
        name: "may_come",
        json: Some("mayCome"),
        values: "true, false",
        meaning: "threads that `threads` or `tid` ask for may come later; else there must be one now (false)",
        set: |params, text| once(&mut params.may_come, values::switch(text)),
    },
    Parameter {
        name: "state",
        json: Some("state"),
        values: "running, waiting, blocked",
        meaning: "only samples of threads that run, wait for a CPU, or are blocked; several separated by commas",
        set: |params, text| once(&mut params.states, states(text)),
    },
    Parameter {
        name: "include",
        json: Some("include"),
        values: "regex",
        meaning: "only stacks with a function whose name matches",
        set: |params, text| once(&mut params.include, regex(text)),
    },
    Parameter {
        name: "exclude",
        json: Some("exclude"),
        values: "regex",
        meaning: "no stacks with a function whose name matches",
        set: |params, text| once(&mut params.exclude, regex(text)),
    },
    Parameter {
        name: "names",
        json: Some("names"),
        values: "safe, raw, mangled",
        meaning: "function names: shortened, as demangled, or as in the object file",
        set: |params, text| {
            let names = [("safe", Names::Safe), ("raw", Names::Raw), ("mangled", Names::Mangled)];
            once(&mut params.names, values::choice(text, &names))
        },
    },
    Parameter {
        name: "lines",
        json: Some("lines"),
        values: "true, false",
        meaning: "write source files and lines where they are known (false)",
        set: |params, text| once(&mut params.lines, values::switch(text)),
    },
    Parameter {
        name: "inline",
        json: Some("inline"),
        values: "true, false",
        meaning: "show inlined functions as frames of their own (true)",
        set: |params, text| once(&mut params.inline, values::switch(text)),
    },
    Parameter {
        name: "max_depth",
        json: Some("maxDepth"),
        values: "number",
        meaning: "keep so many frames of a stack, from 2; the middle goes",
        set: |params, text| once(&mut params.max_depth, values::count(text, 2..=1_000_000)),
    },
    Parameter {
        name: "frames",
        json: Some("frames"),
        values: "merged, interpreter, native",
        meaning: "of interpreted programs and JIT code: the language's functions between native ones (merged), the language's \
                  alone (interpreter; stacks without any keep theirs), or native ones alone (native; not of /last)",
        set: |params, text| {
            let frames = [
                ("merged", ShownFrames::Merged),
                ("interpreter", ShownFrames::Interpreter),
                ("native", ShownFrames::Native),
            ];
            once(&mut params.frames, values::choice(text, &frames))
        },
    },
    Parameter {
        name: "title",
        json: Some("title"),
        values: "text",
        meaning: "a title, where the format has room for one",
        set: |params, text| once(&mut params.title, title(text)),
    },
    Parameter {
        name: "merge_threads",
        json: Some("mergeThreads"),
        values: "true, false",
        meaning: "do not tell threads apart (false)",
        set: |params, text| once(&mut params.merge_threads, values::switch(text)),
    },
    Parameter {
        name: "weight",
        json: Some("weight"),
        values: "samples, ns",
        meaning: "what the counts of `folded` count (samples in wall mode, nanoseconds of CPU time in CPU mode)",
        set: |params, text| {
            let weights = [("samples", Weight::Samples), ("ns", Weight::Nanoseconds)];
            once(&mut params.weight, values::choice(text, &weights))
        },
    },
    Parameter {
        name: "states",
        json: Some("states"),
        values: "true, false",
        meaning: "wall mode, `perf` and `folded`: the leaf tells what a thread waits for, `[blocked in futex]` (true)",
        set: |params, text| once(&mut params.leaf_states, values::switch(text)),
    },
    Parameter {
        name: "compat",
        json: Some("compat"),
        values: "true, false",
        meaning: "perf text in swift-profile-recorder's shape, without periods (true for its JSON in wall mode, else false)",
        set: |params, text| once(&mut params.compat, values::switch(text)),
    },
    Parameter {
        name: "id",
        json: Some("id"),
        values: "text",
        meaning: "a name for `POST /stop?id=…`, which ends the recording early; at most 64 letters, digits, `-`, `_`",
        set: |params, text| once(&mut params.id, id(text)),
    },
    Parameter {
        name: "symbolizer",
        json: Some("symbolizer"),
        values: "native, lazy, fake",
        meaning: "`fake` looks no names up: frames have their address and module, in `folded` the module only; `lazy` only those of JIT code, for `raw` to be named elsewhere",
        set: |params, text| once(&mut params.symbolize, values::choice(text, &SYMBOLIZERS)),
    },
    Parameter {
        name: "symbolize",
        json: None,
        values: "native, lazy, fake",
        meaning: "another name of `symbolizer`",
        set: |params, text| once(&mut params.symbolize, values::choice(text, &SYMBOLIZERS)),
    },
    Parameter {
        name: "duration_ms",
        json: Some("durationMs"),
        values: "number",
        meaning: "how long, in milliseconds",
        set: |params, text| once(&mut params.duration_ns, values::duration(text, SECOND_NS / 1000)),
    },
];

/// Whether there is a parameter of that name.
pub(crate) fn is_listed(name: &str) -> bool {
    PARAMETERS.iter().any(|parameter| parameter.name == name)
}
