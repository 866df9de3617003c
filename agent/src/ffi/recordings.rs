//! Recordings that C asks for.

use super::arguments::{Failure, invalid, optional, required, sized};
use super::{SWIPR_FAILED, SWIPR_MODE_CPU, SWIPR_MODE_WALL, SWIPR_RECORDING_FAILED, swipr_recording_options};
use crate::recording_handles::{self, RecordingHandle};
use profiler::for_library::lifecycle;
use profiler::for_library::output::{self, Completion, FileOutput};
use profiler::for_library::recording::{Filter, Length, Request, StopTime};
use profiler::for_library::server::{regex, title};
use profiler::for_library::signal_exclusion;
use regex_lite::Regex;
use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use swipr_formats::model::Mode;

/// A recording's options, checked.
pub(super) struct RecordingOptions {
    interval: Duration,
    mode: Mode,
    lines: bool,
    threads: Option<Regex>,
    title: Option<String>,
}

impl Default for RecordingOptions {
    fn default() -> RecordingOptions {
        let interval = Duration::from_millis(10);
        RecordingOptions { interval, mode: Mode::Wall, lines: false, threads: None, title: None }
    }
}

impl RecordingOptions {
    pub(super) fn every(interval_us: u64) -> Result<RecordingOptions, Failure> {
        if !(100..=3_600_000_000).contains(&interval_us) {
            return Err(invalid(format!("interval_us is {interval_us}, but must be from 100 to 3600000000")));
        }
        Ok(RecordingOptions { interval: Duration::from_micros(interval_us), ..RecordingOptions::default() })
    }

    /// # Safety
    /// `options` is NULL or points to a `swipr_recording_options` whose strings are NULL or C
    /// strings.
    pub(super) unsafe fn from_c(
        options: *const swipr_recording_options,
    ) -> Result<RecordingOptions, Failure> {
        let mut checked = RecordingOptions::default();
        // SAFETY: the caller's contract.
        let options = unsafe { sized(options, "swipr_recording_options") }?;
        let Some(options) = options else { return Ok(checked) };
        let wrong = |field: &str, why: String| invalid(format!("options->{field}: {why}"));
        checked.lines = options.lines != 0;
        checked.mode = match options.mode {
            SWIPR_MODE_WALL => Mode::Wall,
            SWIPR_MODE_CPU => Mode::Cpu,
            mode => {
                let why = format!("{mode} is neither SWIPR_MODE_WALL nor SWIPR_MODE_CPU");
                return Err(wrong("mode", why));
            }
        };
        if options.hz != 0.0 {
            if !(0.0003..=10_000.0).contains(&options.hz) {
                return Err(wrong("hz", "out of range, which is 0.0003 to 10000 a second".to_owned()));
            }
            checked.interval = Duration::from_secs_f64(options.hz.recip());
        }
        // SAFETY: NULL or a C string, as the caller says.
        let threads = unsafe { optional(options.threads, "options->threads") }?;
        checked.threads = threads.map(regex).transpose().map_err(|why| wrong("threads", why))?;
        // SAFETY: as above.
        let text = unsafe { optional(options.title, "options->title") }?;
        checked.title = text.map(title).transpose().map_err(|why| wrong("title", why))?;
        Ok(checked)
    }
}

/// # Safety
/// `path` and `format` are NULL or C strings.
unsafe fn submit(
    path: *const c_char,
    format: *const c_char,
    options: RecordingOptions,
    length: Length,
    stop: Arc<StopTime>,
) -> Result<Arc<Completion>, Failure> {
    // The agent's threads may open what the caller's filter forbids it to open, and the calls below
    // may be forbidden, too.
    if signal_exclusion::is_in_sandbox() {
        let why = "the calling thread may be in a sandbox (seccomp)".to_owned();
        return Err(Failure(SWIPR_RECORDING_FAILED, why));
    }
    // SAFETY: the caller's contract.
    let (path, format) = unsafe { (required(path, "path")?, required(format, "format")?) };
    let format = swipr_formats::find(format).ok_or_else(|| {
        let known: Vec<&str> = swipr_formats::FORMATS.iter().map(|format| format.name).collect();
        invalid(format!("there is no format {format:?}; there are {}", known.join(", ")))
    })?;
    let completion = Arc::<Completion>::default();
    let path = std::path::absolute(PathBuf::from(path)).map_err(|error| invalid(error.to_string()))?;
    output::check(&path).map_err(|error| Failure(SWIPR_RECORDING_FAILED, error))?;
    let output = FileOutput::new(path, completion.clone());
    let RecordingOptions { interval, mode, lines, threads, title } = options;
    let options = swipr_formats::Options { lines, title, ..Default::default() };
    let request = Request {
        interval,
        length,
        mode,
        source: Default::default(),
        format: swipr_formats::Selection { format, options },
        threads,
        filter: Filter { may_come: matches!(length, Length::Open), ..Filter::default() },
        purpose: Default::default(),
        symbolize: Default::default(),
        frames: Default::default(),
        id: None,
    };
    lifecycle::submit(request, Box::new(output), stop)?;
    Ok(completion)
}

/// # Safety
/// `path` and `format` are NULL or C strings.
pub(super) unsafe fn record(
    path: *const c_char,
    format: *const c_char,
    count: u64,
    options: RecordingOptions,
) -> Result<(), Failure> {
    if !(1..=10_000_000).contains(&count) {
        return Err(invalid(format!("count is {count}, but must be from 1 to 10000000")));
    }
    // Under a CPU quota ticks come late; names take time to be found.
    let planned = options.interval.as_secs_f64() * count as f64;
    let most = Duration::from_secs_f64(planned * 20.0 + 120.0);
    // SAFETY: the caller's contract.
    let completion = unsafe { submit(path, format, options, Length::Ticks(count), Arc::default()) }?;
    ended(&completion, most)
}

/// # Safety
/// `path` and `format` are NULL or C strings; `recording` is NULL or valid.
pub(super) unsafe fn begin(
    path: *const c_char,
    format: *const c_char,
    options: RecordingOptions,
    recording: *mut u64,
) -> Result<(), Failure> {
    if recording.is_null() {
        return Err(invalid("recording is NULL"));
    }
    let stop = Arc::<StopTime>::default();
    // SAFETY: the caller's contract.
    let completion = unsafe { submit(path, format, options, Length::Open, stop.clone()) }?;
    let id = recording_handles::insert(RecordingHandle { completion, stop });
    // SAFETY: checked above.
    unsafe { *recording = id };
    Ok(())
}

pub(super) fn ended(completion: &Completion, most: Duration) -> Result<(), Failure> {
    match completion.wait(most) {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(Failure(SWIPR_RECORDING_FAILED, error)),
        None => Err(Failure(SWIPR_FAILED, "the recording did not end in time".into())),
    }
}
