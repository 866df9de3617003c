//! The output of a recording: a format's writer before a file, which is there whole or not at all.

use crate::error::{Error, Exit};
use crate::event::OwnedSample;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
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

/// The format that a file's name stands for.
pub fn format_of(path: &Path) -> Option<&'static FormatInfo> {
    swipr_formats::of_file(path.file_name()?.to_str()?)
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

/// Writes one recording.
pub struct Writer {
    format: Box<dyn Format>,
    bytes: Vec<u8>,
    to: Sink,
    has_begun: bool,
    flushed: Instant,
    /// Samples that were written.
    pub samples: u64,
    /// One of them has a stack: it is not only CPU time of which nothing is known.
    pub has_stacks: bool,
    /// The running time that they stand for.
    pub running_ns: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({} samples)", self.samples)
    }
}

enum Sink {
    Stdout,
    /// Written in place: a pipe, a device.
    Special(File, PathBuf),
    /// Written beside its place and renamed when it is whole.
    Beside {
        file: File,
        beside: PathBuf,
        place: PathBuf,
    },
}

impl Writer {
    /// Opens the output: an error is reported before anything is recorded.
    pub fn open(selection: &Selection, target: &OutputTarget) -> Result<Writer, Error> {
        let to = match target {
            OutputTarget::Stdout => Sink::Stdout,
            OutputTarget::File(place) => destination(place).map_err(|error| cannot_write(place, &error))?,
        };
        let format = (selection.format.make)(&selection.options);
        Ok(Writer {
            format,
            bytes: Vec::new(),
            to,
            has_begun: false,
            flushed: Instant::now(),
            samples: 0,
            has_stacks: false,
            running_ns: 0,
        })
    }

    /// The file that was there before. It stays as it is unless the recording is finished.
    pub fn earlier_file(&self) -> Option<&Path> {
        match &self.to {
            Sink::Beside { place, .. } => Some(place.as_path()).filter(|place| place.exists()),
            Sink::Stdout | Sink::Special(..) => None,
        }
    }

    /// A recording begins. That of further ones, which are merged into the first, is left out.
    pub fn begin(&mut self, header: &Header) {
        if !self.has_begun {
            self.format.begin(header, &mut self.bytes);
            self.has_begun = true;
        }
    }

    /// Takes a sample.
    pub fn sample(&mut self, sample: &OwnedSample) -> Result<(), Error> {
        self.samples += u64::from(sample.ticks);
        if sample.state == State::Running {
            self.running_ns += sample.weight_ns.saturating_mul(sample.ticks.into());
        }
        self.has_stacks |= sample.stack.frames.iter().any(|frame| frame.kind != FrameKind::Note);
        // One that stands for millions of ticks has a line for each in some formats.
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
        let fd = match &self.to {
            Sink::Stdout => libc::STDOUT_FILENO,
            Sink::Special(file, _) | Sink::Beside { file, .. } => file.as_raw_fd(),
        };
        let mut poll = libc::pollfd { fd, events: 0, revents: 0 };
        // SAFETY: one pollfd, which lives on this stack.
        match unsafe { libc::poll(&mut poll, 1, 0) } {
            1 if poll.revents & libc::POLLERR != 0 => {
                Err(cannot_write(self.to.place(), &io::ErrorKind::BrokenPipe.into()))
            }
            _ if self.bytes.is_empty() || self.flushed.elapsed() < FLUSH_INTERVAL => Ok(()),
            _ => self.flush(),
        }
    }

    /// Writes what there is.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.flushed = Instant::now();
        let written = match &mut self.to {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(&self.bytes).and_then(|()| out.flush())
            }
            Sink::Special(file, _) | Sink::Beside { file, .. } => file.write_all(&self.bytes),
        };
        self.bytes.clear();
        written.map_err(|error| cannot_write(self.to.place(), &error))
    }

    /// Ends the recording; the file is there from now on.
    pub fn finish(mut self, summary: &Summary) -> Result<(), Error> {
        self.format.finish(summary, &mut self.bytes);
        self.flush()?;
        if let Sink::Beside { beside, place, .. } = &self.to {
            fs::rename(beside, place).map_err(|error| cannot_write(place, &error))?;
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Sink::Beside { beside, .. } = &self.to {
            // Gone already where the recording is whole.
            let _ = fs::remove_file(beside);
        }
    }
}

impl Sink {
    fn place(&self) -> &Path {
        match self {
            Sink::Stdout => Path::new("standard output"),
            Sink::Special(_, place) | Sink::Beside { place, .. } => place,
        }
    }
}

fn destination(place: &Path) -> io::Result<Sink> {
    let is_special = fs::metadata(place).is_ok_and(|found| !found.is_file());
    if is_special {
        return Ok(Sink::Special(File::options().write(true).open(place)?, place.to_owned()));
    }
    // A link's target is what is written.
    let place = fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy().into_owned();
    let beside = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
    // Anybody may have put a link there, in a folder like /tmp.
    let _ = fs::remove_file(&beside);
    Ok(Sink::Beside { file: File::create_new(&beside)?, beside, place })
}

fn cannot_write(place: &Path, error: &io::Error) -> Error {
    let what = format!("cannot write {}: {error}", place.display());
    let has_no_reader = error.kind() == io::ErrorKind::BrokenPipe;
    let exit = if has_no_reader { Exit::NoReader } else { Exit::Failed };
    Error::new(what, "choose another place with -o FILE").exit(exit)
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
