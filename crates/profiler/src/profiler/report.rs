//! What was recorded, to be inspected or written.

use super::Error;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use swipr_formats::model::{Frame, Stack, State, Summary, Thread};
use swipr_formats::{FormatInfo, MemoryRecording, Options, Selection};

/// Changes a stack before it is written: renames functions and threads, leaves frames out.
type Change = Arc<dyn Fn(&mut Frames) + Send + Sync>;

/// A stack, as it can be changed before it is written.
#[derive(Clone, Debug)]
pub struct Frames {
    /// Its frames, leaf first.
    pub frames: Vec<Frame>,
    /// The name of its thread. Threads that get the same name are merged if the format has threads
    /// by name.
    pub thread_name: String,
}

/// A thread, what it was doing, and its stack.
pub type Key = (Arc<Thread>, State, Arc<Stack>);

/// A recording, as far as it had come when the report was made.
#[derive(Clone)]
pub struct Report {
    kept: Arc<MemoryRecording>,
    options: Options,
    changes: Vec<Change>,
}

impl Report {
    pub(super) fn of(kept: &Mutex<MemoryRecording>) -> Report {
        let kept = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Report { kept: Arc::new(kept), options: Options::default(), changes: vec![] }
    }

    /// Changes every stack before it is written: its frames, the name of its thread.
    pub fn frames_post_processor(mut self, change: impl Fn(&mut Frames) + Send + Sync + 'static) -> Report {
        self.changes.push(Arc::new(change));
        self
    }

    /// Leaves out frames of objects whose path contains one of these texts, such as `libc` and
    /// `pthread`.
    pub fn blocklist(self, parts: &[&str]) -> Report {
        let parts: Vec<String> = parts.iter().map(|part| part.to_string()).collect();
        self.frames_post_processor(move |stack| {
            let is_blocked = |frame: &Frame| {
                let path = frame.module.as_ref().map_or("", |module| module.path.as_str());
                parts.iter().any(|part| path.contains(part.as_str()))
            };
            stack.frames.retain(|frame| !is_blocked(frame));
        })
    }

    /// All threads as one.
    pub fn merge_threads(mut self) -> Report {
        self.options.merge_threads = true;
        self
    }

    /// A title, where the format has room for one.
    pub fn title(mut self, title: &str) -> Report {
        self.options.title = Some(title.to_owned());
        self
    }

    /// How many samples each stack of each thread has, and what they represent in nanoseconds.
    pub fn stacks(&self) -> HashMap<Key, (u64, u64)> {
        let mut sums = HashMap::new();
        let mut known = HashMap::new();
        for entry in self.kept.entries() {
            let key = (Arc::as_ptr(entry.thread), Arc::as_ptr(entry.stack));
            let changed = known.entry(key).or_insert_with(|| self.changed(entry.thread, entry.stack));
            let (thread, stack) = changed.clone();
            let sum = sums.entry((thread, entry.state, stack)).or_insert((0, 0));
            *sum = (sum.0 + entry.samples, sum.1 + entry.weight_ns);
        }
        sums
    }

    /// The recording's figures, with the counts of losses. `None` while the recording runs.
    pub fn summary(&self) -> Option<&Summary> {
        self.kept.summary()
    }

    /// Writes it in any format: `folded`, `pprof`, `perf`, `html`, … (see `docs/http.md`).
    pub fn write(&self, format: &str, writer: &mut impl Write) -> io::Result<()> {
        let format =
            find_format(format).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let selection = Selection { format, options: self.options.clone() };
        writer.write_all(&self.kept.write(&selection, |thread, stack| self.changed(thread, stack)))
    }

    /// Writes a flame graph as SVG.
    pub fn flamegraph(&self, writer: &mut impl Write) -> io::Result<()> {
        self.write("svg", writer)
    }

    /// Writes a pprof profile, compressed by gzip, with addresses, mappings, lines and inlined
    /// functions.
    pub fn pprof(&self, writer: &mut impl Write) -> io::Result<()> {
        self.write("pprof", writer)
    }

    fn changed(&self, thread: &Arc<Thread>, stack: &Arc<Stack>) -> (Arc<Thread>, Arc<Stack>) {
        if self.changes.is_empty() {
            return (thread.clone(), stack.clone());
        }
        let mut changed = Frames { frames: stack.frames.clone(), thread_name: thread.name.clone() };
        self.changes.iter().for_each(|change| change(&mut changed));
        let Frames { frames, thread_name } = changed;
        (Arc::new(Thread { tid: thread.tid, name: thread_name }), Arc::new(Stack { frames }))
    }
}

pub(super) fn find_format(name: &str) -> Result<&'static FormatInfo, Error> {
    swipr_formats::find(name).ok_or_else(|| {
        let known: Vec<&str> = swipr_formats::FORMATS.iter().map(|format| format.name).collect();
        Error(format!("there is no format {name:?}; there are {}", known.join(", ")))
    })
}

/// The stacks, one a line, the most frequent first.
impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folded =
            swipr_formats::find("folded").map(|format| Selection { format, options: self.options.clone() });
        let text = folded.map(|folded| self.kept.write(&folded, |thread, stack| self.changed(thread, stack)));
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_by_key(|line| std::cmp::Reverse(count(line)));
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
