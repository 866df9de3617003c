//! Stacks as text for people: what each thread is doing, then its frames, numbered
//! from the leaf. Not for programs: they take `json`.

use std::io::Write;

use crate::clock::utc;
use crate::model::{FrameKind, Function, Header, Sample, Summary};
use crate::stats::{stats_line, why_empty};
use crate::text_frames::{ELIDED, TextFrame, entries};
use crate::{Format, Options, names, state};

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(Dump { options: options.clone(), pid: 0, empty: true })
}

struct Dump {
    options: Options,
    pid: u32,
    empty: bool,
}

impl Format for Dump {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.pid = header.pid;
        if let Some(title) = &self.options.title {
            line(out, format_args!("{}", first(title)));
        }
        let pid = if header.pid > 0 { format!(" (pid {})", header.pid) } else { String::new() };
        let (name, executable) = (first(&header.process_name), names::printable(&header.executable));
        let when = if header.start_ns > 0 { format!(", {}", utc(header.start_ns)) } else { String::new() };
        line(out, format_args!("{name}{pid}, {executable}{when}"));
    }

    fn sample(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        self.empty = false;
        (0..sample.ticks).for_each(|_| self.thread(sample, out));
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        if self.empty {
            line(out, format_args!("\nno threads: {}", why_empty(summary)));
        }
        line(out, format_args!("\n{}", stats_line(summary)));
    }
}

impl Dump {
    fn thread(&self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        line(
            out,
            format_args!(
                "\n\"{}\" tid {}, {}",
                names::printable(&sample.thread.name),
                sample.thread.tid,
                state::phrase(sample.state)
            ),
        );
        let mut any = false;
        for (number, entry) in entries(sample.stack, &self.options).enumerate() {
            any = true;
            let text = self.entry(&entry);
            line(out, format_args!("  #{number:<3} {text}"));
        }
        if !any {
            line(out, format_args!("  [no stack]"));
        }
    }

    fn entry(&self, entry: &TextFrame<'_>) -> String {
        let (frame, function, inlined) = match entry {
            TextFrame::Elided => return ELIDED.to_owned(),
            TextFrame::Frame { frame, function, inlined } => (*frame, *function, *inlined),
        };
        if frame.kind == FrameKind::Note {
            return names::note(function.map_or("", |function| &function.name));
        }
        let module = names::module(frame, self.pid);
        let name = function.and_then(|function| {
            let name = names::symbol(frame, function, self.options.names)?;
            Some((name, function))
        });
        let address = frame.address;
        match name {
            // There need not be a map that it could be looked up in.
            None if frame.kind == FrameKind::Jit => format!("{address:#018x} {}", names::unnamed(frame)),
            None => format!("{address:#018x} {} ({module})", names::UNKNOWN),
            // Such a function has no code of its own, in which there could be an offset.
            Some((name, function)) if matches!(frame.kind, FrameKind::Interpreted(_)) => {
                format!("{address:#018x} {name} ({module}){}", place(function))
            }
            Some((name, function)) if inlined => {
                format!("{address:#018x} {name} [inlined] ({module}){}", place(function))
            }
            Some((name, function)) => {
                let (offset, place) = (function.offset, place(function));
                format!("{address:#018x} {name}+{offset:#x} ({module}){place}")
            }
        }
    }
}

/// A text at the beginning of a line, which must not begin as the lines of threads and frames do.
fn first(text: &str) -> String {
    names::printable(text.trim_start_matches(|c: char| c.is_whitespace() || c == '"'))
}

/// ` at file:line`, as far as it is known.
fn place(function: &Function) -> String {
    match (&function.file, function.line) {
        (Some(file), Some(line)) => format!(" at {}:{line}", names::printable(file)),
        (Some(file), None) => format!(" at {}", names::printable(file)),
        (None, _) => String::new(),
    }
}

fn line(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a Vec cannot fail.
    let _ = writeln!(out, "{text}");
}
