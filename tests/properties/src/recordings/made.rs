//! A recording of choices: few threads and stacks, whose names are hostile.

use crate::choices::Choices;
use std::sync::Arc;
use swipr_formats::model::{
    Frame, FrameKind, Function, Header, Mode, Module, Sample, Stack, State, Summary, Thread,
};
use swipr_formats::{Names, Options, Weight, find};

/// Of the recorded process.
pub const PID: u32 = 77;
const START_NS: u64 = 1_700_000_000_000_000_000;
/// Longest name of some bytes.
const MAX_NAME_BYTES: usize = 60;

/// What names are put together of: whatever was seen to hurt a reader, and what names of functions
/// consist of.
const PIECES: [&str; 62] = [
    "",
    " ",
    "a",
    "#",
    "# ========",
    "{\"meta\":1}",
    "[unknown]",
    "\n\n",
    "evil 1/2 3.4: 5 cpu-clock:",
    "\t",
    "\t00 pwned+0x0 (x)",
    "\r",
    "foo)",
    "(",
    ")",
    "()",
    "/lib/x.so",
    " (deleted)",
    ";",
    "é",
    "名前",
    "12345",
    " 12",
    "1.5:",
    "0x1234",
    "0X",
    "+0x12",
    "->",
    "-",
    ">",
    "\u{0}",
    "(anonymous namespace)",
    "operator",
    "operator()",
    "{lambda(int)#1}",
    "::",
    " const",
    "closure #1 (Swift.Int) -> () in ",
    "<",
    " as ",
    "h0123456789abcdef",
    "_$LP$",
    "$",
    ".",
    "\u{1b}[31m",
    "\u{85}",
    "\u{2028}",
    "\u{a0}",
    "\u{feff}",
    "\u{202e}",
    "%",
    "%20",
    "\"",
    "\\",
    "'",
    "<script>",
    "&amp;",
    " 1/2 ",
    "{",
    "}",
    "[",
    "]",
];

/// See the module's text.
#[derive(Debug)]
pub struct Made {
    /// What is known before.
    pub header: Header,
    samples: Vec<Owned>,
}

#[derive(Debug)]
struct Owned {
    ticks: u32,
    thread: Arc<Thread>,
    state: State,
    weight_ns: u64,
    stack: Arc<Stack>,
}

/// One tick of a sample.
#[derive(Debug)]
pub struct Tick<'a> {
    /// Whose.
    pub thread: &'a Thread,
    /// What it did.
    pub state: State,
    /// What the tick represents.
    pub weight_ns: u64,
    /// Where it stood.
    pub stack: &'a Stack,
}

fn name(choices: &mut Choices<'_>) -> String {
    let mut name = String::new();
    for _ in 0..choices.below(6) {
        match choices.byte() {
            byte @ 0..=199 => name.push_str(PIECES[usize::from(byte) % PIECES.len()]),
            200..=203 => name.push_str(&"x".repeat(choices.below(2000) as usize)),
            _ => {
                let bytes = choices.some_bytes();
                name.push_str(&String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_NAME_BYTES)]));
            }
        }
    }
    name
}

/// Any of the choices that a client has.
pub fn options(choices: &mut Choices<'_>) -> Options {
    Options {
        names: choices.one_of(&[Names::Safe, Names::Safe, Names::Raw, Names::Mangled]),
        lines: choices.flag(),
        inline: choices.byte() % 4 != 3,
        merge_threads: choices.byte() % 4 == 3,
        compat: choices.byte() % 4 == 3,
        max_depth: choices.flag().then(|| choices.below(6) as usize),
        title: choices.flag().then(|| name(choices)),
        weight: choices.one_of(&[None, Some(Weight::Samples), Some(Weight::Nanoseconds)]),
        states: choices.flag(),
        snapshot: false,
    }
}

impl Made {
    /// Of these choices.
    pub fn new(choices: &mut Choices<'_>) -> Made {
        let header = Header {
            pid: PID,
            process_name: name(choices),
            executable: name(choices),
            start_ns: START_NS,
            interval_ns: 10_000_000,
            mode: choices.one_of(&[Mode::Wall, Mode::Cpu]),
            measure: None,
        };
        let count = 1 + choices.below(3) as u32;
        let threads: Vec<_> =
            (0..count).map(|n| Arc::new(Thread { tid: PID + n % 2, name: name(choices) })).collect();
        let modules: Vec<_> = (0..1 + choices.below(3)).map(|n| Arc::new(module(choices, n))).collect();
        let stacks: Vec<_> = (0..1 + choices.below(4)).map(|_| Arc::new(stack(choices, &modules))).collect();
        let samples = (0..choices.below(8))
            .map(|_| Owned {
                ticks: 1 + choices.below(3) as u32,
                thread: threads[choices.below(threads.len() as u64) as usize].clone(),
                state: choices.one_of(&[
                    State::Running,
                    State::Runnable,
                    State::Blocked(None),
                    State::Blocked(Some(0)),
                    State::Blocked(Some(9999)),
                ]),
                weight_ns: choices.word() >> 24,
                stack: stacks[choices.below(stacks.len() as u64) as usize].clone(),
            })
            .collect();
        Made { header, samples }
    }

    /// Every tick of every sample.
    pub fn each_tick(&self) -> impl Iterator<Item = Tick<'_>> {
        self.samples.iter().flat_map(|owned| {
            (0..owned.ticks).map(|_| Tick {
                thread: &owned.thread,
                state: owned.state,
                weight_ns: owned.weight_ns,
                stack: &owned.stack,
            })
        })
    }

    /// In the format of that name.
    pub fn write(&self, format: &str, options: &Options) -> Vec<u8> {
        let mut writer = (find(format).unwrap().make)(options);
        let mut out = Vec::new();
        writer.begin(&self.header, &mut out);
        for (owned, number) in self.samples.iter().zip(0..) {
            let sample = Sample {
                time_ns: START_NS + 10_000_000 * number,
                ticks: owned.ticks,
                thread: &owned.thread,
                state: owned.state,
                weight_ns: owned.weight_ns,
                stack: &owned.stack,
            };
            writer.sample(&sample, &mut out);
        }
        let samples = self.each_tick().count() as u64;
        writer.finish(&Summary { samples, ticks: samples, threads: 1, ..Summary::default() }, &mut out);
        out
    }

    /// The same as text.
    pub fn text(&self, format: &str, options: &Options) -> String {
        String::from_utf8(self.write(format, options)).unwrap()
    }
}

fn module(choices: &mut Choices<'_>, number: u64) -> Module {
    let build_id = choices.some_bytes();
    Module {
        path: name(choices),
        start: number << 16,
        end: (number + 1) << 16,
        file_offset: choices.word(),
        base: choices.word(),
        build_id: build_id[..build_id.len().min(20)].to_vec(),
    }
}

fn stack(choices: &mut Choices<'_>, modules: &[Arc<Module>]) -> Stack {
    Stack { frames: (0..choices.below(6)).map(|_| frame(choices, modules)).collect() }
}

fn frame(choices: &mut Choices<'_>, modules: &[Arc<Module>]) -> Frame {
    match choices.byte() % 8 {
        0 => {
            let note = Function { offset: 0, mangled: None, file: None, line: None, ..function(choices) };
            Frame { address: 0, kind: FrameKind::Note, module: None, functions: Arc::new([note]) }
        }
        kind => Frame {
            address: choices.word(),
            kind: if kind == 1 { FrameKind::Jit } else { FrameKind::Native },
            module: choices.flag().then(|| modules[choices.below(modules.len() as u64) as usize].clone()),
            functions: (0..choices.below(4)).map(|_| function(choices)).collect(),
        },
    }
}

fn function(choices: &mut Choices<'_>) -> Function {
    Function {
        name: name(choices).into(),
        mangled: choices.flag().then(|| name(choices).into()),
        offset: choices.word(),
        file: choices.flag().then(|| name(choices).into()),
        line: choices.flag().then(|| choices.word() as u32),
    }
}
