//! Guards that cannot record: one too many, and one of another process. A file of its own: other
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
    // Regression: it waited two minutes for a thread that the child does not have.
    let profiler = start().expect("a profiler");
    // SAFETY: the child allocates, which the C library allows after its own fork, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_empty = profiler.report().stacks().is_empty();
        let error = profiler.stop().map_or_else(|error| error.to_string(), |_| String::new());
        let is_right = is_empty && error.contains("before a fork");
        // SAFETY: it does not return.
        unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the child above, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    profiler.stop().expect("the parent's");
}
