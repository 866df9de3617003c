//! Go's text forms of a goroutine profile, which its tools and readers of logs know: stacks with
//! their counts (`debug=1`), and each thread with its stack (`debug=2`). A thread represents a
//! goroutine.

use std::io::Write;

use crate::aggregate::{Finished, Totals};
use crate::model::{FrameKind, Header, Mode, Sample, State, Summary};
use crate::stats::{stats_line, why_empty};
use crate::text_frames::{TextFrame, entries};
use crate::{Format, FormatInfo, Options, names, state};

/// `debug=1`: `COUNT @ ADDRESS…`, then a line a frame.
pub static GOROUTINES: FormatInfo = FormatInfo {
    name: "goroutines",
    aliases: &[],
    mime: "text/plain; charset=utf-8",
    suffix: "txt",
    description: "Go's text of a goroutine profile: stacks with their counts",
    streams: false,
    make: make_counted,
};

/// `debug=2`: every thread by itself, as in a Go panic.
pub static GOROUTINE_STACKS: FormatInfo = FormatInfo {
    name: "goroutine-stacks",
    description: "Go's text of a goroutine profile: every thread by itself",
    make: make_each,
    ..GOROUTINES
};

fn make_counted(options: &Options) -> Box<dyn Format> {
    let merged = Options { merge_threads: true, ..options.clone() };
    Box::new(GoText { options: options.clone(), pid: 0, totals: Some(Totals::new(&merged)) })
}

fn make_each(options: &Options) -> Box<dyn Format> {
    Box::new(GoText { options: options.clone(), pid: 0, totals: Some(Totals::new(options)) })
}

struct GoText {
    options: Options,
    pid: u32,
    totals: Option<Totals>,
}

impl Format for GoText {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.pid = header.pid;
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        if let Some(totals) = &mut self.totals {
            totals.add(sample);
        }
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let Some(totals) = self.totals.take().map(Totals::finish) else { return };
        let is_counted = totals.iter().all(|total| total.thread.is_none());
        // Writing to a Vec cannot fail.
        let _ = if is_counted { self.counted(&totals, summary, out) } else { self.each(&totals, out) };
    }
}

impl GoText {
    fn counted(&self, totals: &Finished, summary: &Summary, out: &mut Vec<u8>) -> std::io::Result<()> {
        let threads: u64 = totals.iter().map(|total| total.sum.samples).sum();
        writeln!(out, "goroutine profile: total {threads}")?;
        for total in totals.iter() {
            write!(out, "{} @", total.sum.samples)?;
            for frame in total.stack.frames.iter().filter(|frame| frame.kind != FrameKind::Note) {
                write!(out, " {:#x}", frame.address)?;
            }
            if total.stack.frames.iter().all(|frame| frame.kind == FrameKind::Note) {
                write!(out, " 0x0")?; // its readers want an address
            }
            writeln!(out)?;
            for entry in entries(&total.stack, &Options { max_depth: None, ..self.options.clone() }) {
                let TextFrame::Frame { frame, function, .. } = entry else { continue };
                let (name, place) = self.name(&entry);
                let offset = function.map_or(0, |function| function.offset);
                writeln!(out, "#\t{:#x}\t{name}+{offset:#x}\t{place}", frame.address)?;
            }
            writeln!(out)?;
        }
        match totals.is_empty() {
            true => writeln!(out, "# swipr: no samples: {}; {}", why_empty(summary), stats_line(summary)),
            false => Ok(()),
        }
    }

    fn each(&self, totals: &Finished, out: &mut Vec<u8>) -> std::io::Result<()> {
        for total in totals.iter() {
            let thread = total.thread.as_ref();
            let doing = match (total.state, state::leaf(total.state, Mode::Wall, &Options::default())) {
                (State::Running, _) | (_, None) => "running".to_owned(),
                (_, Some(leaf)) => leaf.trim_matches(['[', ']']).to_owned(),
            };
            let name = thread.map_or(String::new(), |thread| names::printable(&thread.name));
            writeln!(out, "goroutine {} [{doing}, {name}]:", thread.map_or(0, |thread| thread.tid))?;
            for entry in entries(&total.stack, &Options { max_depth: None, ..self.options.clone() }) {
                let TextFrame::Frame { function, .. } = entry else { continue };
                let (name, place) = self.name(&entry);
                let offset = function.map_or(0, |function| function.offset);
                writeln!(out, "{name}(...)\n\t{place} +{offset:#x}")?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// A frame's name, and where it is.
    fn name(&self, entry: &TextFrame<'_>) -> (String, String) {
        let TextFrame::Frame { frame, function, .. } = entry else { return <_>::default() };
        let name = function.and_then(|function| names::symbol(frame, function, self.options.names));
        let file = function.and_then(|function| Some((function.file.as_deref()?, function.line?)));
        let place = match file {
            Some((file, line)) => format!("{}:{line}", names::path(file)),
            None => format!("{}:0", names::module(frame, self.pid)),
        };
        (name.unwrap_or_else(|| names::unnamed(frame)), place)
    }
}
