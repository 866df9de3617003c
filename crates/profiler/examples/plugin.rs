//! A plugin that profiles itself, for `tests/plugin.rs`. It is unloaded when its recording has
//! ended.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many samples a recording of 100 ms has; less than 0: none was possible.
#[unsafe(no_mangle)]
pub extern "C" fn record() -> i64 {
    let Ok(profiler) = swipr::Profiler::builder().hz(500).start() else { return -1 };
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(100) {
        black_box((0..10_000_u64).fold(0, |sum, n| black_box(sum ^ n)));
    }
    let report = profiler.stop().ok();
    report.and_then(|report| report.summary().map(|summary| summary.samples as i64)).unwrap_or(-2)
}
