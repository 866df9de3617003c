//! What a process does now, for a page that draws it: a line of JSON about once a second, each with
//! what is new (`page_data.rs`) and what was sampled since the line before. The first says whose
//! process it is, the last has the recording's figures.

use std::sync::Arc;

use crate::aggregate::Sums;
use crate::display::DisplayTree;
use crate::intern::ThreadNumbers;
use crate::json::{Members, string};
use crate::model::{Header, Sample, Summary, Thread};
use crate::page_data::{Columns, Numbers, about};
use crate::stats::stats_line;
use crate::template::Template;
use crate::{Format, FormatInfo, Options};

/// Between two lines.
const PERIOD_NS: u64 = 1_000_000_000;

/// The format, which the page at `/` reads.
pub static LIVE_LINES: FormatInfo = FormatInfo {
    name: "live",
    aliases: &[],
    mime: "application/x-ndjson",
    suffix: "jsonl",
    description: "what is new each second, for the live page",
    streams: true,
    make,
};

/// The live page. Its policy ([`crate::LIVE_POLICY`]) has to go with it.
pub fn live_page() -> String {
    Template::Live.with("swipr", "{}")
}

fn make(options: &Options) -> Box<dyn Format> {
    Box::new(Live {
        options: options.clone(),
        start_ns: 0,
        stacks: DisplayTree::new(options),
        columns: Columns::new(),
        ids: ThreadNumbers::new(),
        threads: Vec::new(),
        sums: Sums::default(),
        next_ns: 0,
    })
}

struct Live {
    options: Options,
    start_ns: u64,
    stacks: DisplayTree,
    columns: Columns,
    ids: ThreadNumbers,
    threads: Vec<Arc<Thread>>,
    /// By thread, node and state, since the last line.
    sums: Sums,
    /// When the next line is due.
    next_ns: u64,
}

impl Format for Live {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.stacks.begin(header);
        self.start_ns = header.start_ns;
        self.next_ns = header.start_ns.saturating_add(PERIOD_NS);
        let info = about(header, &self.options).field("stride", 6).field("period", PERIOD_NS / 1_000_000);
        line(Members::object().field("info", info.end()), out);
    }

    fn sample(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        let thread = self.ids.intern(sample.thread);
        if thread.new {
            self.threads.push(Arc::clone(sample.thread));
        }
        let node = self.stacks.node(sample);
        self.sums.entry((thread.id, sample.state, node as usize)).or_default().add(sample);
        if sample.time_ns >= self.next_ns {
            self.write_period(out);
            self.next_ns = sample.time_ns.saturating_add(PERIOD_NS);
        }
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        self.write_period(out);
        let info = Members::object().field("stats", string(&stats_line(summary)));
        line(Members::object().field("info", info.end()), out);
    }
}

impl Live {
    fn write_period(&mut self, out: &mut Vec<u8>) {
        let since_ns = self.next_ns.saturating_sub(PERIOD_NS).saturating_sub(self.start_ns);
        let mut spans = Numbers::new();
        for ((thread, state, node), sum) in self.sums.drain() {
            let state = self.columns.state(state) as u64;
            let numbers = [since_ns / 1_000_000, thread as u64, node as u64, state, sum.samples, sum.ns];
            spans.extend(numbers);
        }
        let object = self.columns.add(Members::object(), &self.stacks.tree, &self.threads);
        line(object.field("spans", spans.end()), out);
    }
}

fn line(object: Members, out: &mut Vec<u8>) {
    out.extend_from_slice(object.end().as_bytes());
    out.push(b'\n');
}
