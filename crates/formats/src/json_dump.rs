//! A recording as one JSON object, a sample an element: for stacks that a program
//! reads. Not for symbolizing elsewhere (that is `raw.rs`): modules are given by
//! their paths.
//!
//! ```text
//! {"swipr":1,"pid":…,…,"samples":[
//! {"time_ns":…,"tid":…,"name":…,"state":…,"syscall":…,"weight_ns":…,"frames":[…]},…
//! ],"summary":{…}}
//! ```
//!
//! Names are as they are, whatever is in them. `syscall` is the number,
//! `syscall_name` its name where it is in the table.

use crate::json::{Members, string};
use crate::model::{Frame, Header, Sample, State, Summary};
use crate::raw::{frame_object, header_fields, state_fields, summary_fields, thread_fields};
use crate::raw_tree::note;
use crate::text_frames::{shown_functions, visible};
use crate::{Format, Options, syscalls, text_frames};

pub(crate) fn make(options: &Options) -> Box<dyn Format> {
    Box::new(JsonDump { options: options.clone(), empty: true })
}

struct JsonDump {
    options: Options,
    empty: bool,
}

impl Format for JsonDump {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        let title = self.options.title.as_deref().map(string);
        let object = header_fields(Members::object().field("swipr", 1), header)
            .maybe("title", title)
            .field("samples", "[")
            .end();
        // The object and its array stay open.
        out.extend_from_slice(object.strip_suffix('}').unwrap_or(&object).as_bytes());
    }

    fn sample(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        for time_ns in sample.times_ns() {
            out.extend_from_slice(if self.empty { b"\n" } else { b",\n" });
            self.empty = false;
            let object = Members::object().field("time_ns", time_ns);
            let call = match sample.state {
                State::Blocked(Some(number)) => syscalls::name(number).map(string),
                _ => None,
            };
            let object = state_fields(thread_fields(object, sample.thread), sample.state)
                .maybe("syscall_name", call)
                .field("weight_ns", sample.weight_ns)
                .field("frames", self.frames(sample));
            out.extend_from_slice(object.end().as_bytes());
        }
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        let summary = summary_fields(Members::object(), summary).end();
        out.extend_from_slice(format!("\n],\"summary\":{summary}}}\n").as_bytes());
    }
}

impl JsonDump {
    fn frames(&self, sample: &Sample<'_>) -> String {
        let (inner, is_cut, outer) = visible(sample.stack, &self.options);
        let mut array = Members::array();
        for frame in inner {
            array = array.element(self.frame(frame));
        }
        if is_cut {
            array = array.element(self.frame(&note(text_frames::ELIDED)));
        }
        for frame in outer {
            array = array.element(self.frame(frame));
        }
        array.end()
    }

    fn frame(&self, frame: &Frame) -> String {
        let module = frame.module.as_ref().map(|module| string(&module.path));
        let shown = Frame { functions: shown_functions(frame, &self.options).into(), ..frame.clone() };
        frame_object(&shown, module).end()
    }
}
