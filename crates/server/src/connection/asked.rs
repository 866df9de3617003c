//! A deferred answer: another thread makes it. Its bytes are kept until they are all there.

use crate::pipe::PipeReader;
use crate::proto::answer::{Answer, Form};

/// Longer answers are refused: no client needs so many names at once.
const MAX_BYTES: usize = 64 << 20;

/// An answer that another thread makes.
pub(crate) struct DeferredResponse {
    reader: PipeReader,
    pub(crate) form: Form,
    held: Vec<u8>,
}

impl DeferredResponse {
    pub(crate) fn new(reader: PipeReader, form: Form) -> DeferredResponse {
        DeferredResponse { reader, form, held: Vec::new() }
    }

    /// Takes what has come; the answer, once that is all.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        while self.reader.take(&mut self.held, MAX_BYTES) > 0 {
            if self.held.len() >= MAX_BYTES {
                return Some(Answer::problem(500, "the answer is too long"));
            }
        }
        let text = || String::from_utf8_lossy(&self.held).into_owned();
        Some(match self.reader.end()? {
            Ok(_) => Answer::json(text()),
            Err(reason) => Answer::problem(500, reason),
        })
    }
}
