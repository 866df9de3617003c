//! speedscope's own JSON: a sampled profile for each thread, weights in nanoseconds, in the order
//! of time. Names are written as JSON. Samples are kept in bounded memory (`timeline.rs`).

use std::sync::Arc;

use crate::display::{DisplayFrame, DisplayTree};
use crate::json::{Members, string};
use crate::model::{Header, Sample, Summary, Thread};
use crate::page_data::Numbers;
use crate::stats::{stats_line, why_empty};
use crate::timeline::{Span, Timeline, by_thread};
use crate::{Format, Options, names};

/// Each is written with its whole stack.
const MAX_SPANS: usize = 100_000;

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(Speedscope {
        options: options.clone(),
        header: None,
        unit: "nanoseconds",
        stacks: DisplayTree::new(options),
        timeline: Timeline::new(),
        merged: Arc::new(Thread { tid: 0, name: String::new() }),
    })
}

struct Speedscope {
    options: Options,
    header: Option<Header>,
    unit: &'static str,
    stacks: DisplayTree,
    timeline: Timeline,
    /// Represents all threads where they are merged.
    merged: Arc<Thread>,
}

impl Format for Speedscope {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.stacks.begin(header);
        self.timeline.begin(header);
        self.merged = Arc::new(Thread { tid: header.pid, name: header.process_name.clone() });
        self.header = Some(header.clone());
        // Of the units that its schema has.
        self.unit = match &header.measure {
            None => "nanoseconds",
            Some(measure) => match measure.unit.as_str() {
                "bytes" => "bytes",
                "nanoseconds" => "nanoseconds",
                _ => "none",
            },
        };
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        let node = self.stacks.node(sample);
        let thread = if self.options.merge_threads { &self.merged } else { sample.thread };
        self.timeline.add(&Sample { thread, ..sample.clone() }, node);
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let Some(header) = self.header.take() else {
            return;
        };
        let timeline = std::mem::replace(&mut self.timeline, Timeline::new());
        let (threads, spans) = timeline.finish(MAX_SPANS);
        let empty = spans.is_empty().then(|| format!(" (no samples: {})", why_empty(summary)));
        let spans = by_thread(&spans);
        let title = self.options.title.clone().unwrap_or_else(|| header.title());
        let head = Members::object()
            .field("$schema", string("https://www.speedscope.app/file-format-schema.json"))
            .field("exporter", string("swipr"))
            .field("name", string(&names::printable(&format!("{title}{}", empty.unwrap_or_default()))))
            .field("swipr", string(&stats_line(summary)))
            .field("activeProfileIndex", 0)
            .field("shared", Members::object().field("frames", self.frames()).end())
            .end();
        out.extend_from_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
        out.extend_from_slice(b",\"profiles\":[");
        let mut profiles: Vec<&[Span]> = spans.chunk_by(|a, b| a.thread == b.thread).collect();
        // Its reader refuses a file without profiles.
        if profiles.is_empty() {
            profiles.push(&[]);
        }
        for (number, spans) in profiles.into_iter().enumerate() {
            let thread =
                spans.first().and_then(|span| threads.get(span.thread as usize)).unwrap_or(&self.merged);
            out.extend_from_slice(if number > 0 { b",\n" } else { b"\n" });
            out.extend_from_slice(self.profile(thread, spans).as_bytes());
        }
        out.extend_from_slice(b"\n]}\n");
    }
}

impl Speedscope {
    fn frames(&self) -> String {
        let frame = |frame: &DisplayFrame| {
            let file = if frame.file.is_empty() { &frame.module } else { &frame.file };
            Members::object()
                .field("name", string(&frame.name))
                .maybe("file", (!file.is_empty()).then(|| string(file)))
                .maybe("line", (frame.line > 0).then_some(frame.line))
                .end()
        };
        let frames = self.stacks.tree.frames().iter().map(frame);
        frames.fold(Members::array(), Members::element).end()
    }

    fn profile(&self, thread: &Thread, spans: &[Span]) -> String {
        let (mut stacks, mut weights, mut sum) = (Members::array(), Numbers::new(), 0u64);
        for span in spans {
            let mut path = Vec::new();
            let mut at = span.stack;
            while let Some((parent, frame)) = self.stacks.tree.node(at) {
                path.push(u64::from(frame));
                at = parent;
            }
            let mut stack = Numbers::new();
            stack.extend(path.into_iter().rev());
            stacks.push(stack.end());
            weights.push(span.sum.ns);
            sum = sum.saturating_add(span.sum.ns);
        }
        Members::object()
            .field("type", string("sampled"))
            .field("name", string(&names::printable(&format!("{} ({})", thread.name, thread.tid))))
            .field("unit", string(self.unit))
            .field("startValue", 0)
            .field("endValue", sum)
            .field("samples", stacks.end())
            .field("weights", weights.end())
            .end()
    }
}
