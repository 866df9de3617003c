//! The signal, its handler, and threads that may not have one.

use crate::figure;
use crate::read_until_stack;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{self, Host};
use swipr_c_tests::program::compiled;

/// Regression: the thread was killed at its next sample, and the host with it. (Few samples: a
/// kernel tick between the call and the wait after it kills the host, see docs/limits.md.)
#[test]
fn a_thread_that_enters_a_sandbox_by_inline_system_calls_is_not_signalled_when_it_computes_again() {
    let (_directory, program) = compiled("sandbox_unseen");
    let mut host = Host::start(&program);
    let mut sampled_before = host.begin_recording("seconds=60&hz=10&format=perf");
    read_until_stack(&mut sampled_before, "unseen_main;compute");
    host.tell("enter");
    host.wait_for("inside");
    let recording = host.record("seconds=2&hz=10");
    assert!(figure(&recording, "unsampled_cpu_ns") > 0, "{:?}", recording.stats);
    drop(sampled_before);
    host.end();
}

#[test]
fn the_handler_makes_no_system_call() {
    let (_directory, program) = compiled("no_system_calls");
    let mut host = Host::start(&program);
    let expected = [
        "share of closed with stack closed_main;compute;compute >= 0.9",
        "every sample of closed is complete",
    ];
    // The handler reads the stack by a system call until the sampler knows where the stack is.
    let query = "seconds=1&hz=500&format=perf";
    let mut answer = host.begin_recording(query);
    read_until_stack(&mut answer, "closed_main;compute");
    // From here on the thread may make none. Up to a second later the sampler sees that, and arms
    // its timer no more.
    host.tell("close");
    host.wait_for("done");
    expect(&host::finish_recording(answer, query), &expected);
    host.end();
}
