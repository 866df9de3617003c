//! The one list of formats. Not here: what they do (a file each).

use crate::{
    Format, Options, dump, firefox, folded, html, json_dump, perf_script, pprof, raw, speedscope, svg,
};

/// A format as the server, the command line and the documentation know it.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// The name to ask for it by.
    pub name: &'static str,
    /// Other names it answers to.
    pub aliases: &'static [&'static str],
    /// MIME type of its output.
    pub mime: &'static str,
    /// File name suffix, without the leading dot.
    pub suffix: &'static str,
    /// One phrase for a help text.
    pub description: &'static str,
    /// Samples are written as they come; otherwise all is written at the end.
    pub streams: bool,
    /// Makes a writer for one recording.
    pub make: fn(&Options) -> Box<dyn Format>,
}

/// Every format.
pub static FORMATS: &[FormatInfo] = &[
    FormatInfo {
        name: "perf",
        aliases: &["perfSymbolized", "perf-script"],
        mime: "text/plain; charset=utf-8",
        suffix: "perf",
        description: "text like perf script's, for Firefox Profiler, speedscope, FlameGraph",
        streams: true,
        make: perf_script::make,
    },
    FormatInfo {
        name: "folded",
        aliases: &["flamegraphCollapsedSymbolized", "collapsed"],
        mime: "text/plain; charset=utf-8",
        suffix: "folded",
        description: "one line a distinct stack with its samples, or its nanoseconds of CPU time, for flame graphs",
        streams: false,
        make: folded::make,
    },
    FormatInfo {
        name: "pprof",
        aliases: &["pprofSymbolized"],
        mime: "application/octet-stream",
        suffix: "pb.gz",
        description: "gzip'd pprof profile, for go tool pprof, Grafana, Parca",
        streams: false,
        make: pprof::make,
    },
    FormatInfo {
        name: "firefox",
        aliases: &["gecko"],
        mime: "application/json",
        suffix: "firefox.json",
        description: "all that profiler.firefox.com can show: inlines, lines, states, CPU time",
        streams: false,
        make: firefox::make,
    },
    FormatInfo {
        name: "speedscope",
        aliases: &[],
        mime: "application/json",
        suffix: "speedscope.json",
        description: "for speedscope.app: a profile for each thread, in the order of time",
        streams: false,
        make: speedscope::make,
    },
    FormatInfo {
        name: "svg",
        aliases: &["flamegraph", "flamegraph.svg"],
        mime: "image/svg+xml",
        suffix: "svg",
        description: "a flame graph as a picture that can be searched and zoomed in a browser",
        streams: false,
        make: svg::make,
    },
    FormatInfo {
        name: "html",
        aliases: &["flamegraph.html"],
        mime: "text/html; charset=utf-8",
        suffix: "html",
        description: "a flame graph as one page: threads over time, search, zoom, inverted",
        streams: false,
        make: html::make,
    },
    FormatInfo {
        name: "raw",
        aliases: &["jsonl"],
        mime: "application/x-ndjson",
        suffix: "jsonl",
        description: "JSON lines with addresses, modules and build ids, for programs of your own",
        streams: true,
        make: raw::make,
    },
    FormatInfo {
        name: "dump",
        aliases: &[],
        mime: "text/plain; charset=utf-8",
        suffix: "txt",
        description: "every stack as readable text",
        streams: true,
        make: dump::make,
    },
    FormatInfo {
        name: "json",
        aliases: &[],
        mime: "application/json",
        suffix: "dump.json",
        description: "every stack in one JSON object",
        streams: true,
        make: json_dump::make,
    },
];

/// The format of that name or alias; letter case does not matter.
pub fn find(name: &str) -> Option<&'static FormatInfo> {
    FORMATS.iter().find(|info| {
        info.name.eq_ignore_ascii_case(name)
            || info.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })
}

/// The format that a file's name selects: the longest suffix that fits. `.json` alone is
/// Firefox's, as the
/// path `/profile.json` is.
pub fn of_file(name: &str) -> Option<&'static FormatInfo> {
    let by_suffix = FORMATS.iter().map(|format| (format.suffix, format));
    let all = by_suffix.chain(find("firefox").map(|format| ("json", format)));
    let fits = all.filter(|(suffix, _)| {
        name.strip_suffix(suffix).is_some_and(|before| before.ends_with('.') || before.is_empty())
    });
    fits.max_by_key(|(suffix, _)| suffix.len()).map(|(_, format)| format)
}

/// A format together with the choices made about it.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Which format.
    pub format: &'static FormatInfo,
    /// How it is to be written.
    pub options: Options,
}
