//! JSON lines that lose nothing: addresses, modules with build ids, threads, samples,
//! and names where they are known, so that a recording can be symbolized and turned
//! into any other format elsewhere. Written as samples come.
//!
//! Each line is an object with a `type`: first `header`, with `swipr` being the
//! version of this format; last `end`, without which the recording is incomplete.
//! `module`, `thread` and `stack` get an `id`, counted from 0 for each type, in the
//! line before the first that uses it. Frames are leaf first, a frame's functions
//! innermost first. Addresses are strings of `0x` and hexadecimal digits, times and
//! weights nanoseconds. Readers pass over fields and types that they do not know.
//! Options do not change anything here. Memory grows with distinct stacks; a thread that was not
//! seen for a minute may get another id.

use std::sync::Arc;

use crate::intern::{Interner, StackNumbers};
use crate::json::{Members, hex, hex_bytes, string};
use crate::model::{
    Cost, Frame, FrameKind, Function, Header, Mode, Module, Sample, Stack, State, Summary, Thread,
};
use crate::passing::AgingIds;
use crate::{Format, Options, state};

/// Goes up when a reader of the version before would misread something.
const VERSION: u32 = 1;

pub(crate) fn make(_options: &Options) -> Box<dyn Format> {
    Box::new(Raw { modules: Interner::new(), threads: AgingIds::new(), stacks: StackNumbers::new() })
}

struct Raw {
    modules: Interner<Arc<Module>>,
    threads: AgingIds,
    stacks: StackNumbers,
}

impl Format for Raw {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        let object = Members::object().field("type", string("header"));
        line(header_fields(object.field("swipr", VERSION), header), out);
    }

    fn sample(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        let thread = self.threads.intern(sample.thread, sample.time_ns);
        if thread.new {
            line(thread_fields(record("thread", thread.id), sample.thread), out);
        }
        let stack = self.stacks.intern(sample.stack);
        if stack.new {
            self.stack(stack.id, sample.stack, out);
        }
        for time_ns in sample.times_ns() {
            let object = Members::object()
                .field("type", string("sample"))
                .field("time_ns", time_ns)
                .field("thread", thread.id);
            let object = state_fields(object, sample.state)
                .field("weight_ns", sample.weight_ns)
                .field("stack", stack.id);
            line(object, out);
        }
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        // What was cut stays so.
        if !summary.is_cut {
            let object = Members::object().field("type", string("end"));
            line(summary_fields(object, summary), out);
        }
    }
}

impl Raw {
    fn stack(&mut self, id: usize, stack: &Stack, out: &mut Vec<u8>) {
        let mut frames = Members::array();
        for frame in &stack.frames {
            let module = frame.module.as_ref().map(|module| {
                let interned = self.modules.intern(Arc::clone(module));
                if interned.new {
                    line(module_fields(record("module", interned.id), module), out);
                }
                interned.id
            });
            frames = frames.element(frame_object(frame, module).end());
        }
        line(record("stack", id).field("frames", frames.end()), out);
    }
}

fn line(object: Members, out: &mut Vec<u8>) {
    out.extend_from_slice(object.end().as_bytes());
    out.push(b'\n');
}

fn record(kind: &str, id: usize) -> Members {
    Members::object().field("type", string(kind)).field("id", id)
}

/// What is known before the first sample.
pub(crate) fn header_fields(object: Members, header: &Header) -> Members {
    let mode = match header.mode {
        Mode::Wall => "wall",
        Mode::Cpu => "cpu",
    };
    object
        .field("pid", header.pid)
        .field("process_name", string(&header.process_name))
        .field("executable", string(&header.executable))
        .field("start_ns", header.start_ns)
        .field("interval_ns", header.interval_ns)
        .field("mode", string(mode))
        .maybe("measure", header.measure.as_ref().map(|it| string(&it.kind)))
        .maybe("unit", header.measure.as_ref().map(|it| string(&it.unit)))
}

/// What is known after the last sample.
pub(crate) fn summary_fields(object: Members, summary: &Summary) -> Members {
    let by = &summary.truncated_by;
    let reasons = by.iter().fold(Members::object(), |object, (reason, count)| object.field(reason, count));
    let is_written = |&(name, number): &(&str, u64)| match name {
        "duration_ns" | "threads" | "samples" => true,
        "filtered" | "at_most_hz" | "without_lines" | "uncounted" | "asked_ns" => number > 0,
        // A figure that was not counted is not 0.
        _ => number > 0 || summary.uncounted == 0,
    };
    let counts = summary.counts().filter(is_written);
    let object = counts.fold(object, |object, (name, number)| object.field(name, number));
    let object = object.maybe("truncated_by", (!by.is_empty()).then(|| reasons.end()));
    let cost = summary.cost.iter().flat_map(Cost::fields);
    cost.fold(object, |object, (name, ns)| object.field(name, ns))
}

/// A thread's id and name.
pub(crate) fn thread_fields(object: Members, thread: &Thread) -> Members {
    object.field("tid", thread.tid).field("name", string(&thread.name))
}

/// A thread's state, with the number of the system call it waits in.
pub(crate) fn state_fields(object: Members, state: State) -> Members {
    let call = match state {
        State::Blocked(call) => call,
        State::Running | State::Runnable => None,
    };
    object.field("state", string(state::word(state))).maybe("syscall", call)
}

fn module_fields(object: Members, module: &Module) -> Members {
    object
        .field("path", string(&module.path))
        .field("start", hex(module.start))
        .field("end", hex(module.end))
        .field("file_offset", hex(module.file_offset))
        .field("base", hex(module.base))
        .field("build_id", string(&hex_bytes(&module.build_id)))
}

/// A frame whose module is `module`, as JSON.
pub(crate) fn frame_object(frame: &Frame, module: Option<impl std::fmt::Display>) -> Members {
    let kind = match frame.kind {
        FrameKind::Native => None,
        FrameKind::Jit => Some(string("jit")),
        FrameKind::Interpreted(language) => Some(string(language.word())),
        FrameKind::Note => Some(string("note")),
    };
    let functions = frame
        .functions
        .iter()
        .fold(Members::array(), |array, function| array.element(function_object(function)));
    Members::object()
        .field("address", hex(frame.address))
        .maybe("kind", kind)
        .maybe("module", module)
        .maybe("functions", (!frame.functions.is_empty()).then(|| functions.end()))
}

fn function_object(function: &Function) -> String {
    Members::object()
        .field("name", string(&function.name))
        .maybe("mangled", function.mangled.as_deref().map(string))
        .field("offset", function.offset)
        .maybe("file", function.file.as_deref().map(string))
        .maybe("line", function.line)
        .end()
}
