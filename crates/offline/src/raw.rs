//! The lines of `format=raw`, as they come from an agent or are in a file;
//! `crates/formats/src/raw.rs` says what they are. Unknown types and fields are skipped; lines that
//! contradict each other are an error.

mod line;

use crate::error::Error;
use crate::recording::{Recording, Taken};
use line::{Kind, SampleLine};
use std::sync::Arc;
use swipr_formats::model::{Frame, Header, Module, Stack, State, Summary, Thread};

/// The newest version that is read.
const VERSION: u32 = 1;

/// What a line adds to a recording.
#[derive(Clone, Debug)]
pub enum Line {
    /// What is known before the first sample.
    Header(Header),
    /// The next thread: they are numbered from 0, in the order of their lines.
    Thread(Thread),
    /// The next stack, numbered likewise.
    Stack(Vec<Frame>),
    /// A sample, of a thread and with a stack that earlier lines defined.
    Sample(Taken),
    /// What is known after the last sample.
    End(Summary),
    /// Nothing by itself.
    Nothing,
}

/// Reads the lines of one recording, one after the other.
#[derive(Debug, Default)]
pub struct RawLines {
    has_header: bool,
    modules: Vec<Arc<Module>>,
    threads: usize,
    stacks: usize,
}

impl RawLines {
    /// Takes a line.
    pub fn read(&mut self, line: &[u8]) -> Result<Line, String> {
        if line.trim_ascii().is_empty() {
            return Ok(Line::Nothing);
        }
        if line.starts_with(br#"{"type":"sample""#) {
            return self.sample(&parse(line)?);
        }
        let kind: Kind = parse(line)?;
        Ok(match kind.kind.as_str() {
            "sample" => return self.sample(&parse(line)?),
            "header" => {
                // Of a newer version nothing else is known.
                let version = parse::<line::Version>(line)?.swipr;
                if version > VERSION {
                    return Err(format!(
                        "it is of version {version} of the raw format, this reader knows {VERSION}"
                    ));
                }
                self.has_header = true;
                Line::Header(parse::<line::HeaderLine>(line)?.into_header()?)
            }
            "end" => Line::End(parse::<line::EndLine>(line)?.into_summary()),
            "module" => {
                let module: line::ModuleLine = parse(line)?;
                next(self.modules.len(), module.id)?;
                self.modules.push(Arc::new(module.into_module()?));
                Line::Nothing
            }
            "thread" => {
                let thread: line::ThreadLine = parse(line)?;
                next(self.threads, thread.id)?;
                self.threads += 1;
                Line::Thread(Thread { tid: thread.tid, name: thread.name })
            }
            "stack" => {
                let stack: line::StackLine = parse(line)?;
                next(self.stacks, stack.id)?;
                let frames = stack.frames.into_iter().map(|frame| frame.into_frame(&self.modules));
                let frames = frames.collect::<Result<Vec<_>, _>>()?;
                self.stacks += 1;
                Line::Stack(frames)
            }
            _ => Line::Nothing,
        })
    }

    fn sample(&self, line: &SampleLine<'_>) -> Result<Line, String> {
        if !self.has_header {
            return Err("it does not begin with a header line".into());
        }
        if line.thread >= self.threads {
            return Err("a sample is of a thread that the recording does not have".into());
        }
        if line.stack >= self.stacks {
            return Err("a sample has a stack that the recording does not have".into());
        }
        let state = match line.state {
            "running" => State::Running,
            "runnable" => State::Runnable,
            "blocked" => State::Blocked(line.syscall),
            other => return Err(format!("\"{other}\" is no state of a thread")),
        };
        let SampleLine { time_ns, thread, weight_ns, stack, .. } = *line;
        Ok(Line::Sample(Taken { time_ns, thread, state, weight_ns, stack }))
    }
}

fn parse<'a, T: serde::Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| {
        let start = String::from_utf8_lossy(line.get(..60).unwrap_or(line)).into_owned();
        format!("the line {start:?}… cannot be read: {error}")
    })
}

/// Ids count from 0 in the order of the lines.
fn next(known: usize, id: usize) -> Result<(), String> {
    match id == known {
        true => Ok(()),
        false => Err(format!("id {id} follows {known} others")),
    }
}

/// Reads a whole file.
pub(crate) fn read(text: &str) -> Result<Recording, Error> {
    let mut reader = RawLines::default();
    let (mut recording, mut end) = (None::<Recording>, None);
    let last = text.lines().count();
    for (index, line) in text.lines().enumerate() {
        let read = match reader.read(line.as_bytes()) {
            Ok(read) => read,
            // A recording that was interrupted ends in the middle of a line.
            Err(_) if recording.is_some() && index + 1 == last && !text.ends_with("}\n") => break,
            Err(_) if recording.is_none() && !line.contains("\"swipr\"") => return Err(Error::NoHeader),
            Err(what) => return Err(Error::Line { number: index + 1, what }),
        };
        match (read, &mut recording) {
            (Line::Header(header), None) => recording = Some(Recording::new(header)),
            (Line::Thread(thread), Some(recording)) => recording.threads.push(Arc::new(thread)),
            (Line::Stack(frames), Some(recording)) => recording.stacks.push(Arc::new(Stack { frames })),
            (Line::Sample(taken), Some(recording)) => recording.samples.push(taken),
            (Line::End(summary), Some(_)) => end = Some(summary),
            (Line::Nothing, _) | (_, Some(_)) => {}
            (_, None) => return Err(Error::NoHeader),
        }
    }
    let mut recording = recording.ok_or(Error::NoHeader)?;
    recording.summary = end.unwrap_or_else(|| Summary { is_cut: true, ..recording.figures() });
    Ok(recording)
}
