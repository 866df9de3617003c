//! Recordings made by hand, for tests of the formats and of their readers.

use std::sync::Arc;

use swipr_formats::model::{
    Frame, FrameKind, Function, Header, Mode, Module, Sample, Stack, State, Summary, Thread,
};
use swipr_formats::{Options, find};

/// A sample that owns what it points to.
#[derive(Debug)]
pub struct Owned {
    /// When.
    pub time_ns: u64,
    /// Whose.
    pub thread: Arc<Thread>,
    /// What the thread did.
    pub state: State,
    /// What it represents.
    pub weight_ns: u64,
    /// Where it stood.
    pub stack: Arc<Stack>,
}

impl Owned {
    /// As the formats take it.
    pub fn as_sample(&self) -> Sample<'_> {
        let Owned { time_ns, thread, state, weight_ns, stack } = self;
        Sample { time_ns: *time_ns, ticks: 1, thread, state: *state, weight_ns: *weight_ns, stack }
    }
}

/// A recording from begin to finish.
#[derive(Debug)]
pub struct Recording {
    /// What is known before.
    pub header: Header,
    /// In the order of time.
    pub samples: Vec<Owned>,
    /// What is known at its end.
    pub summary: Summary,
}

/// Of the recorded process.
pub const PID: u32 = 77;
/// When it began.
pub const START_NS: u64 = 1_700_000_000_000_000_000;

impl Recording {
    /// Without samples.
    pub fn new(mode: Mode) -> Self {
        Recording {
            header: Header {
                pid: PID,
                process_name: "app".to_owned(),
                executable: "/usr/bin/app".to_owned(),
                start_ns: START_NS,
                interval_ns: 10_000_000,
                mode,
                measure: None,
            },
            samples: Vec::new(),
            summary: Summary { duration_ns: 1_000_000_000, ..Summary::default() },
        }
    }

    /// Adds a sample, 10 ms after the one before.
    pub fn add(&mut self, thread: &Arc<Thread>, state: State, weight_ns: u64, stack: &Arc<Stack>) {
        let number = self.samples.len() as u64;
        self.samples.push(Owned {
            time_ns: START_NS + number * 10_000_000 + 5,
            thread: Arc::clone(thread),
            state,
            weight_ns,
            stack: Arc::clone(stack),
        });
        self.summary.samples += 1;
        self.summary.ticks += 1;
    }

    /// The recording in the format of that name.
    pub fn write(&self, format: &str, options: &Options) -> Vec<u8> {
        let mut writer = (find(format).unwrap().make)(options);
        let mut out = Vec::new();
        writer.begin(&self.header, &mut out);
        for owned in &self.samples {
            writer.sample(&owned.as_sample(), &mut out);
        }
        writer.finish(&self.summary, &mut out);
        out
    }

    /// The same as text.
    pub fn text(&self, format: &str, options: &Options) -> String {
        String::from_utf8(self.write(format, options)).unwrap()
    }
}

/// A thread.
pub fn thread(tid: u32, name: &str) -> Arc<Thread> {
    Arc::new(Thread { tid, name: name.to_owned() })
}

/// A stack, leaf first.
pub fn stack(frames: Vec<Frame>) -> Arc<Stack> {
    Arc::new(Stack { frames })
}

/// A file in memory.
pub fn module(path: &str, start: u64) -> Arc<Module> {
    Arc::new(Module {
        path: path.to_owned(),
        start,
        end: start + 0x1000,
        file_offset: 0x200,
        base: start.saturating_sub(0x300),
        build_id: vec![0xab, 0x01, 0xff],
    })
}

/// A function without a source position.
pub fn function(name: &str, offset: u64) -> Function {
    Function { name: name.into(), mangled: None, offset, file: None, line: None }
}

/// The function with a source position.
pub fn at(function: Function, file: &str, line: u32) -> Function {
    Function { file: Some(file.into()), line: Some(line), ..function }
}

/// A frame in a file's code.
pub fn native(address: u64, module: &Arc<Module>, functions: Vec<Function>) -> Frame {
    Frame { address, kind: FrameKind::Native, module: Some(Arc::clone(module)), functions: functions.into() }
}

/// A frame of another kind.
pub fn bare(address: u64, kind: FrameKind, functions: Vec<Function>) -> Frame {
    Frame { address, kind, module: None, functions: functions.into() }
}
