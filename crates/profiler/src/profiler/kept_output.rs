//! A recording's output that takes samples as they are, instead of bytes.

use crate::output::Completion;
use crate::recording::{Closed, Output};
use std::sync::{Arc, Mutex, PoisonError};
use swipr_formats::model::{Header, Sample, Summary};
use swipr_formats::{Format, Kept};

/// Keeps what was sampled.
#[derive(Debug)]
pub(super) struct KeptOutput {
    kept: Arc<Mutex<Kept>>,
    completion: Arc<Completion>,
}

impl KeptOutput {
    pub(super) fn new(kept: Arc<Mutex<Kept>>, completion: Arc<Completion>) -> KeptOutput {
        KeptOutput { kept, completion }
    }
}

impl Output for KeptOutput {
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
        Some(Box::new(Keeper(self.kept.clone())))
    }

    fn finish(self: Box<Self>, end: Result<Summary, String>) {
        self.completion.set(end);
    }
}

impl Drop for KeptOutput {
    fn drop(&mut self) {
        self.completion.set(Err("the recording could not be started".into()));
    }
}

/// The format that keeps. A report is made of it meanwhile: the lock is held for moments.
struct Keeper(Arc<Mutex<Kept>>);

impl Keeper {
    fn with(&self, body: impl FnOnce(&mut Kept)) {
        body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Format for Keeper {
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
