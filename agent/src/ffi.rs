//! The C interface: `include/swipr.h` is made from this file.
//!
//! What can fail checks its pointers, runs inside one panic boundary (`ffi/arguments.rs`) and
//! returns a status. Functions that only read return a value.

mod arguments;
mod recordings;

use crate::last_error;
use crate::prepare;
use crate::recording_handles::{self, RecordingHandle};
use arguments::{boundary, copy_text, invalid, optional, panic_boundary, sized};
use profiler::for_library::config::Config;
use profiler::for_library::lifecycle::{self, Wait};
use recordings::{RecordingOptions, begin, ended, record};
use std::ffi::c_char;
use std::time::Duration;

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

/// Starts the agent in this process and waits until it listens.
///
/// `options` may be NULL for the defaults. The environment variables of `docs/configuration.md`
/// hold as well; `options->socket` goes before those that say where to listen, but for
/// `SWIPR_LISTEN`, which opens a second place in any case. After fork the child has an agent of its
/// own: where its parent has the place of `options->socket`, at a default place. An agent that is
/// just being started, because it was preloaded or because of a fork, is waited for: where this
/// answers `SWIPR_ALREADY_RUNNING`, recordings can be made. Any thread may call it. Waits at most 5
/// seconds.
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
/// `swipr_recording_end` is called with what is stored in `*recording`, or the program ends by
/// `exit`, which waits up to a second for the file, or `swipr_stop` is called; if that is at once,
/// there may be no file. Does not wait for samples; an agent that is just being started is waited
/// for, as in `swipr_start`. At most 8 recordings run at the same time, those of clients included:
/// one more is `SWIPR_RECORDING_FAILED`.
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

/// Ends a recording and waits until its file is complete. Recordings that started before a fork
/// are the parent's: in the child there is no recording of that number.
#[unsafe(no_mangle)]
pub extern "C" fn swipr_recording_end(recording: u64) -> swipr_status {
    panic_boundary(|| {
        let RecordingHandle { completion, stop } = recording_handles::take(recording)
            .ok_or_else(|| invalid(format!("there is no recording {recording}")))?;
        stop.set();
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
