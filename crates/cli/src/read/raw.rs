//! Reads an agent's raw stream as it comes. Not here: what its lines are (`crates/offline/`).
//!
//! One thing that an agent samples is not the program's: programs that `swipr run` starts wait in
//! the library's constructor until they are recorded. That is left out.

use crate::event::{Event, OwnedSample};
use crate::shape::Shape;
use std::sync::Arc;
use swipr_formats::model::{Frame, Stack, Thread};
use swipr_offline::{Line, RawLines, Taken};

/// Reads one recording.
#[derive(Debug)]
pub struct RawReader {
    shape: Arc<Shape>,
    root: Option<String>,
    lines: RawLines,
    threads: Vec<Arc<Thread>>,
    stacks: Vec<Arc<Stack>>,
    /// Of each stack, whether it may be the first thread's in the library's constructor.
    may_wait: Vec<bool>,
    /// Ids as they came: threads of one name may have become one.
    tids: Vec<u32>,
    /// The process's id and its executable, once the header has come.
    process: Option<(u32, String)>,
}

impl RawReader {
    /// `root`: a remark that becomes the outermost frame of every stack.
    pub fn new(shape: Arc<Shape>, root: Option<String>) -> RawReader {
        let (lines, threads, stacks, may_wait, tids) = <_>::default();
        RawReader { shape, root, lines, threads, stacks, may_wait, tids, process: None }
    }

    /// How many threads were met.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Takes a line; what it adds to the recording.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Event>, String> {
        Ok(match self.lines.read(line)? {
            Line::Header(header) => {
                self.process = Some((header.pid, header.executable.clone()));
                Some(Event::Header(header))
            }
            Line::Thread(thread) => {
                self.tids.push(thread.tid);
                self.threads.push(self.shape.thread(thread));
                None
            }
            Line::Stack(frames) => {
                self.may_wait.push(self.is_before_main(&frames));
                self.stacks.push(self.shape.stack(frames, self.root.as_deref()));
                None
            }
            Line::Sample(taken) => self.sample(&taken).map(Event::Sample),
            Line::End(summary) => Some(Event::End(summary)),
            Line::Nothing => None,
        })
    }

    /// Whether the library is at work and the program itself has not started: its constructor,
    /// which no frame of the executable has called.
    fn is_before_main(&self, frames: &[Frame]) -> bool {
        let modules = || frames.iter().filter_map(|frame| frame.module.as_ref());
        let is_library =
            |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libswipr"));
        let executable = self.process.as_ref().map(|(_, path)| path.as_str());
        modules().any(|module| is_library(&module.path))
            && !modules().any(|module| Some(module.path.as_str()) == executable)
    }

    fn sample(&self, taken: &Taken) -> Option<OwnedSample> {
        let pid = self.process.as_ref().map(|(pid, _)| pid);
        if self.may_wait.get(taken.stack) == Some(&true) && self.tids.get(taken.thread) == pid {
            return None;
        }
        let Taken { time_ns, thread, state, weight_ns, stack } = *taken;
        let (thread, stack) = (self.threads.get(thread)?.clone(), self.stacks.get(stack)?.clone());
        Some(OwnedSample { time_ns, ticks: 1, thread, state, weight_ns, stack })
    }
}

#[cfg(test)]
mod tests;
