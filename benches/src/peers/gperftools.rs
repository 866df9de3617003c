//! gperftools' own signal handler (`ProfileHandler` with the CPU profiler behind it), driven by
//! signals of this benchmark: no timer of its own runs.

use super::library::Library;
use std::ffi::{CStr, c_char, c_void};

type Start = unsafe extern "C" fn(*const c_char) -> i32;

/// Where its profile goes.
const NOWHERE: &CStr = c"/dev/null";

/// Installs gperftools' handler and returns its signal; `None` where it is not installed. It stays
/// until the process ends. Call it while there is one thread: it changes the environment.
pub fn hold_handler() -> Option<i32> {
    // With its wall-clock timer it takes SIGALRM, and leaves SIGPROF to pprof-rs; the handler is
    // the same.
    // SAFETY: the caller is the only thread.
    unsafe { std::env::set_var("CPUPROFILE_REALTIME", "1") };
    let start = Library::open(c"libprofiler.so.0")?.symbol(c"ProfilerStart")?;
    // SAFETY: profiler.h declares `int ProfilerStart(const char *)`.
    let started = unsafe { std::mem::transmute::<*mut c_void, Start>(start)(NOWHERE.as_ptr()) };
    super::stop_timer(libc::ITIMER_REAL);
    (started != 0).then_some(libc::SIGALRM)
}
