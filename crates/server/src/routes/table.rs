//! The one list of routes.

use super::{Route, Strictness, go, plain, recordings};
use crate::proto::head::Method::{Get, Post};

/// Names of parameters, in the groups that several routes take.
pub(super) type Parameters = &'static [&'static [&'static str]];

const THREADS: &[&str] = &["threads", "tid"];
const LATER_THREADS: &[&str] = &["may_come"];
const SAMPLES: &[&str] = &["state", "include", "exclude"];
const FRAMES: &[&str] = &["names", "lines", "inline", "frames", "max_depth", "title"];
const STACKS: &[&str] = &["merge_threads", "weight", "states"];
const SYMBOLS: &[&str] = &["symbolizer", "symbolize"];

/// Parameters of every recording but its format, which is the last of them.
pub(super) const RECORDING: Parameters = match WITH_FORMAT.split_last() {
    Some((_format, others)) => others,
    None => &[],
};

const WITH_FORMAT: Parameters = &[
    &["seconds", "samples", "hz", "rate", "interval", "mode", "source"],
    THREADS,
    LATER_THREADS,
    SAMPLES,
    FRAMES,
    STACKS,
    &["compat", "id"],
    SYMBOLS,
    &["format"],
];

const LAST: Parameters = &[&["seconds", "format"], THREADS, SAMPLES, FRAMES, STACKS];

const MOMENT: Parameters = &[&["format"], THREADS, SAMPLES, FRAMES, SYMBOLS];

const GO: Parameters = &[
    &["seconds", "hz", "rate", "mode", "source"],
    THREADS,
    LATER_THREADS,
    SAMPLES,
    &["merge_threads", "frames", "max_depth"],
];

const LIVE: Parameters = &[
    &["seconds", "hz", "interval", "mode"],
    THREADS,
    LATER_THREADS,
    SAMPLES,
    &["lines", "inline", "frames", "max_depth"],
];

/// pprof puts `symbol` where a profile's path ends.
const SYMBOL: &[&str] = &["/debug/pprof/symbol", "/debug/pprof/symbolizer=fake/symbol", "/pprof/symbol"];

const fn get(paths: &'static [&'static str], does: &'static str, action: super::Action) -> Route {
    Route { method: Get, paths, does, parameters: &[], strictness: Strictness::Strict, action }
}

const fn recording(paths: &'static [&'static str], does: &'static str, action: super::Action) -> Route {
    Route { parameters: RECORDING, ..get(paths, does, action) }
}

const fn of_go(paths: &'static [&'static str], does: &'static str, action: super::Action) -> Route {
    Route { parameters: GO, strictness: Strictness::Go, ..get(paths, does, action) }
}

const fn of_go_at_once(paths: &'static [&'static str], does: &'static str, action: super::Action) -> Route {
    Route { parameters: &[], ..of_go(paths, does, action) }
}

/// Every route. Those for GET answer HEAD too.
pub(crate) static ROUTES: &[Route] = &[
    get(&["/"], "this help; a browser gets a page with a live flame graph", plain::help),
    Route {
        method: Post,
        ..get(
            &["/", "/sample", "/samples"],
            "a recording, asked for with swift-profile-recorder's JSON",
            recordings::sample,
        )
    },
    Route { parameters: WITH_FORMAT, ..get(&["/profile"], "a recording", recordings::profile) },
    recording(
        &["/flamegraph.html"],
        "a flame graph as a page: threads over time, search, zoom, inverted",
        recordings::named,
    ),
    recording(&["/flamegraph.svg"], "a flame graph as a picture", recordings::named),
    recording(
        &["/profile.json"],
        "for profiler.firefox.com, with inlines, lines, states and CPU time",
        recordings::named,
    ),
    recording(&["/profile.speedscope.json"], "for speedscope.app", recordings::named),
    recording(&["/profile.pb.gz"], "for go tool pprof and what reads its format", recordings::named),
    recording(&["/profile.folded"], "folded stacks", recordings::named),
    recording(&["/profile.perf"], "perf script's text", recordings::named),
    Route {
        parameters: LAST,
        ..get(
            &["/last"],
            "what happened in the last `seconds`, if SWIPR_CONTINUOUS keeps it",
            recordings::last,
        )
    },
    Route {
        parameters: MOMENT,
        ..get(&["/dump"], "every thread's stack now, as text or with format=json", recordings::dump)
    },
    Route {
        parameters: &[THREADS, &["state"]],
        ..get(&["/threads"], "every thread's name, state and place now, as JSON", recordings::threads)
    },
    get(
        &["/maps"],
        "the code in the process's memory: addresses, file offset, build id, path",
        recordings::maps,
    ),
    Route {
        parameters: LIVE,
        ..get(&["/live"], "what the live page draws: what is new, each second", recordings::live)
    },
    Route {
        method: Post,
        parameters: &[&["id"]],
        ..get(
            &["/stop"],
            "ends recordings of clients early, those with this `id` or those without one: they answer with what they have",
            plain::stop,
        )
    },
    get(&["/health"], "OK, or why the agent has turned itself off", plain::health),
    get(&["/status"], "the agent's state as JSON", plain::status),
    get(&["/metrics"], "the figures of /status for Prometheus", plain::metrics),
    of_go_at_once(&["/debug/pprof/"], "Go's pprof: what there is", go::index),
    of_go(
        &["/debug/pprof/profile"],
        "Go's pprof: CPU time, 30 s unless `seconds` says otherwise",
        go::profile,
    ),
    of_go(&["/debug/pprof/symbolizer=fake/profile"], "the same without names", go::unnamed_profile),
    of_go(&["/debug/pprof/goroutine"], "Go's pprof: every thread now; debug=1 or 2: as text", go::goroutine),
    of_go_at_once(
        &["/debug/pprof/cmdline", "/pprof/cmdline"],
        "the program's arguments, with a NUL between them",
        go::cmdline,
    ),
    of_go_at_once(SYMBOL, "names of addresses: `?0x1234+0x5678`", go::symbol_by_query),
    Route {
        method: Post,
        ..of_go_at_once(SYMBOL, "names of the addresses in the body: `0x1234+0x5678`", go::symbol_by_body)
    },
    of_go(&["/debug/fgprof"], "fgprof: wall-clock time as pprof, or format=folded", go::fgprof),
    of_go(&["/pprof/profile"], "gperftools' profile, for google-pprof", go::gperftools),
];
