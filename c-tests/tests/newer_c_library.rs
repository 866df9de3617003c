//! Programs that run with a newer C library, which makes its system calls in another way: the
//! agent's signal must cut none of them short there, either.
//!
//! Where the library cannot be fetched these tests are counted as ignored, with the reason.

use std::process::ExitCode;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::harness::{self, NotRun};
use swipr_c_tests::host;
use swipr_c_tests::newer_c_library::{installed, linker_flags};
use swipr_c_tests::program::Program;

swipr_c_tests::tests! {
    no_thread_that_is_just_going_to_sleep_is_interrupted,
    threads_that_wait_are_cancelled,
    who_waits_for_its_own_handlers_goes_on_when_they_have_run,
    its_malloc_is_not_entered_by_threads_of_ours,
    stacks_of_blocked_and_of_running_threads_are_complete,
}

/// Runs programs with the newer library, as they say in their comments.
fn run(names: &[&str]) -> Result<(), NotRun> {
    let flags = linker_flags(&installed()?);
    for name in names {
        let directory = Directory::new();
        let program = Program::compile_with(name, directory.path(), &flags);
        host::run(&program);
    }
    Ok(())
}

fn no_thread_that_is_just_going_to_sleep_is_interrupted() -> Result<(), NotRun> {
    run(&["going_to_sleep"])
}

fn threads_that_wait_are_cancelled() -> Result<(), NotRun> {
    run(&["cancelled_threads"])
}

fn who_waits_for_its_own_handlers_goes_on_when_they_have_run() -> Result<(), NotRun> {
    run(&["waits_for_handlers"])
}

/// No debug files of the library are installed: the agent searches for them.
fn its_malloc_is_not_entered_by_threads_of_ours() -> Result<(), NotRun> {
    run(&["own_malloc"])
}

fn stacks_of_blocked_and_of_running_threads_are_complete() -> Result<(), NotRun> {
    run(&["blocked_threads", "o0_blocked", "no_frame_pointer", "waits_for_signals", "thread_churn"])
}

fn main() -> ExitCode {
    harness::run(TESTS)
}
