//! swift-profile-recorder's own files: `[SWIPR]`, four letters, JSON. Two kinds of lines are not
//! quite JSON, and are read nevertheless: the configuration has a comma at its end, and threads'
//! names are not escaped.

use crate::error::Error;
use crate::recording::{Recording, Taken};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Header, Mode, Module, Stack, State, Thread};

/// Whether a line is one of these.
pub(crate) fn is_one(line: &str) -> bool {
    line.starts_with("[SWIPR] ")
}

/// Reads such lines; others, which a program may have written between them, are passed over.
pub(crate) fn read(text: &str) -> Result<Recording, Error> {
    let mut reader = Reader::new();
    for (index, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix("[SWIPR] ") else { continue };
        let (kind, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let wrong = || Error::Line { number: index + 1, what: "a field is missing or makes no sense".into() };
        reader.take(kind, body.trim()).ok_or_else(wrong)?;
    }
    Ok(reader.finish())
}

struct Reader {
    recording: Recording,
    modules: Vec<Arc<Module>>,
    threads: HashMap<Thread, usize>,
    stacks: HashMap<Vec<u64>, usize>,
    /// The sample whose lines are being read: its time, its thread, and the addresses so far.
    open: Option<(u64, usize, Vec<u64>)>,
}

impl Reader {
    fn new() -> Reader {
        let header = Header {
            pid: 0,
            process_name: String::new(),
            executable: String::new(),
            start_ns: 0,
            interval_ns: 0,
            mode: Mode::Wall,
            measure: None,
        };
        let (modules, threads, stacks, open) = <_>::default();
        Reader { recording: Recording::new(header), modules, threads, stacks, open }
    }

    fn take(&mut self, kind: &str, body: &str) -> Option<()> {
        match kind {
            "VMAP" => self.module(&json(body)?)?,
            "CONF" => {
                let conf = json(body)?;
                let of = |key| conf.get(key).and_then(Value::as_u64);
                let header = &mut self.recording.header;
                header.interval_ns = of("microSecondsBetweenSamples")?.saturating_mul(1000);
                header.start_ns = nanoseconds(of("currentTimeSeconds")?, of("currentTimeNanoseconds")?);
            }
            "SMPL" => self.begin(body)?,
            "STCK" => {
                let address = address(&json(body)?, "ip")?;
                self.open.as_mut()?.2.push(address);
            }
            "DONE" => self.done()?,
            _ => {}
        }
        Some(())
    }

    fn module(&mut self, map: &Value) -> Option<()> {
        // Its newer name, and the older one.
        let bias = address(map, "segmentSlide").or_else(|| address(map, "fileMappedAddress"))?;
        let module = Arc::new(Module {
            path: map.get("path")?.as_str()?.to_owned(),
            start: address(map, "segmentStartAddress")?,
            end: address(map, "segmentEndAddress")?,
            file_offset: 0,
            base: bias,
            build_id: Vec::new(),
        });
        self.recording.biases.insert(module.clone(), bias);
        self.modules.push(module);
        Some(())
    }

    fn begin(&mut self, body: &str) -> Option<()> {
        let sample = json(body).or_else(|| json(&without_name(body)?))?;
        let of = |key| sample.get(key).and_then(Value::as_u64);
        let name = match sample.get("name").and_then(Value::as_str) {
            Some(name) => name,
            None => name_in(body)?,
        };
        let thread = Thread { tid: u32::try_from(of("tid")?).ok()?, name: name.to_owned() };
        self.recording.header.pid = u32::try_from(of("pid")?).ok()?;
        let next = self.recording.threads.len();
        let index = *self.threads.entry(thread.clone()).or_insert(next);
        if index == next {
            self.recording.threads.push(Arc::new(thread));
        }
        self.open = Some((nanoseconds(of("timeSec")?, of("timeNSec")?), index, Vec::new()));
        Some(())
    }

    fn done(&mut self) -> Option<()> {
        let (time_ns, thread, mut addresses) = self.open.take()?;
        // The first frame stands there twice.
        if let [first, second, ..] = addresses[..]
            && first == second
        {
            addresses.remove(0);
        }
        let next = self.recording.stacks.len();
        let stack = *self.stacks.entry(addresses.clone()).or_insert(next);
        if stack == next {
            let frames = addresses.iter().map(|&address| self.frame(address)).collect();
            self.recording.stacks.push(Arc::new(Stack { frames }));
        }
        let weight_ns = self.recording.header.interval_ns;
        self.recording.samples.push(Taken { time_ns, thread, state: State::Running, weight_ns, stack });
        Some(())
    }

    fn frame(&self, address: u64) -> Frame {
        let module = self.modules.iter().find(|module| (module.start..module.end).contains(&address));
        Frame { address, kind: FrameKind::Native, module: module.cloned(), functions: Arc::new([]) }
    }

    fn finish(self) -> Recording {
        let mut recording = self.recording;
        // The program itself is the first that is mapped.
        let executable = self.modules.first().map(|module| module.path.clone()).unwrap_or_default();
        recording.header.process_name = executable.rsplit('/').next().unwrap_or_default().to_owned();
        recording.header.executable = executable;
        recording.summary = recording.figures();
        recording
    }
}

/// `0x` and hexadecimal digits.
fn address(object: &Value, field: &str) -> Option<u64> {
    u64::from_str_radix(object.get(field)?.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn nanoseconds(seconds: u64, rest: u64) -> u64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// An object, also with a comma behind its last member.
fn json(body: &str) -> Option<Value> {
    serde_json::from_str(body).ok().or_else(|| {
        let open = body.strip_suffix('}')?.trim_end().strip_suffix(',')?;
        serde_json::from_str(&format!("{open}}}")).ok()
    })
}

/// Where the name of a thread is that has quotation marks or backslashes in it.
fn name_range(body: &str) -> Option<std::ops::Range<usize>> {
    const BEFORE: &str = "\"name\": \"";
    let start = body.find(BEFORE)? + BEFORE.len();
    let end = body.rfind("\", \"timeSec\"").filter(|&end| end >= start)?;
    Some(start..end)
}

fn name_in(body: &str) -> Option<&str> {
    body.get(name_range(body)?)
}

fn without_name(body: &str) -> Option<String> {
    let name = name_range(body)?;
    let (before, after) = (body.get(..name.start)?, body.get(name.end..)?);
    // The member goes under another name, so that the real one is asked for.
    Some(format!("{}{after}", before.replacen("\"name\"", "\"no name\"", 1)))
}
