//! A recording's output that takes samples as they are, instead of bytes.

use crate::output::Completion;
use std::sync::{Arc, Mutex, PoisonError};
use swipr_formats::model::{Header, Sample, Summary};
use swipr_formats::{Format, MemoryRecording};
use swipr_server::recording::{Closed, Output};

/// Keeps what was sampled.
#[derive(Debug)]
pub(super) struct MemoryOutput {
    kept: Arc<Mutex<MemoryRecording>>,
    completion: Arc<Completion>,
}

impl MemoryOutput {
    pub(super) fn new(kept: Arc<Mutex<MemoryRecording>>, completion: Arc<Completion>) -> MemoryOutput {
        MemoryOutput { kept, completion }
    }
}

impl Output for MemoryOutput {
    fn write(&mut self, _: &[u8]) -> Result<(), Closed> {
        Ok(())
    }

    fn is_closed(&self) -> bool {
        false
    }

    fn takes_empty(&self) -> bool {
        true
    }

    fn format(&self) -> Option<Box<dyn Format>> {
        Some(Box::new(MemoryWriter(self.kept.clone())))
    }

    fn finish(self: Box<Self>, end: Result<Summary, String>) {
        self.completion.set(end);
    }
}

impl Drop for MemoryOutput {
    fn drop(&mut self) {
        self.completion.set(Err("the recording could not be started".into()));
    }
}

/// The format that keeps the samples. Reports are made while the recording runs, so the lock is
/// held for moments only.
struct MemoryWriter(Arc<Mutex<MemoryRecording>>);

impl MemoryWriter {
    fn with(&self, body: impl FnOnce(&mut MemoryRecording)) {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Format for MemoryWriter {
    fn begin(&mut self, header: &Header, out: &mut Vec<u8>) {
        self.with(|kept| kept.begin(header, out));
    }

    fn sample(&mut self, sample: &Sample<'_>, out: &mut Vec<u8>) {
        self.with(|kept| kept.sample(sample, out));
    }

    fn finish(&mut self, summary: &Summary, out: &mut Vec<u8>) {
        self.with(|kept| kept.finish(summary, out));
    }
}
