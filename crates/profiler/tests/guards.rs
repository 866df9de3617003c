//! Guards that cannot record: one too many. A file of its own: other
//! tests beside it would have no place to record.

use swipr::Profiler;

#[test]
fn guards_that_cannot_record_are_errors_at_once() {
    let start = || Profiler::builder().start();
    // Regression: it was a guard all the same, and the error came from `stop`, after the work.
    let guards: Vec<Profiler> = (0..8).map(|_| start().expect("a profiler")).collect();
    let error = start().expect_err("the ninth");
    assert_eq!(error.to_string(), "8 recordings are running, which is the most");
    for profiler in guards {
        profiler.stop().expect("a report");
    }
}
