//! A flame graph as one HTML file: threads over time, search, zoom, inverted, light and dark. It
//! loads nothing from elsewhere, and a policy in it forbids other scripts than its own.
//!
//! Stacks are kept as shown, samples by thread, state and time in bounded memory. Not here: the
//! page (`html/`).

use crate::display::DisplayTree;
use crate::json::string;
use crate::model::{Header, Sample, Summary};
use crate::page_data::{Columns, Numbers, about};
use crate::stats::{stats_line, why_empty};
use crate::template::Template;
use crate::timeline::{Span, Timeline};
use crate::{Decimal, Format, Options, names};

/// More spans make no better picture, but a larger file: about 25 bytes each.
const MAX_SPANS: usize = 40_000;

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(Html {
        options: options.clone(),
        header: None,
        stacks: DisplayTree::new(options),
        timeline: Timeline::new(),
        has_times: false,
    })
}

struct Html {
    options: Options,
    header: Option<Header>,
    stacks: DisplayTree,
    timeline: Timeline,
    /// Whether a sample has a time.
    has_times: bool,
}

impl Format for Html {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.stacks.begin(header);
        self.timeline.begin(header);
        self.header = Some(header.clone());
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        let node = self.stacks.node(sample);
        self.timeline.add(sample, node);
        self.has_times |= sample.time_ns > 0;
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let Some(header) = self.header.take() else {
            return;
        };
        let timeline = std::mem::replace(&mut self.timeline, Timeline::new());
        let (threads, spans) = timeline.finish(MAX_SPANS);
        let samples: u64 = spans.iter().map(|span| span.sum.samples).sum();
        let empty = spans.is_empty().then(|| string(&format!("No samples: {}.", why_empty(summary))));
        let info = about(&header, &self.options)
            .field("seconds", Decimal::rounded(summary.duration_ns as f64 / 1e9, 1))
            .field("samples", samples)
            .field("stats", string(&stats_line(summary)))
            .maybe("empty", empty)
            // No lanes without times.
            .maybe("still", (!self.has_times && samples > 0).then_some("true"));
        let of_ticks = |span: &Span| span.sum.ns == span.sum.samples.saturating_mul(header.interval_ns);
        let weights = if spans.iter().all(of_ticks) { Weights::Ticks } else { Weights::Own };
        let info = info.field("stride", 5 + weights as u8);
        let mut columns = Columns::new();
        let spans = numbers(&mut columns, &header, &spans, weights);
        let data = crate::json::Members::object().field("info", info.end());
        let data = columns.add(data, &self.stacks.tree, &threads).field("spans", spans).end();
        let title = self.options.title.clone().unwrap_or_else(|| header.title());
        out.extend_from_slice(Template::File.with(&names::printable(&title), &data).as_bytes());
    }
}

/// What a span weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    /// Its samples times the interval.
    Ticks = 0,
    /// Its own nanoseconds.
    Own = 1,
}

/// Spans as the page takes them: milliseconds since the start, thread, node, state, samples, and
/// their own weight.
pub(crate) fn numbers(columns: &mut Columns, header: &Header, spans: &[Span], weights: Weights) -> String {
    let mut numbers = Numbers::new();
    for span in spans {
        numbers.push(span.time_ns.saturating_sub(header.start_ns) / 1_000_000);
        numbers.push(u64::from(span.thread));
        numbers.push(u64::from(span.stack));
        numbers.push(columns.state(span.state) as u64);
        numbers.push(span.sum.samples);
        if weights == Weights::Own {
            numbers.push(span.sum.ns);
        }
    }
    numbers.end()
}
