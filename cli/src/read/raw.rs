//! Reads format `raw`, JSON lines (`formats/src/raw.rs` tells what they are), as they come from an agent or a file.
//! What it does not know it passes over; what contradicts itself is an error.

mod line;

use crate::event::{Event, OwnedSample};
use crate::shape::Shape;
use line::{Kind, SampleLine};
use std::sync::Arc;
use swipr_formats::model::{Module, Stack, State, Thread};

/// The newest version that is understood.
const VERSION: u32 = 1;

/// Reads one recording.
#[derive(Debug)]
pub struct RawReader {
    shape: Arc<Shape>,
    root: Option<String>,
    modules: Vec<Arc<Module>>,
    threads: Vec<Arc<Thread>>,
    stacks: Vec<Arc<Stack>>,
    has_header: bool,
}

impl RawReader {
    /// `root`: a remark that becomes the outermost frame of every stack.
    pub fn new(shape: Arc<Shape>, root: Option<String>) -> RawReader {
        let (modules, threads, stacks) = <_>::default();
        RawReader { shape, root, modules, threads, stacks, has_header: false }
    }

    /// How many threads were met.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Takes a line; what it adds to the recording.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Event>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        if line.starts_with(br#"{"type":"sample""#) {
            return self.sample(&parse(line)?).map(Some);
        }
        let kind: Kind = parse(line)?;
        match kind.kind.as_str() {
            "sample" => return self.sample(&parse(line)?).map(Some),
            "header" => {
                let header: line::HeaderLine = parse(line)?;
                if header.swipr > VERSION {
                    return Err(format!(
                        "it is of version {} of the raw format, this command knows {VERSION}",
                        header.swipr
                    ));
                }
                self.has_header = true;
                return Ok(Some(Event::Header(header.into_header()?)));
            }
            "end" => return Ok(Some(Event::End(parse::<line::EndLine>(line)?.into_summary()))),
            "module" => {
                let module: line::ModuleLine = parse(line)?;
                next(&self.modules, module.id)?;
                self.modules.push(Arc::new(module.into_module()?));
            }
            "thread" => {
                let thread: line::ThreadLine = parse(line)?;
                next(&self.threads, thread.id)?;
                self.threads.push(self.shape.thread(Thread { tid: thread.tid, name: thread.name }));
            }
            "stack" => {
                let stack: line::StackLine = parse(line)?;
                next(&self.stacks, stack.id)?;
                let modules = &self.modules;
                let frames = stack.frames.into_iter().map(|frame| frame.into_frame(modules));
                let frames = frames.collect::<Result<Vec<_>, _>>()?;
                self.stacks.push(self.shape.stack(frames, self.root.as_deref()));
            }
            _ => {}
        }
        Ok(None)
    }

    fn sample(&self, line: &SampleLine<'_>) -> Result<Event, String> {
        if !self.has_header {
            return Err("it does not begin with a header line".to_owned());
        }
        let thread = self.threads.get(line.thread).ok_or("a sample is of a thread that was not told")?;
        let stack = self.stacks.get(line.stack).ok_or("a sample has a stack that was not told")?;
        let state = match line.state {
            "running" => State::Running,
            "runnable" => State::Runnable,
            "blocked" => State::Blocked(line.syscall),
            other => return Err(format!("\"{other}\" is no state of a thread")),
        };
        Ok(Event::Sample(OwnedSample {
            time_ns: line.time_ns,
            ticks: 1,
            thread: Arc::clone(thread),
            state,
            weight_ns: line.weight_ns,
            stack: Arc::clone(stack),
        }))
    }
}

fn parse<'a, T: serde::Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| {
        let start = String::from_utf8_lossy(line.get(..60).unwrap_or(line)).into_owned();
        format!("the line {start:?}… cannot be read: {error}")
    })
}

/// Ids count from 0 in the order of the lines.
fn next<T>(known: &[T], id: usize) -> Result<(), String> {
    match id == known.len() {
        true => Ok(()),
        false => Err(format!("id {id} follows {} others", known.len())),
    }
}

#[cfg(test)]
mod tests;
