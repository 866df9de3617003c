//! The C interface: `include/swipr.h` is made from this file.
//!
//! Every entry point checks its pointers, runs inside one panic boundary and returns a status.

use crate::begun::{self, Begun};
use crate::config::Config;
use crate::last_error::{self, LastError};
use crate::life::{self, Wait};
use crate::off;
use crate::output::{Completion, FileOutput};
use crate::platform::errno;
use crate::recording::{Length, Request};
use std::ffi::{CStr, c_char};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use swipr_formats::model::Mode;

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

/// Options of `swipr_start`. Set `size` to `sizeof(swipr_options)` and all that you do not need to zero:
/// later versions add fields at the end.
#[repr(C)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct swipr_options {
    /// `sizeof(swipr_options)`.
    pub size: usize,
    /// Where to listen: a path, which may contain `{PID}`, `{UUID}`, `{HOSTNAME}` and `{COMM}`, or a URL
    /// (`unix:///path`, `http+unix://encoded-path`, `http://127.0.0.1:7377`).
    /// NULL or empty: as the environment says, else `/var/run/swipr-pid-<PID>.sock` or, where that cannot be
    /// written, `$XDG_RUNTIME_DIR` or `/tmp/swipr-<uid>/`.
    pub socket: *const c_char,
}

/// The longest path (PATH_MAX), and longer than any other text.
const MOST_TEXT_BYTES: usize = 4096;

struct Failure(swipr_status, String);

impl From<life::Error> for Failure {
    fn from(error: life::Error) -> Failure {
        let status = match &error {
            life::Error::AlreadyRunning => SWIPR_ALREADY_RUNNING,
            life::Error::NotRunning => SWIPR_NOT_RUNNING,
            life::Error::Listen(_) => SWIPR_CANNOT_LISTEN,
            life::Error::Failed(_) => SWIPR_FAILED,
        };
        Failure(status, error.to_string())
    }
}

fn invalid(text: impl Into<String>) -> Failure {
    Failure(SWIPR_INVALID_ARGUMENT, text.into())
}

/// The one panic boundary, closed once the agent is off: there may be no memory for more. Keeps errno.
fn boundary(body: impl FnOnce() -> Result<(), Failure>) -> swipr_status {
    match off::reason() {
        Some(reason) => {
            let mut text = LastError::new();
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
        let failed = || Failure(SWIPR_FAILED, off::sentence().unwrap_or_default());
        match off::contained(body).unwrap_or_else(|| Err(failed())) {
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
    if text.count_bytes() > MOST_TEXT_BYTES {
        return Err(invalid(format!("{name} has more than {MOST_TEXT_BYTES} bytes")));
    }
    text.to_str().map_err(|_| invalid(format!("{name} is not UTF-8")))
}

/// Starts the agent in this process and waits until it listens.
///
/// `options` may be NULL for the defaults. The environment variables of `docs/configuration.md` hold as
/// well; `options->socket` goes before those that say where to listen, but for `SWIPR_LISTEN`, which opens
/// a second place in any case. After fork the child has an agent of its own.
/// An agent that is just being started, because it was preloaded or because of a fork, is waited for: where
/// this answers `SWIPR_ALREADY_RUNNING`, recordings can be made. Any thread may call it. Waits at most 5 seconds.
///
/// # Safety
/// `options` is NULL or points to a `swipr_options` whose strings are C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_start(options: *const swipr_options) -> swipr_status {
    boundary(|| {
        let mut socket = None;
        if !options.is_null() {
            // SAFETY: not NULL, so valid; a smaller size is refused before another field is read.
            let size = unsafe { (*options).size };
            if size < size_of::<swipr_options>() {
                return Err(invalid(format!(
                    "options->size is {size}, but must be sizeof(swipr_options) = {}",
                    size_of::<swipr_options>()
                )));
            }
            // SAFETY: as above.
            let pattern = unsafe { (*options).socket };
            if !pattern.is_null() {
                // SAFETY: a C string, as the caller says.
                socket = Some(unsafe { required(pattern, "options->socket") }?);
            }
        }
        let config = Config::with_socket(socket).map_err(|error| invalid(error.to_string()))?;
        Ok(life::start(config, Wait::Yes)?)
    })
}

/// Ends all recordings, removes the socket and ends the agent's threads. Waits at most 5 seconds.
/// `swipr_start` may be called again afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn swipr_stop() -> swipr_status {
    panic_boundary(|| Ok(life::stop()?))
}

/// Copies the path (or address) on which the agent listens, with a final NUL, into `buffer` as far as `capacity`
/// bytes hold it. Returns the length without the NUL; 0: the agent does not run. An agent that is just being
/// started is waited for, as in `swipr_start`.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_socket_path(buffer: *mut c_char, capacity: usize) -> usize {
    let mut length = 0;
    boundary(|| {
        let address = life::settled().map_or(String::new(), |(_, address)| address.to_string());
        // SAFETY: the caller's contract.
        length = unsafe { copy_text(&address, buffer, capacity) };
        Ok(())
    });
    length
}

/// # Safety
/// `path` and `format` are NULL or C strings.
unsafe fn submit(
    path: *const c_char,
    format: *const c_char,
    interval_us: u64,
    length: Length,
    stop: Arc<AtomicBool>,
) -> Result<Arc<Completion>, Failure> {
    // SAFETY: the caller's contract.
    let (path, format) = unsafe { (required(path, "path")?, required(format, "format")?) };
    let info = swipr_formats::find(format).ok_or_else(|| {
        let known: Vec<&str> = swipr_formats::FORMATS.iter().map(|format| format.name).collect();
        invalid(format!("there is no format {format:?}; there are {}", known.join(", ")))
    })?;
    if !(100..=3_600_000_000).contains(&interval_us) {
        return Err(invalid(format!("interval_us is {interval_us}, but must be from 100 to 3600000000")));
    }
    let completion = Arc::<Completion>::default();
    let path = std::path::absolute(PathBuf::from(path)).map_err(|error| invalid(error.to_string()))?;
    let output = FileOutput::new(path, completion.clone());
    let request = Request {
        interval: Duration::from_micros(interval_us),
        length,
        mode: Mode::Wall,
        format: swipr_formats::Selection { format: info, options: Default::default() },
        threads: None,
        filter: Default::default(),
        purpose: Default::default(),
        symbolize: Default::default(),
    };
    life::submit(request, Box::new(output), stop)?;
    Ok(completion)
}

fn ended(completion: &Completion, most: Duration) -> Result<(), Failure> {
    match completion.wait(most) {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(Failure(SWIPR_RECORDING_FAILED, error)),
        None => Err(Failure(SWIPR_FAILED, "the recording did not end in time".into())),
    }
}

/// Takes `count` samples of every thread, `interval_us` microseconds apart, and writes them to the file `path`
/// in the given format ("perf", "folded", "pprof", ...). Waits until the file is complete. The calling thread is
/// sampled as well: it is waiting in this function.
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
    boundary(|| {
        if !(1..=10_000_000).contains(&count) {
            return Err(invalid(format!("count is {count}, but must be from 1 to 10000000")));
        }
        // SAFETY: the caller's contract.
        let completion = unsafe { submit(path, format, interval_us, Length::Ticks(count), Arc::default()) }?;
        // Under a CPU quota ticks come late; names take time to be found.
        let planned = Duration::from_micros(interval_us.saturating_mul(count));
        ended(&completion, planned * 20 + Duration::from_secs(120))
    })
}

/// Begins to record every thread, each `interval_us` microseconds, into the file `path`, until
/// `swipr_recording_end` is called with what is stored in `*recording`. Does not wait for samples; an agent
/// that is just being started is waited for, as in `swipr_start`.
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
    boundary(|| {
        if recording.is_null() {
            return Err(invalid("recording is NULL"));
        }
        let stop = Arc::<AtomicBool>::default();
        // SAFETY: the caller's contract.
        let completion = unsafe { submit(path, format, interval_us, Length::Open, stop.clone()) }?;
        let id = begun::insert(Begun { completion, stop });
        // SAFETY: checked above.
        unsafe { *recording = id };
        Ok(())
    })
}

/// Ends a recording and waits until its file is complete. Recordings that were begun before a fork are the
/// parent's: in the child there is no recording of that number.
#[unsafe(no_mangle)]
pub extern "C" fn swipr_recording_end(recording: u64) -> swipr_status {
    panic_boundary(|| {
        let Begun { completion, stop } =
            begun::take(recording).ok_or_else(|| invalid(format!("there is no recording {recording}")))?;
        stop.store(true, Relaxed);
        if let Some((agent, _)) = life::running() {
            agent.nudge();
        }
        ended(&completion, Duration::from_secs(120))
    })
}

/// The version of the agent, "MAJOR.MINOR.PATCH".
#[unsafe(no_mangle)]
pub extern "C" fn swipr_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Copies what went wrong in this thread's last failing call, with a final NUL, into `buffer` as far as
/// `capacity` bytes hold it. Returns the length without the NUL; 0: nothing went wrong yet.
///
/// # Safety
/// `buffer` is NULL or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn swipr_last_error(buffer: *mut c_char, capacity: usize) -> usize {
    // SAFETY: the caller's contract.
    last_error::with(|text| unsafe { copy_text(text, buffer, capacity) })
}
