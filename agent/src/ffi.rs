//! The C interface: `include/swipr.h` is made from this file.
//!
//! What can fail checks its pointers, runs inside one panic boundary and returns a status.
//! Functions that only read return a value.

use crate::last_error::{self, LastError};
use crate::prepare;
use crate::recording_handles::{self, RecordingHandle};
use profiler::for_library::config::Config;
use profiler::for_library::lifecycle::{self, Wait};
use profiler::for_library::output::{self, Completion, FileOutput};
use profiler::for_library::recording::{Filter, Length, Request};
use profiler::for_library::server::{regex, title};
use regex_lite::Regex;
use std::ffi::{CStr, c_char};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use swipr_formats::model::Mode;
use swipr_os::disabled;
use swipr_os::errno;

/// What an entry point answers: `SWIPR_OK`, or what went wrong; `swipr_last_error` has the words.
#[allow(non_camel_case_types)]
pub type swipr_status = i32;

/// Done.
pub const SWIPR_OK: swipr_status = 0;
/// A pointer is NULL that must not be, a number is out of its range, a format does not exist.
pub const SWIPR_INVALID_ARGUMENT: swipr_status = 1;
/// The agent runs already, or is just being stopped by another thread.
pub const SWIPR_ALREADY_RUNNING: swipr_status = 2;
/// The agent does not run: call `swipr_start` first.
pub const SWIPR_NOT_RUNNING: swipr_status = 3;
/// The agent cannot listen where it should.
pub const SWIPR_CANNOT_LISTEN: swipr_status = 4;
/// The recording could not be made or written.
pub const SWIPR_RECORDING_FAILED: swipr_status = 5;
/// The operating system refused something, or did not answer in time.
pub const SWIPR_FAILED: swipr_status = 6;

/// Options of `swipr_start`: `swipr_options options = SWIPR_OPTIONS_INIT;`, then the fields that
/// matter. Later versions add fields at the end; a library that does not know them refuses them
/// unless they are 0.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct swipr_options {
    /// `sizeof(swipr_options)`.
    pub size: usize,
    /// Where to listen: a path, which may contain `{PID}`, `{UUID}`, `{HOSTNAME}` and `{COMM}`, or
    /// a URL (`unix:///path`, `http+unix://encoded-path`, `http://127.0.0.1:7377`). NULL or empty:
    /// as the environment says, else `/var/run/swipr-pid-<PID>.sock` or, where that cannot be
    /// written, `$XDG_RUNTIME_DIR`, `/tmp/swipr-<uid>/` or `/dev/shm/swipr-<uid>/`.
    pub socket: *const c_char,
}

/// Which threads a recording samples.
#[allow(non_camel_case_types)]
pub type swipr_mode = i32;

/// Every thread at every tick, running or waiting.
pub const SWIPR_MODE_WALL: swipr_mode = 0;
/// Only threads that use CPU time.
pub const SWIPR_MODE_CPU: swipr_mode = 1;

/// Options of a recording: `swipr_recording_options options = SWIPR_RECORDING_OPTIONS_INIT;`, then
/// the fields that matter. A field that is 0 or NULL has its default. Later versions add fields at
/// the end; a library that does not know them refuses them unless they are 0.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct swipr_recording_options {
    /// `sizeof(swipr_recording_options)`.
    pub size: usize,
    /// `SWIPR_MODE_WALL` (the default) or `SWIPR_MODE_CPU`.
    pub mode: swipr_mode,
    /// Not 0: perf script text has source files and lines where they are known. Other formats that
    /// have a place for lines always have them.
    pub lines: i32,
    /// Samples of each thread a second, from 0.0003 to 10,000. 0: 100.
    pub hz: f64,
    /// A regular expression of at most 1,000 bytes: only threads whose name matches are sampled.
    /// NULL: all.
    pub threads: *const c_char,
    /// A title of at most 1,000 bytes without control characters, where the format has a place for
    /// one. NULL: none.
    pub title: *const c_char,
}

/// The longest path (PATH_MAX), and longer than any other text.
const MAX_TEXT_BYTES: usize = 4096;

struct Failure(swipr_status, String);

impl From<lifecycle::LifeError> for Failure {
    fn from(error: lifecycle::LifeError) -> Failure {
        let status = match &error {
            lifecycle::LifeError::AlreadyRunning => SWIPR_ALREADY_RUNNING,
            lifecycle::LifeError::NotRunning => SWIPR_NOT_RUNNING,
            lifecycle::LifeError::Listen(_) => SWIPR_CANNOT_LISTEN,
            lifecycle::LifeError::Failed(_) => SWIPR_FAILED,
        };
        Failure(status, error.to_string())
    }
}

fn invalid(text: impl Into<String>) -> Failure {
    Failure(SWIPR_INVALID_ARGUMENT, text.into())
}

/// The one panic boundary, closed once the agent is off: there may be no memory for more. Keeps
/// errno.
fn boundary(body: impl FnOnce() -> Result<(), Failure>) -> swipr_status {
    match disabled::reason() {
        Some(reason) => {
            let mut text = LastError::empty();
            let _ = write!(text, "the agent has turned itself off: {reason}");
            errno::kept(|| last_error::set(text.as_str()));
            SWIPR_FAILED
        }
        None => panic_boundary(body),
    }
}

/// The same for what ends something: that goes also when the agent is off.
fn panic_boundary(body: impl FnOnce() -> Result<(), Failure>) -> swipr_status {
    errno::kept(|| {
        let failed = || Failure(SWIPR_FAILED, disabled::message().unwrap_or_default());
        match disabled::contained(body).unwrap_or_else(|| Err(failed())) {
            Ok(()) => SWIPR_OK,
            Err(Failure(status, text)) => {
                last_error::set(&text);
                status
            }
        }
    })
}

/// Copies `text` and a NUL, as much as fits; the length of the whole text.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` bytes.
unsafe fn copy_text(text: &str, buffer: *mut c_char, capacity: usize) -> usize {
    if !buffer.is_null() && capacity > 0 {
        let length = text.len().min(capacity - 1);
        // SAFETY: `length` + 1 bytes fit, as the caller says.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), length);
            *buffer.add(length) = 0;
        }
    }
    text.len()
}

/// # Safety
/// `text` is NULL or a C string.
unsafe fn required<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(invalid(format!("{name} is NULL")));
    }
    // SAFETY: not NULL, so a C string.
    let text = unsafe { CStr::from_ptr(text) };
    // What we copy on a thread of the host must fit into the last of the memory.
    if text.count_bytes() > MAX_TEXT_BYTES {
        return Err(invalid(format!("{name} has more than {MAX_TEXT_BYTES} bytes")));
    }
    text.to_str().map_err(|_| invalid(format!("{name} is not UTF-8")))
}

/// The same where NULL stands for the default.
///
/// # Safety
/// `text` is NULL or a C string.
unsafe fn optional<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    // SAFETY: the caller's contract.
    (!text.is_null()).then(|| unsafe { required(text, name) }).transpose()
}

/// No version has options as large as this.
const MAX_OPTIONS_BYTES: usize = 256;

/// The options at that address, unless it is NULL. `T` is a C struct whose first field is its size.
///
/// Fields of a later version are refused unless they are 0, which stands for the default.
///
/// # Safety
/// `options` is NULL or points to a `size_t`, and to as many bytes as that says if there may be so
/// many.
unsafe fn sized<'a, T>(options: *const T, name: &str) -> Result<Option<&'a T>, Failure> {
    if options.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, so there is a size.
    let size = unsafe { *options.cast::<usize>() };
    let least = size_of::<T>();
    if size < least {
        return Err(invalid(format!("options->size is {size}, but must be sizeof({name}) = {least}")));
    }
    if size > MAX_OPTIONS_BYTES {
        return Err(invalid(format!("options->size is {size}: {name} was not initialized")));
    }
    // SAFETY: the caller's contract.
    let later = unsafe { std::slice::from_raw_parts(options.cast::<u8>().add(least), size - least) };
    if later.iter().any(|&byte| byte != 0) {
        return Err(invalid(format!("{name} has fields that this version of the library does not know")));
    }
    // SAFETY: at least of this size, so a `T`.
    Ok(Some(unsafe { &*options }))
}

/// Starts the agent in this process and waits until it listens.
///
/// `options` may be NULL for the defaults. The environment variables of `docs/configuration.md`
/// hold as well; `options->socket` goes before those that say where to listen, but for
/// `SWIPR_LISTEN`, which opens a second place in any case. After fork the child has an agent of its
/// own. An agent that is just being started, because it was preloaded or because of a fork, is
/// waited for: where this answers `SWIPR_ALREADY_RUNNING`, recordings can be made. Any thread may
/// call it. Waits at most 5 seconds.
///
/// # Safety
/// `options` is NULL or points to a `swipr_options` whose strings are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_start(options: *const swipr_options) -> swipr_status {
    boundary(|| {
        // SAFETY: the caller's contract.
        let options = unsafe { sized(options, "swipr_options") }?;
        let socket = options.map_or(std::ptr::null(), |options| options.socket);
        // SAFETY: NULL or a C string, as the caller says.
        let socket = unsafe { optional(socket, "options->socket") }?;
        let config = Config::with_socket(socket).map_err(|error| invalid(error.to_string()))?;
        prepare::prepare();
        Ok(lifecycle::start(config, Wait::Yes)?)
    })
}

/// Ends all recordings, removes the socket and ends the agent's threads. Waits at most 5 seconds.
/// `swipr_start` may be called again afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn swipr_stop() -> swipr_status {
    panic_boundary(|| Ok(lifecycle::stop()?))
}

/// Copies the path (or address) on which the agent listens, with a final NUL, into `buffer` as far
/// as `capacity` bytes hold it. Returns the length without the NUL; 0: the agent does not run. An
/// agent that is just being started is waited for, as in `swipr_start`.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_socket_path(buffer: *mut c_char, capacity: usize) -> usize {
    let mut length = 0;
    boundary(|| {
        let address = lifecycle::address().map_or(String::new(), ToString::to_string);
        // SAFETY: the caller's contract.
        length = unsafe { copy_text(&address, buffer, capacity) };
        Ok(())
    });
    length
}

/// A recording's options, checked.
struct RecordingOptions {
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
    fn every(interval_us: u64) -> Result<RecordingOptions, Failure> {
        if !(100..=3_600_000_000).contains(&interval_us) {
            return Err(invalid(format!("interval_us is {interval_us}, but must be from 100 to 3600000000")));
        }
        Ok(RecordingOptions { interval: Duration::from_micros(interval_us), ..RecordingOptions::default() })
    }

    /// # Safety
    /// `options` is NULL or points to a `swipr_recording_options` whose strings are NULL or C
    /// strings.
    unsafe fn from_c(options: *const swipr_recording_options) -> Result<RecordingOptions, Failure> {
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
                let why = format!("{} is out of range, which is 0.0003 to 10000 a second", options.hz);
                return Err(wrong("hz", why));
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
    stop: Arc<AtomicBool>,
) -> Result<Arc<Completion>, Failure> {
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
unsafe fn record(
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
unsafe fn begin(
    path: *const c_char,
    format: *const c_char,
    options: RecordingOptions,
    recording: *mut u64,
) -> Result<(), Failure> {
    if recording.is_null() {
        return Err(invalid("recording is NULL"));
    }
    let stop = Arc::<AtomicBool>::default();
    // SAFETY: the caller's contract.
    let completion = unsafe { submit(path, format, options, Length::Open, stop.clone()) }?;
    let id = recording_handles::insert(RecordingHandle { completion, stop });
    // SAFETY: checked above.
    unsafe { *recording = id };
    Ok(())
}

fn ended(completion: &Completion, most: Duration) -> Result<(), Failure> {
    match completion.wait(most) {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(Failure(SWIPR_RECORDING_FAILED, error)),
        None => Err(Failure(SWIPR_FAILED, "the recording did not end in time".into())),
    }
}

/// Takes `count` samples of every thread, `interval_us` microseconds apart, and writes them to the
/// file `path` in the given format ("perf", "folded", "pprof", ...). Waits until the file is
/// complete. The calling thread is sampled as well: it is waiting in this function.
///
/// `count` is from 1 to 10 million, `interval_us` from 100 to 3,600,000,000.
///
/// # Safety
/// `path` and `format` are NULL (an error) or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_record_to_file(
    path: *const c_char,
    format: *const c_char,
    count: u64,
    interval_us: u64,
) -> swipr_status {
    // SAFETY: the caller's contract.
    boundary(|| unsafe { record(path, format, count, RecordingOptions::every(interval_us)?) })
}

/// As `swipr_record_to_file`, with options: which threads, how often, with which title.
///
/// `options` may be NULL for the defaults. `count` is from 1 to 10 million.
///
/// # Safety
/// `path` and `format` are NULL (an error) or C strings; `options` is NULL or points to a
/// `swipr_recording_options` whose strings are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_record_to_file_with(
    path: *const c_char,
    format: *const c_char,
    count: u64,
    options: *const swipr_recording_options,
) -> swipr_status {
    // SAFETY: the caller's contract.
    boundary(|| unsafe { record(path, format, count, RecordingOptions::from_c(options)?) })
}

/// Begins to record every thread, each `interval_us` microseconds, into the file `path`, until
/// `swipr_recording_end` is called with what is stored in `*recording`. Does not wait for samples;
/// an agent that is just being started is waited for, as in `swipr_start`.
///
/// # Safety
/// `path` and `format` are NULL (an error) or C strings; `recording` is NULL (an error) or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_recording_begin(
    path: *const c_char,
    format: *const c_char,
    interval_us: u64,
    recording: *mut u64,
) -> swipr_status {
    // SAFETY: the caller's contract.
    boundary(|| unsafe { begin(path, format, RecordingOptions::every(interval_us)?, recording) })
}

/// As `swipr_recording_begin`, with options: which threads, how often, with which title. `options`
/// may be NULL for the defaults. Threads that `options->threads` matches may begin later.
///
/// # Safety
/// `path` and `format` are NULL (an error) or C strings; `options` is NULL or points to a
/// `swipr_recording_options` whose strings are NULL or C strings; `recording` is NULL (an error) or
/// valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_recording_begin_with(
    path: *const c_char,
    format: *const c_char,
    options: *const swipr_recording_options,
    recording: *mut u64,
) -> swipr_status {
    // SAFETY: the caller's contract.
    boundary(|| unsafe { begin(path, format, RecordingOptions::from_c(options)?, recording) })
}

/// Ends a recording and waits until its file is complete. Recordings that were begun before a fork
/// are the parent's: in the child there is no recording of that number.
#[unsafe(no_mangle)]
pub extern "C" fn swipr_recording_end(recording: u64) -> swipr_status {
    panic_boundary(|| {
        let RecordingHandle { completion, stop } = recording_handles::take(recording)
            .ok_or_else(|| invalid(format!("there is no recording {recording}")))?;
        stop.store(true, Relaxed);
        lifecycle::wake_sampler();
        ended(&completion, Duration::from_secs(120))
    })
}

/// What a status means, in a few words that stay where they are: never NULL, not to be freed. For
/// what went wrong in a call, `swipr_last_error` says more. Any thread may call it at any time,
/// also in a signal handler.
#[unsafe(no_mangle)]
pub extern "C" fn swipr_strerror(status: swipr_status) -> *const c_char {
    let text = match status {
        SWIPR_OK => c"done",
        SWIPR_INVALID_ARGUMENT => c"invalid argument",
        SWIPR_ALREADY_RUNNING => c"the agent runs already",
        SWIPR_NOT_RUNNING => c"the agent does not run",
        SWIPR_CANNOT_LISTEN => c"the agent cannot listen where it should",
        SWIPR_RECORDING_FAILED => c"the recording could not be made or written",
        SWIPR_FAILED => c"the operating system refused something or did not answer in time",
        _ => c"unknown status",
    };
    text.as_ptr()
}

/// The version of the agent, "MAJOR.MINOR.PATCH". `SWIPR_VERSION` is that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn swipr_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Copies what went wrong in this thread's last failing call, with a final NUL, into `buffer` as
/// far as `capacity` bytes hold it. Returns the length without the NUL; 0: nothing went wrong yet.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_last_error(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's contract.
    last_error::with(|text| unsafe { copy_text(text, buffer, capacity) })
}
