//! pprof-rs's own signal handler, driven by signals of this benchmark: no timer of its own runs.

use pprof::ProfilerGuardBuilder;

/// Installs pprof-rs's handler and returns its signal; `None` if it refuses. It stays until the
/// process ends.
pub fn hold_handler() -> Option<i32> {
    let guard = ProfilerGuardBuilder::default().frequency(1).build().ok()?;
    super::stop_timer(libc::ITIMER_PROF);
    std::mem::forget(guard);
    Some(libc::SIGPROF)
}
