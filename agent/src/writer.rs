//! A recording's writer thread: takes stacks from the sampler, gives them names, writes them in the
//! recording's format. It is the only thread that waits for the reader of the output, and names that take
//! long to find hold up nobody else.

mod names;

use crate::counters::RecordingCounters;
use crate::platform::process;
use crate::recording::{Closed, Output, Request};
use crate::sample_queue::SampleReceiver;
use names::StackNames;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use swipr_debuginfo::symbolizer::Symbolizer;
use swipr_formats::Format;
use swipr_formats::model::{Header, Sample};

/// How often the writer looks whether its reader is still there.
const LOOK: Duration = Duration::from_millis(200);
/// Output is handed on at the latest when there is so much of it.
const ENOUGH: usize = 32 << 10;

/// What a writer needs.
pub struct Writer {
    /// What was asked for.
    pub request: Arc<Request>,
    /// From the sampler.
    pub samples: SampleReceiver,
    /// To the client.
    pub output: Box<dyn Output>,
    /// The recording's figures.
    pub counters: Arc<RecordingCounters>,
    /// Tells the sampler that nobody reads any more.
    pub stop: Arc<AtomicBool>,
    /// Shared by all writers.
    pub symbolizer: Arc<Mutex<Symbolizer>>,
}

impl Writer {
    /// The thread's body: until the sampler has ended the recording.
    pub fn run(mut self) {
        let mut format = (self.request.format.format.make)(&self.request.format.options);
        let end = match self.write(format.as_mut()) {
            Ok(()) => Ok(self.counters.summary()),
            Err(Closed) => Err("the reader of the output is gone".to_string()),
        };
        self.stop.store(true, Relaxed);
        self.output.finish(end);
    }

    fn write(&mut self, format: &mut dyn Format) -> Result<(), Closed> {
        let mut names = StackNames::new(self.symbolizer.clone(), self.request.symbolize);
        let mut bytes = vec![];
        format.begin(&header(&self.request), &mut bytes);
        loop {
            let batch = match self.samples.receive(LOOK) {
                Ok(batch) => batch,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if self.output.is_closed() {
                        return Err(Closed);
                    }
                    continue;
                }
            };
            for event in batch {
                let stack = names.of(&event.stack);
                let sample = Sample {
                    time_ns: event.time_ns,
                    thread: &event.thread,
                    state: event.state,
                    weight_ns: event.weight_ns,
                    stack: &stack,
                };
                format.sample(&sample, &mut bytes);
                if bytes.len() >= ENOUGH {
                    self.hand_on(&mut bytes)?;
                }
            }
            self.hand_on(&mut bytes)?;
        }
        format.finish(&self.counters.summary(), &mut bytes);
        self.hand_on(&mut bytes)
    }

    fn hand_on(&mut self, bytes: &mut Vec<u8>) -> Result<(), Closed> {
        if self.output.is_closed() {
            return Err(Closed);
        }
        if !bytes.is_empty() {
            self.output.write(bytes)?;
            bytes.clear();
        }
        Ok(())
    }
}

fn header(request: &Request) -> Header {
    let executable = process::executable();
    let name = executable.rsplit('/').next().unwrap_or("").to_string();
    Header {
        pid: process::pid(),
        process_name: name,
        executable,
        start_ns: process::epoch_ns(),
        interval_ns: request.interval.as_nanos() as u64,
        mode: request.mode,
    }
}
