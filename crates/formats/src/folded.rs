//! Folded stacks: `thread;root;…;leaf count`, one line a distinct stack, sorted.
//! Not here: a flame graph made of them.
//!
//! Counts are samples in wall mode and nanoseconds of CPU time in CPU mode, unless one of them is
//! requested ([`Weight`]). Lines with a count of 0 are left out, because some readers stop at one.
//! Threads of the same name share their lines. The recording's figures are not written unless there
//! is nothing else: readers know no comments (flamegraph.pl and inferno warn of such a line, others
//! take it for a stack).

use std::collections::BTreeMap;
use std::io::Write;

use crate::aggregate::{Finished, Total, Totals};
use crate::model::{FrameKind, Header, Mode, Sample, Summary};
use crate::stats::{stats_line, why_empty};
use crate::text_frames::{ELIDED, TextFrame, entries};
use crate::{Format, Options, Weight, names, state};

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(Folded {
        // The totals have cut over-deep stacks.
        options: Options { max_depth: None, ..options.clone() },
        pid: 0,
        mode: Mode::Wall,
        measures_other: false,
        totals: Some(Totals::new(options)),
    })
}

struct Folded {
    options: Options,
    pid: u32,
    mode: Mode,
    measures_other: bool,
    /// `None` once written.
    totals: Option<Totals>,
}

impl Format for Folded {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.pid = header.pid;
        self.mode = header.mode;
        self.measures_other = header.measure.is_some();
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        if let Some(totals) = &mut self.totals {
            totals.add(sample);
        }
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let mut lines: BTreeMap<String, u64> = BTreeMap::new();
        let usual = if self.measures_other { Weight::Nanoseconds } else { Weight::of(self.mode) };
        let weight = self.options.weight.unwrap_or(usual);
        for total in self.totals.take().map(Totals::finish).iter().flat_map(Finished::iter) {
            let count = match weight {
                Weight::Samples => total.sum.samples,
                Weight::Nanoseconds => total.sum.ns,
            };
            if count > 0 {
                let sum = lines.entry(self.line(&total)).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        // Writing to a Vec cannot fail.
        for (line, count) in &lines {
            let _ = writeln!(out, "{line} {count}");
        }
        if lines.is_empty() {
            let (why, stats) = (why_empty(summary), stats_line(summary));
            let _ = writeln!(out, "# swipr: no samples: {why}; {stats}");
        }
    }
}

impl Folded {
    fn line(&self, total: &Total) -> String {
        let mut parts: Vec<String> =
            entries(&total.stack, &self.options).map(|entry| self.part(&entry)).collect();
        if parts.is_empty() {
            parts.push("[no stack]".to_owned());
        }
        if let Some(leaf) = state::leaf(total.state, self.mode, &self.options) {
            parts.insert(0, names::note(&leaf));
        }
        if let Some(thread) = &total.thread {
            parts.push(names::thread(&thread.name));
        }
        parts.reverse();
        parts.join(";")
    }

    fn part(&self, entry: &TextFrame<'_>) -> String {
        match entry {
            TextFrame::Elided => ELIDED.to_owned(),
            TextFrame::Frame { frame, function, .. } => match function {
                Some(function) if frame.kind == FrameKind::Note => names::note(&function.name),
                Some(function) => names::symbol(frame, function, self.options.names)
                    .unwrap_or_else(|| names::unnamed(frame)),
                None => names::unnamed(frame),
            },
        }
    }
}
