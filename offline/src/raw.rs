//! The lines of `format=raw`; `formats/src/raw.rs` says what they are. Types and fields that are not known are passed over.

use crate::error::Error;
use crate::recording::{Recording, Taken};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Function, Header, Mode, Module, Stack, State, Summary, Thread};

/// The newest version that is read.
const VERSION: u64 = 1;

pub(crate) fn read(text: &str) -> Result<Recording, Error> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let first =
        lines.next().and_then(|(_, line)| serde_json::from_str::<Value>(line).ok()).ok_or(Error::NoHeader)?;
    let version = first.get("swipr").and_then(Value::as_u64).ok_or(Error::NoHeader)?;
    if version > VERSION {
        return Err(Error::Version(version));
    }
    let mut reader = Reader { modules: Vec::new(), recording: begun(header(&first)) };
    for (index, line) in lines {
        let wrong = |what| Error::Line { number: index + 1, what };
        match serde_json::from_str::<Value>(line) {
            Ok(value) => reader.take(&value).ok_or_else(|| wrong("a field is missing or makes no sense"))?,
            // A recording that was interrupted ends in the middle of a line.
            Err(_) if index + 1 == text.lines().count() => break,
            Err(_) => return Err(wrong("no JSON")),
        }
    }
    let mut recording = reader.recording;
    if !recording.is_whole {
        recording.summary.samples = recording.samples.len() as u64;
    }
    Ok(recording)
}

fn begun(header: Header) -> Recording {
    let (threads, stacks, samples, summary, is_whole, biases) = <_>::default();
    Recording { header, threads, stacks, samples, summary, is_whole, biases }
}

struct Reader {
    modules: Vec<Arc<Module>>,
    recording: Recording,
}

impl Reader {
    /// Takes a line in; `None`: it lacks something.
    fn take(&mut self, line: &Value) -> Option<()> {
        let recording = &mut self.recording;
        match text(line, "type")? {
            "module" => self.modules.push(Arc::new(module(line)?)),
            "thread" => recording.threads.push(Arc::new(Thread {
                tid: u32::try_from(number(line, "tid")?).ok()?,
                name: text(line, "name")?.to_owned(),
            })),
            "stack" => {
                let frames = line.get("frames")?.as_array()?;
                let frames = frames.iter().map(|it| frame(it, &self.modules)).collect::<Option<_>>()?;
                recording.stacks.push(Arc::new(Stack { frames }));
            }
            "sample" => recording.samples.push(Taken {
                time_ns: number(line, "time_ns")?,
                thread: index(line, "thread", recording.threads.len())?,
                state: state(line)?,
                weight_ns: number(line, "weight_ns")?,
                stack: index(line, "stack", recording.stacks.len())?,
            }),
            "end" => {
                recording.summary = summary(line);
                recording.is_whole = true;
            }
            _ => {}
        }
        Some(())
    }
}

fn text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object.get(field)?.as_str()
}

fn number(object: &Value, field: &str) -> Option<u64> {
    object.get(field)?.as_u64()
}

fn index(object: &Value, field: &str, count: usize) -> Option<usize> {
    usize::try_from(number(object, field)?).ok().filter(|&index| index < count)
}

/// `0x` and hexadecimal digits.
pub(crate) fn address(object: &Value, field: &str) -> Option<u64> {
    u64::from_str_radix(text(object, field)?.strip_prefix("0x")?, 16).ok()
}

fn header(line: &Value) -> Header {
    let of = |field| text(line, field).unwrap_or_default().to_owned();
    Header {
        pid: number(line, "pid").and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0),
        process_name: of("process_name"),
        executable: of("executable"),
        start_ns: number(line, "start_ns").unwrap_or(0),
        interval_ns: number(line, "interval_ns").unwrap_or(0),
        mode: if text(line, "mode") == Some("cpu") { Mode::Cpu } else { Mode::Wall },
    }
}

fn module(line: &Value) -> Option<Module> {
    let digits = text(line, "build_id")?.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    Some(Module {
        path: text(line, "path")?.to_owned(),
        start: address(line, "start")?,
        end: address(line, "end")?,
        file_offset: address(line, "file_offset")?,
        build_id: digits.chunks(2).map(byte).collect::<Option<_>>()?,
    })
}

fn frame(value: &Value, modules: &[Arc<Module>]) -> Option<Frame> {
    let functions = match value.get("functions") {
        Some(functions) => functions.as_array()?.iter().map(function).collect::<Option<Vec<_>>>()?,
        None => Vec::new(),
    };
    let module = match value.get("module") {
        Some(_) => Some(modules.get(index(value, "module", modules.len())?)?.clone()),
        None => None,
    };
    let kind = match text(value, "kind") {
        Some("jit") => FrameKind::Jit,
        Some("note") => FrameKind::Note,
        _ => FrameKind::Native,
    };
    Some(Frame { address: address(value, "address")?, kind, module, functions: functions.into() })
}

fn function(value: &Value) -> Option<Function> {
    Some(Function {
        name: text(value, "name")?.into(),
        mangled: text(value, "mangled").map(Arc::from),
        offset: number(value, "offset")?,
        file: text(value, "file").map(Arc::from),
        line: number(value, "line").and_then(|line| u32::try_from(line).ok()),
    })
}

fn state(line: &Value) -> Option<State> {
    Some(match text(line, "state")? {
        "running" => State::Running,
        "runnable" => State::Runnable,
        _ => State::Blocked(number(line, "syscall").and_then(|call| u32::try_from(call).ok())),
    })
}

fn summary(line: &Value) -> Summary {
    let of: HashMap<&str, u64> = line
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((&**key, value.as_u64()?)))
        .collect();
    let of = |key| of.get(key).copied().unwrap_or(0);
    Summary {
        duration_ns: of("duration_ns"),
        threads: of("threads"),
        ticks: of("ticks"),
        late: of("late"),
        samples: of("samples"),
        truncated: of("truncated"),
        missed: of("missed"),
        dropped: of("dropped"),
        unsampled_cpu_ns: of("unsampled_cpu_ns"),
        filled: of("filled"),
        inferred: of("inferred"),
        cpu_wait_ns: of("cpu_wait_ns"),
        without_lines: of("without_lines"),
        ..Summary::default()
    }
}
