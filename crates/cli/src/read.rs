//! Readers: bytes of some format become the pieces of a recording.

mod folded;
mod input;
mod lines;
mod offline;
mod perf;
mod pprof;
mod protobuf;
pub mod raw;
mod system_calls;

pub use folded::is_waiting;
pub use lines::Lines;
pub use offline::{By, Symbols};

use crate::error::Error;
use crate::event::{Event, OwnedSample};
use crate::shape::Shape;
use input::Input;
use std::io::Read;
use std::sync::Arc;
use swipr_formats::model::{Frame, FrameKind, Function, Header, Language, Measure, Mode, Summary, Thread};
use swipr_formats::names::measure;
use swipr_symbols::demangle::demangle;

/// Largest file that is read, unpacked.
const LARGEST: u64 = 4 << 30;

/// What a file is shows in so many bytes.
const START: u64 = 16 << 20;

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readable {
    /// JSON lines, of an agent or another recording; or the lines of swift-profile-recorder's own
    /// files.
    Raw,
    /// perf script's text.
    Perf,
    /// A line for each stack.
    Folded,
    /// A pprof profile, packed or not.
    Pprof,
}

impl Readable {
    /// All of them, by the names of the formats that are written.
    pub const ALL: [(&'static str, Readable); 4] = [
        ("raw", Readable::Raw),
        ("perf", Readable::Perf),
        ("folded", Readable::Folded),
        ("pprof", Readable::Pprof),
    ];

    /// What these bytes are.
    fn of(bytes: &[u8]) -> Option<Readable> {
        let whole = bytes.trim_ascii_start();
        let text = whole.get(..4096).unwrap_or(whole);
        if text.starts_with(b"{\"type\"") || text.windows(8).any(|word| word == b"[SWIPR] ") {
            return Some(Readable::Raw);
        }
        // A profile's first field is a message (wire type 2), or one that is written first by some:
        // never a letter.
        if bytes.first().is_some_and(|&byte| byte == 0x0a) && bytes.get(2) == Some(&0x08) {
            return Some(Readable::Pprof);
        }
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if text.starts_with(b"# ") || text.windows(2).any(|pair| pair == b"\n\t") || perf::is_sample(line) {
            return Some(Readable::Perf);
        }
        // A stack of many long names has a line of any length.
        let first = whole.split(|&byte| byte == b'\n').next()?.trim_ascii_end();
        let count = first.rsplit(|&byte| byte == b' ').next()?;
        let is_folded = first.contains(&b' ') && count.iter().all(u8::is_ascii_digit);
        if is_folded {
            return Some(Readable::Folded);
        }
        // Lengths and tags of a profile are control characters.
        let is_text = text.iter().all(|byte| !byte.is_ascii_control() || byte.is_ascii_whitespace());
        (!is_text).then_some(Readable::Pprof)
    }
}

/// What a recording was.
#[derive(Debug)]
pub struct Contents {
    /// The format.
    pub format: Readable,
    /// It says how many samples there were.
    pub has_counts: bool,
    /// The events that were counted, where they are no clock's.
    counted: Vec<String>,
    /// What weights are, where they are no clock's.
    measure: Option<Measure>,
}

impl Contents {
    /// Says so, if what was counted is not time.
    pub fn hint(&self) {
        if let Some(counted) = self.measure.as_ref().filter(|measure| measure.unit != "nanoseconds") {
            crate::say(format_args!(
                "swipr: what is counted is {}, no time: where times are shown, 1 ns represents 1",
                measure(counted)
            ));
        }
        if !self.counted.is_empty() {
            crate::say(format_args!(
                "swipr: what is counted is {}, not nanoseconds: read the shares, not the times\n\
                 next: perf record -e cpu-clock records CPU time",
                self.counted.join(", ")
            ));
        }
    }
}

/// Reads a whole recording, hands on its pieces, and says what it was. `name` is what a recording
/// is called that does not say it.
pub fn recording(
    mut from: impl Read,
    format: Option<Readable>,
    name: &str,
    shape: &Arc<Shape>,
    symbols: &mut Symbols,
    to: &mut dyn FnMut(Event) -> Result<(), String>,
) -> Result<Contents, Error> {
    let mut bytes = Vec::new();
    let got = from.by_ref().take(LARGEST).read_to_end(&mut bytes);
    if got.map_err(|error| not_whole(error.to_string()))? as u64 == LARGEST {
        return Err(unreadable(format!("it is larger than {} GiB", LARGEST >> 30)));
    }
    let input = Input(bytes);
    let start = input.start(START)?;
    if start.is_empty() {
        return Err(not_whole("it is empty"));
    }
    let format = format.or_else(|| Readable::of(&start));
    let format = format.ok_or_else(|| {
        let known: Vec<&str> = Readable::ALL.iter().map(|(name, _)| *name).collect();
        unreadable(format!("it is in no format that can be read ({})", known.join(", ")))
    })?;
    drop(start);
    let mut counted = Vec::new();
    match format {
        Readable::Raw => offline::read(&String::from_utf8_lossy(&input.whole()?), symbols, shape, to),
        Readable::Perf => perf::read(&input, name, shape, to).map(|events| counted = events),
        Readable::Folded => folded::read(&input, name, shape, to),
        Readable::Pprof => {
            let (measure, has_counts) = pprof::read(&input.whole()?, name, shape, to)?;
            return Ok(Contents { format, has_counts, counted, measure });
        }
    }
    .map_err(unreadable)?;
    Ok(Contents { format, has_counts: format != Readable::Folded, counted, measure: None })
}

/// Why a file is not read, and which are.
pub fn unreadable(why: impl Into<String>) -> Error {
    let names: Vec<&str> = Readable::ALL.iter().map(|(name, _)| *name).collect();
    Error::new(why, format!("recordings can be read in {}; --from says which it is", names.join(", ")))
}

/// Why a file is not read, whatever its format is.
pub fn not_whole(why: impl Into<String>) -> Error {
    Error::new(why, "check that it is the right file, and whole")
}

/// A header for formats that have none. `pid` is 0 where it is not known.
fn header(name: &str, pid: u32, mode: Mode, start_ns: u64) -> Header {
    Header {
        pid,
        process_name: name.to_owned(),
        executable: name.to_owned(),
        start_ns,
        interval_ns: 10_000_000,
        mode,
        measure: None,
    }
}

/// What one sample represents in sums of wall-clock time without a count: what divides all of them,
/// or is small enough.
fn of_one_sample(sums: impl Iterator<Item = u64>) -> u64 {
    const MOST: u64 = 1_000_000;
    let divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let both = |(common, total): (u64, u64), sum| (divisor(common, sum), total.saturating_add(sum));
    let (common, total) = sums.fold((0, 0), both);
    common.max(total / MOST).max(1)
}

/// Samples of one weight that sum to `total`: what does not divide is one sample's.
fn parts(samples: u64, total: u64) -> impl Iterator<Item = (u32, u64)> {
    let samples = u32::try_from(samples).unwrap_or(u32::MAX).max(1);
    let each = total / u64::from(samples);
    let rest = total - each * u64::from(samples);
    let uneven = u32::from(rest > 0);
    let parts = [(samples - uneven, each), (uneven, each.saturating_add(rest))];
    parts.into_iter().filter(|(samples, _)| *samples > 0)
}

/// A function of which a name is known, the readable or the linker's, and perhaps both.
fn function(name: &str, linkers: Option<&str>) -> Function {
    let linkers = linkers.unwrap_or(name);
    let readable = demangle(linkers);
    let mangled = (readable.is_some() || linkers != name).then(|| linkers.into());
    Function { name: readable.as_deref().unwrap_or(name).into(), mangled, offset: 0, file: None, line: None }
}

/// A frame of which the name is known: a remark where it is in brackets.
fn named_frame(name: &str) -> Frame {
    let is_note = name.starts_with('[') && name.ends_with(']') && name != "[unknown]";
    let kind = if is_note { FrameKind::Note } else { FrameKind::Native };
    let functions: Vec<Function> = if name == "[unknown]" { Vec::new() } else { vec![function(name, None)] };
    Frame { address: 0, kind, module: None, functions: functions.into() }
}

/// A function of that language. Its name is no linker's, whatever it looks like.
fn interpreted_frame(language: Language, address: u64, mut functions: Vec<Function>) -> Frame {
    for function in &mut functions {
        function.name = function.mangled.take().unwrap_or_else(|| function.name.clone());
    }
    Frame { address, kind: FrameKind::Interpreted(language), module: None, functions: functions.into() }
}

/// Counts what is read, for the recording's figures.
#[derive(Debug, Default)]
struct Figures {
    samples: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    threads: rustc_hash::FxHashSet<Arc<Thread>>,
    /// The losses that the file itself reports.
    losses: Option<Summary>,
}

impl Figures {
    fn count(&mut self, sample: &OwnedSample) {
        self.samples += u64::from(sample.ticks);
        self.first_ns = Some(self.first_ns.map_or(sample.time_ns, |first| first.min(sample.time_ns)));
        self.last_ns = self.last_ns.max(sample.time_ns);
        self.threads.insert(Arc::clone(&sample.thread));
    }

    fn end(&self) -> Event {
        Event::End(Summary {
            samples: self.samples,
            threads: self.threads.len() as u64,
            duration_ns: self.last_ns.saturating_sub(self.first_ns.unwrap_or(0)),
            ..self.losses.clone().unwrap_or_else(|| Summary { uncounted: 1, ..Summary::default() })
        })
    }
}

#[cfg(test)]
mod tests;
