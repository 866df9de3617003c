//! pprof-rs in any program: SIGUSR2 switches it on and off, as it does with gperftools'
//! `CPUPROFILESIGNAL`. Its report is written when it is switched off, a line for each stack:
//! `thread;inner;…;outer count`.

use pprof::{ProfilerGuard, ProfilerGuardBuilder, Report};
use std::ffi::OsStr;
use std::fmt::Write;

/// Environment variable: the file to write; `-`: none.
pub const PPROF: &str = "SWIPR_BENCH_PPROF";
/// Environment variable: samples a second of CPU time.
pub const PPROF_HZ: &str = "SWIPR_BENCH_PPROF_HZ";
const SWITCH: i32 = libc::SIGUSR2;

pub(super) fn start_if_asked() {
    let Some(output) = std::env::var_os(PPROF) else { return };
    let hz = std::env::var(PPROF_HZ).ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    // SAFETY: plain data; the signal stays blocked in all threads, this one is the first, and one
    // waits for it.
    let switch = unsafe {
        let mut switch: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut switch);
        libc::sigaddset(&mut switch, SWITCH);
        libc::pthread_sigmask(libc::SIG_BLOCK, &switch, std::ptr::null_mut());
        switch
    };
    let serve = move || {
        let mut guard: Option<ProfilerGuard<'static>> = None;
        loop {
            let mut signal = 0;
            // SAFETY: both places are ours.
            unsafe { libc::sigwait(&switch, &mut signal) };
            guard = match guard.take() {
                None => ProfilerGuardBuilder::default().frequency(hz).build().ok(),
                Some(guard) => {
                    end(guard, &output);
                    None
                }
            };
        }
    };
    let _ = swipr_os::signals::with_signals_blocked(|| std::thread::Builder::new().spawn(serve));
}

fn end(guard: ProfilerGuard<'static>, output: &OsStr) {
    let report = if output == "-" { None } else { guard.report().build().ok() };
    drop(guard);
    if let Some(report) = report {
        let _ = std::fs::write(output, text(&report));
    }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for (stack, count) in &report.data {
        text.push_str(&stack.thread_name);
        for function in stack.frames.iter().flatten() {
            let _ = write!(text, ";{}", function.name());
        }
        let _ = writeln!(text, " {count}");
    }
    text
}
