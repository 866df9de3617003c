//! The output of a recording: a format's writer before what it is written to.

mod sink;

use crate::error::{Error, Exit};
use crate::event::OwnedSample;
use sink::Sink;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use swipr_formats::model::{FrameKind, Header, Sample, State, Summary};
use swipr_formats::{FORMATS, Format, FormatInfo, Selection};

/// Output is written at the latest when there is so much of it.
const FLUSH_BYTES: usize = 256 << 10;

/// A reader of a pipe gets what there is so soon.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);

/// So many ticks of a sample are written at once.
const TICKS: u32 = 1000;

/// Where output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTarget {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl OutputTarget {
    /// `-` is standard output.
    pub fn new(path: &Path) -> OutputTarget {
        if path == Path::new("-") { OutputTarget::Stdout } else { OutputTarget::File(path.to_owned()) }
    }
}

/// The format that a file's name selects.
pub fn format_of(path: &Path) -> Option<&'static FormatInfo> {
    swipr_formats::of_file(&path.file_name()?.to_string_lossy())
}

/// The format by its name, or by the file's name.
pub fn choose(name: Option<&str>, output: Option<&Path>) -> Result<&'static FormatInfo, Error> {
    let known = || FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        return swipr_formats::find(name).ok_or_else(|| {
            Error::new(format!("there is no format \"{name}\""), format!("take one of {}", known()))
                .exit(Exit::Usage)
        });
    }
    match output.filter(|path| *path != Path::new("-")) {
        None => Ok(default_format()),
        Some(path) => format_of(path).ok_or_else(|| {
            let suffixes: Vec<String> = FORMATS.iter().map(|format| format!(".{}", format.suffix)).collect();
            Error::new(
                format!("the name {} does not say which format", path.display()),
                format!("end it with one of {}, or give -f with one of {}", suffixes.join(", "), known()),
            )
            .exit(Exit::Usage)
        }),
    }
}

/// A picture where one can be drawn, else what the most viewers read.
fn default_format() -> &'static FormatInfo {
    let wanted = ["html", "svg", "perf"].iter().find_map(|name| swipr_formats::find(name));
    wanted.unwrap_or(&FORMATS[0])
}

/// Writes what is ready, at once.
pub fn write_whole(target: &OutputTarget, bytes: &[u8]) -> Result<(), Error> {
    let mut sink = Sink::open(target)?;
    sink.write(bytes)?;
    sink.finish()
}

/// Writes one recording.
pub struct Writer {
    format: Box<dyn Format>,
    bytes: Vec<u8>,
    to: Sink,
    /// The format has a line or more for each sample.
    streams: bool,
    /// What is counted are objects, bytes and the like: no samples.
    has_measure: bool,
    has_begun: bool,
    flushed: Instant,
    /// Samples that were written.
    pub samples: u64,
    /// One of them has a stack: it is not only CPU time of which nothing is known.
    pub has_stacks: bool,
    /// The running time that they represent.
    pub running_ns: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({} samples)", self.samples)
    }
}

impl Writer {
    /// Opens the output: an error is reported before anything is recorded.
    pub fn open(selection: &Selection, target: &OutputTarget) -> Result<Writer, Error> {
        let to = Sink::open(target)?;
        let format = (selection.format.make)(&selection.options);
        Ok(Writer {
            format,
            bytes: Vec::new(),
            to,
            streams: selection.format.streams,
            has_measure: false,
            has_begun: false,
            flushed: Instant::now(),
            samples: 0,
            has_stacks: false,
            running_ns: 0,
        })
    }

    /// The file that was there before. It stays as it is unless the recording is finished.
    pub fn earlier_file(&self) -> Option<&Path> {
        self.to.earlier_file()
    }

    /// Whether nothing of it is seen before it is finished, as of a file.
    pub fn is_unseen(&self) -> bool {
        matches!(self.to, Sink::Beside { .. })
    }

    /// A recording begins. That of further ones, which are merged into the first, is left out.
    pub fn begin(&mut self, header: &Header) {
        if !self.has_begun {
            self.format.begin(header, &mut self.bytes);
            self.has_measure = header.measure.is_some();
            self.has_begun = true;
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, sample: &OwnedSample) -> Result<(), Error> {
        if self.streams && self.has_measure && sample.ticks > 1 {
            // Sums that cannot be shared out evenly have a part that weighs nothing.
            let weight_ns = sample.weight_ns.saturating_mul(sample.ticks.into());
            let whole = OwnedSample { ticks: 1, weight_ns, ..sample.clone() };
            return if weight_ns == 0 { Ok(()) } else { self.sample(&whole) };
        }
        self.samples += u64::from(sample.ticks);
        if sample.state == State::Running {
            self.running_ns += sample.weight_ns.saturating_mul(sample.ticks.into());
        }
        self.has_stacks |= sample.stack.frames.iter().any(|frame| frame.kind != FrameKind::Note);
        // One that represents millions of ticks has a line for each in some formats.
        let mut left = sample.ticks;
        loop {
            let ticks = left.min(TICKS);
            left -= ticks;
            let time_ns = sample.time_ns.saturating_sub(sample.weight_ns.saturating_mul(left.into()));
            self.format.sample(&Sample { time_ns, ticks, ..sample.as_sample() }, &mut self.bytes);
            if self.bytes.len() >= FLUSH_BYTES {
                self.flush()?;
            }
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Hands on what there is, from time to time: a pipe's reader waits for it, and a file has it
    /// though this command is killed. Fails where nobody reads a pipe any more.
    pub fn keep_up(&mut self) -> Result<(), Error> {
        let mut poll = libc::pollfd { fd: self.to.fd(), events: 0, revents: 0 };
        // SAFETY: one pollfd, which lives on this stack.
        match unsafe { libc::poll(&mut poll, 1, 0) } {
            1 if poll.revents & libc::POLLERR != 0 => {
                Err(self.to.cannot_write(&io::ErrorKind::BrokenPipe.into()))
            }
            _ if self.bytes.is_empty() || self.flushed.elapsed() < FLUSH_INTERVAL => Ok(()),
            _ => self.flush(),
        }
    }

    /// Writes what there is.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.flushed = Instant::now();
        let written = self.to.write(&self.bytes);
        self.bytes.clear();
        written
    }

    /// Ends the recording; the file is there from now on.
    pub fn finish(mut self, summary: &Summary) -> Result<(), Error> {
        self.format.finish(summary, &mut self.bytes);
        self.flush()?;
        self.to.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_suffix() {
        for format in FORMATS {
            let path = format!("/a/b.{}", format.suffix);
            assert_eq!(format_of(Path::new(&path)).map(|found| found.name), Some(format.name));
        }
        assert_eq!(format_of(Path::new("profile.json")).map(|format| format.name), Some("firefox"));
        assert_eq!(format_of(Path::new("x.pb.gz")).map(|format| format.name), Some("pprof"));
        assert_eq!(format_of(Path::new("xfolded")).map(|format| format.name), None);
        assert_eq!(format_of(Path::new("x.doc")).map(|format| format.name), None);
    }

    #[test]
    fn a_name_goes_before_the_suffix_and_a_wrong_one_is_told_with_those_that_are_right() {
        let chosen = |name, path: &str| choose(name, Some(Path::new(path))).map(|format| format.name);
        assert_eq!(chosen(Some("pprof"), "x.folded"), Ok("pprof"));
        assert_eq!(chosen(None, "x.folded"), Ok("folded"));
        let error = chosen(Some("gif"), "x").expect_err("no such format");
        assert!(error.exit == Exit::Usage && error.next.contains("folded"), "{error}");
        assert!(chosen(None, "x.gif").expect_err("no such format").next.contains(".folded"));
    }
}
