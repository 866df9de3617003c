//! Threads as one JSON object: which there are, what each does, and in which function.

use std::sync::Arc;

use crate::json::{Members, string};
use crate::model::{FrameKind, Header, Sample, State, Summary, Thread};
use crate::order::sorted;
use crate::raw::{state_fields, thread_fields};
use crate::{Format, FormatInfo, Options, state, syscalls};

/// The format; only the last sample of a thread counts.
pub static THREADS: FormatInfo = FormatInfo {
    name: "threads",
    aliases: &[],
    mime: "application/json",
    suffix: "json",
    description: "every thread's name, state and place",
    streams: false,
    make,
};

fn make(_: &Options) -> Box<dyn Format> {
    Box::new(Threads { pid: 0, threads: Vec::new() })
}

struct Threads {
    pid: u32,
    /// Its thread, and as JSON.
    threads: Vec<(Arc<Thread>, String)>,
}

impl Format for Threads {
    fn begin(&mut self, header: &Header, _out: &mut Vec<u8>) {
        self.pid = header.pid;
    }

    fn sample(&mut self, sample: &Sample<'_>, _out: &mut Vec<u8>) {
        let call = match sample.state {
            State::Blocked(Some(number)) => syscalls::name(number).map(string),
            _ => None,
        };
        let mut code = sample.stack.frames.iter().filter(|frame| frame.kind != FrameKind::Note);
        let leaf = code.find_map(|frame| frame.functions.first()).map(|function| string(&function.name));
        let object = thread_fields(Members::object(), sample.thread);
        let json = state_fields(object, sample.state)
            .maybe("syscall_name", call)
            .field("doing", string(&state::phrase(sample.state)))
            .maybe("function", leaf)
            .end();
        self.threads.retain(|(thread, _)| thread.tid != sample.thread.tid);
        self.threads.push((Arc::clone(sample.thread), json));
    }

    fn finish(&mut self, _summary: &Summary, out: &mut Vec<u8>) {
        let mut threads = Members::array();
        for (_, json) in sorted(&self.threads, &|a, b| a.0.tid.cmp(&b.0.tid)) {
            threads.push(format_args!("\n{json}"));
        }
        let object = Members::object().field("pid", self.pid).field("threads", threads.end());
        out.extend_from_slice(format!("{}\n", object.end()).as_bytes());
    }
}
