//! Firefox Profiler's own JSON (a "processed profile"): what perf text cannot carry. Addresses
//! within libraries with their debug ids, inlined functions, lines, categories, CPU time, and
//! thread states as markers. Written at the end; samples are kept in bounded memory
//! (`timeline.rs`), stacks as a tree.
//!
//! Its version is 55: every later importer upgrades it. Weights are milliseconds with all their
//! decimals. Not here: a thread's tables (`firefox/thread.rs`) and libraries
//! (`firefox/libraries.rs`).

mod libraries;
mod thread;

use std::sync::Arc;

use crate::category::Class;
use crate::jit_tier::Tier;
use crate::json::{Members, string};
use crate::model::{Header, Mode, Sample, Summary, Thread};
use crate::order::sorted;
use crate::raw_tree::RawTree;
use crate::stats::{stats_line, why_empty};
use crate::timeline::{Span, Timeline, by_thread};
use crate::{Decimal, Format, Options, names, state};
use libraries::Libraries;
pub use libraries::debug_id;
use thread::ThreadTables;

/// The version of the format.
const VERSION: u32 = 55;
/// More are not shown at first; the others are one click away.
const VISIBLE_THREADS: usize = 15;

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(Firefox {
        options: options.clone(),
        header: None,
        stacks: RawTree::new(),
        timeline: Timeline::new(),
        merged: Arc::new(Thread { tid: 0, name: String::new() }),
    })
}

struct Firefox {
    options: Options,
    header: Option<Header>,
    stacks: RawTree,
    timeline: Timeline,
    /// Represents all threads where they are merged.
    merged: Arc<Thread>,
}

impl Format for Firefox {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.timeline.begin(header);
        self.merged = Arc::new(Thread { tid: header.pid, name: header.process_name.clone() });
        self.header = Some(header.clone());
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        let mode = self.header.as_ref().map_or(Mode::Wall, |header| header.mode);
        let mut node = self.stacks.node(sample.stack, &self.options);
        if let Some(leaf) = state::leaf(sample.state, mode, &self.options) {
            node = self.stacks.noted(node, &leaf);
        }
        let thread = if self.options.merge_threads { &self.merged } else { sample.thread };
        self.timeline.add(&Sample { thread, ..sample.clone() }, node);
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let Some(header) = self.header.take() else {
            return;
        };
        let timeline = std::mem::replace(&mut self.timeline, Timeline::new());
        let (threads, spans) = timeline.finish(usize::MAX);
        let spans = by_thread(&spans);
        let all: Vec<&[Span]> = spans.chunk_by(|a, b| a.thread == b.thread).collect();
        let thread_of = |spans: &[Span]| spans.first().and_then(|span| threads.get(span.thread as usize));
        let is_main = |spans: &[Span]| thread_of(spans).is_some_and(|thread| thread.tid == header.pid);
        // The main thread first, then the threads that ran most.
        let key = |spans: &[Span]| (!is_main(spans), std::cmp::Reverse(thread::cpu_ns(spans)));
        let mut all = sorted(&all, &|a, b| key(a).cmp(&key(b)));
        let libraries = Libraries::of(self.stacks.tree.frames().iter().map(|known| &known.0));
        let about = self.meta(&header, summary, all.len());
        let object = Members::object().field("meta", about).field("libs", libraries.json()).end();
        out.extend_from_slice(object.strip_suffix('}').unwrap_or(&object).as_bytes());
        out.extend_from_slice(b",\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\"threads\":[");
        // Its reader wants a thread, even one without samples.
        if all.is_empty() {
            all.push(&[]);
        }
        for (number, spans) in all.into_iter().enumerate() {
            out.extend_from_slice(if number > 0 { b",\n" } else { b"\n" });
            let mut tables = ThreadTables::new(&self.options, &header, &self.stacks, &libraries);
            let thread = thread_of(spans).unwrap_or(&self.merged);
            out.extend_from_slice(tables.json(thread, spans, summary).as_bytes());
        }
        out.extend_from_slice(b"\n]}\n");
    }
}

impl Firefox {
    fn meta(&self, header: &Header, summary: &Summary, threads: usize) -> String {
        let title = self.options.title.clone().unwrap_or_else(|| header.process_name.clone());
        let title = names::printable(&title);
        let product =
            if threads == 0 { format!("{title} (no samples: {})", why_empty(summary)) } else { title };
        let visible = (0..threads.clamp(1, VISIBLE_THREADS)).fold(Members::array(), Members::element);
        Members::object()
            .field("version", 24)
            .field("preprocessedProfileVersion", VERSION)
            .field("product", string(&product))
            .field("processType", 0)
            .field("interval", ms(header.interval_ns))
            .field("startTime", ms(header.start_ns))
            .field("stackwalk", 1)
            .field("debug", "false")
            .field("symbolicated", "true")
            .field("usesOnlyOneStackType", "true")
            .field("sourceCodeIsNotOnSearchfox", "true")
            .field("extensions", r#"{"length":0,"baseURL":[],"id":[],"name":[]}"#)
            .field("sampleUnits", r#"{"time":"ms","eventDelay":"ms","threadCPUDelta":"µs"}"#)
            .field("categories", categories())
            .field("markerSchema", SCHEMA)
            .field("initialVisibleThreads", visible.end())
            .field("extra", extra(summary))
            .end()
    }
}

/// Nanoseconds as milliseconds, exactly.
fn ms(ns: u64) -> String {
    Decimal::new(ns, 6).trimmed().to_string()
}

/// Categories, in the order of [`Class`].
fn categories() -> String {
    let color = |class: Class| match class {
        Class::Native => "orange",
        Class::Inlined => "yellow",
        Class::Jit => "green",
        Class::Interpreter => "purple",
        Class::Waiting => "blue",
        Class::Note => "grey",
        Class::Python => "lightblue",
        Class::Perl => "lightgreen",
        Class::Php => "magenta",
        Class::Ruby => "lightred",
        Class::JavaScript => "brown",
        Class::Java => "red",
    };
    // Behind the one that every category has, the tiers in their order.
    let tiers = Tier::ALL.into_iter().map(|tier| string(tier.word()));
    let tiers = tiers.fold(Members::array().element(r#""Other""#), Members::element).end();
    let one = |class: Class| {
        Members::object()
            .field("name", string(class.label()))
            .field("color", string(color(class)))
            .field("subcategories", if class == Class::Jit { tiers.as_str() } else { r#"["Other"]"# })
            .end()
    };
    Class::ALL.into_iter().map(one).fold(Members::array(), Members::element).end()
}

/// What a thread did while it did not run.
const SCHEMA: &str = r#"[{"name":"ThreadState","tooltipLabel":"{marker.name}","tableLabel":"{marker.name}","chartLabel":"{marker.name}","display":["marker-chart","marker-table","timeline-overview"],"fields":[{"key":"state","label":"State","format":"string","searchable":true}]}]"#;

/// The recording's figures, where the web site shows them.
fn extra(summary: &Summary) -> String {
    let entry = Members::object()
        .field("label", string("Recording"))
        .field("format", string("string"))
        .field("value", string(&stats_line(summary)));
    let section = Members::object()
        .field("label", string("swipr"))
        .field("entries", Members::array().element(entry.end()).end());
    Members::array().element(section.end()).end()
}

#[cfg(test)]
mod tests {
    use super::ms;

    #[test]
    fn milliseconds_keep_their_nanoseconds() {
        assert_eq!(ms(10_000_000), "10");
        assert_eq!(ms(10_000_123), "10.000123");
        assert_eq!(ms(1), "0.000001");
    }
}
