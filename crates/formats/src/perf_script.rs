//! The text of `perf script`, in the grammar that every known reader takes.
//! Written as samples come; nothing is kept but the text of stacks seen lately.
//!
//! ```text
//! <comm> <pid>/<tid> <sec>.<9 digits>: <period> <event>:
//! \t<16 hex> <symbol>+0x<off> (<module>)
//!   <file>:<line>
//! (blank line)
//! ```
//!
//! The period is the sample's weight in nanoseconds. Inlined functions are lines of their own with
//! their frame's address. The line with the source position is how `perf script -F +srcline` writes
//! it, and is there only when lines are requested. Firefox, speedscope and inferno pass over it,
//! FlameGraph too, with a warning for each. Byte 0 is the first character of a sample line: a
//! reader that finds anything else takes the file for something else. In wall mode the leaf of a
//! thread that does not run is a remark that says what it waits for. The process's name and the
//! recording's figures follow the last sample as comments: Firefox, speedscope, inferno and
//! FlameGraph pass over them in silence.

use std::borrow::Cow;
use std::io::Write;

use crate::model::{Frame, FrameKind, Function, Header, Mode, Sample, Stack, Summary};
use crate::ptr_cache::PtrCache;
use crate::stats::{stats_line, why_empty};
use crate::text_frames::{ELIDED, TextFrame, entries};
use crate::{Format, Options, names, state};

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(PerfScript {
        options: options.clone(),
        pid: 0,
        process: String::new(),
        mode: Mode::Wall,
        empty: true,
        stacks: PtrCache::default(),
    })
}

struct PerfScript {
    options: Options,
    pid: u32,
    /// The process's name as a thread's name.
    process: String,
    mode: Mode,
    empty: bool,
    /// The frame lines of stacks.
    stacks: PtrCache<Stack, Vec<u8>, 4096>,
}

impl Format for PerfScript {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.pid = header.pid;
        self.process = names::thread(&header.process_name);
        self.mode = header.mode;
    }

    fn sample(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        self.empty = false;
        // swift-profile-recorder has no such leaves.
        let leaf = state::leaf(sample.state, self.mode, &self.options).filter(|_| !self.options.compat);
        for time_ns in sample.times_ns() {
            self.sample_line(sample, time_ns, out);
            if let Some(leaf) = &leaf {
                note_line(leaf, &self.options, out);
            }
            let (options, pid) = (&self.options, self.pid);
            let lines = self.stacks.get_or_make(sample.stack, || stack_lines(sample.stack, options, pid));
            out.extend_from_slice(lines);
            out.push(b'\n');
        }
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let stats = stats_line(summary);
        if self.empty {
            let why = why_empty(summary);
            // The one header that readers know: all of its lines, in this order.
            append(out, format_args!("# ========\n# swipr: no samples: {why}\n# {stats}\n# ========\n#\n"));
        } else if !self.options.compat {
            append(out, format_args!("# swipr: process={}\n# swipr: {stats}\n", self.process));
        }
    }
}

impl PerfScript {
    fn sample_line(&self, sample: &Sample<'_>, time_ns: u64, out: &mut Vec<u8>) {
        let pid = self.pid;
        let seconds = time_ns / 1_000_000_000;
        let nanos = time_ns % 1_000_000_000;
        let (comm, tid) = if self.options.merge_threads {
            (Cow::Borrowed(&*self.process), pid)
        } else {
            let comm = names::thread(&sample.thread.name);
            (Cow::Owned(comm), sample.thread.tid)
        };
        if self.options.compat {
            append(out, format_args!("{comm}-T{tid}     {pid}/{tid}     {seconds}.{nanos:09}:    swipr\n"));
        } else {
            let event = match self.mode {
                Mode::Wall => "wall-clock",
                Mode::Cpu => "cpu-clock",
            };
            let period = sample.weight_ns;
            append(out, format_args!("{comm} {pid}/{tid} {seconds}.{nanos:09}: {period} {event}:\n"));
        }
    }
}

/// The lines of a stack. One without frames has one line, because readers drop
/// a sample without any.
fn stack_lines(stack: &Stack, options: &Options, pid: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries(stack, options) {
        match entry {
            TextFrame::Elided => note_line(ELIDED, options, &mut out),
            TextFrame::Frame { frame, function: Some(function), .. } if frame.kind == FrameKind::Note => {
                note_line(&function.name, options, &mut out)
            }
            TextFrame::Frame { frame, function, inlined } => {
                frame_line(frame, function, inlined, options, pid, &mut out)
            }
        }
    }
    if out.is_empty() {
        note_line("[no stack]", options, &mut out);
    }
    out
}

fn note_line(text: &str, options: &Options, out: &mut Vec<u8>) {
    address(0, options, out);
    let text = whole_at_hash(names::note(text));
    append(out, format_args!("{text} ({})\n", names::UNKNOWN));
}

fn frame_line(
    frame: &Frame,
    function: Option<&Function>,
    inlined: bool,
    options: &Options,
    pid: u32,
    out: &mut Vec<u8>,
) {
    address(frame.address, options, out);
    let module = names::module(frame, pid);
    let name = function.and_then(|function| {
        let mut name = names::symbol(frame, function, options.names)?;
        if inlined && options.compat {
            name.push_str(" [inlined]");
        }
        Some((whole_at_hash(name), function.offset))
    });
    match name {
        // Readers take only the last offset off: a name that ends in one stays whole.
        Some((name, offset)) => append(out, format_args!("{name}+0x{offset:x} ({module})\n")),
        None => append(out, format_args!("{} ({module})\n", names::UNKNOWN)),
    }
    if !options.lines {
        return;
    }
    if let Some(function) = function
        && let (Some(file), Some(line)) = (&function.file, function.line)
    {
        append(out, format_args!("  {}:{line}\n", names::path(file)));
    }
}

fn address(address: u64, options: &Options, out: &mut Vec<u8>) {
    if options.compat {
        append(out, format_args!("\t    {address:x} "));
    } else {
        append(out, format_args!("\t{address:016x} "));
    }
}

/// `name`, with a character boundary 17 bytes before its end.
///
/// inferno looks there for the hash of a Rust name and panics when it is inside a
/// character; that character is replaced, with as many bytes.
fn whole_at_hash(mut name: String) -> String {
    let Some(index) = name.len().checked_sub(17) else {
        return name;
    };
    let cut = name
        .char_indices()
        .map(|(start, character)| start..start + character.len_utf8())
        .find(|bytes| bytes.start < index && index < bytes.end);
    if let Some(bytes) = cut {
        let blanks = "_".repeat(bytes.len());
        name.replace_range(bytes, &blanks);
    }
    name
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a Vec cannot fail.
    let _ = out.write_fmt(text);
}
