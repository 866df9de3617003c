//! Runs tests that may find out, when they begin, that this machine cannot run them: they are
//! counted as ignored, with the reason. The usual harness cannot do that.

use libtest_mimic::{Arguments, Completion, Trial};
use std::process::ExitCode;

/// Why a test was not run.
pub type NotRun = String;
/// A test's name and body.
pub type Test = (&'static str, fn() -> Result<(), NotRun>);

/// The functions of these names as a list of tests, `TESTS`.
#[macro_export]
macro_rules! tests {
    ($($test:ident),* $(,)?) => {
        const TESTS: &[$crate::harness::Test] = &[$((stringify!($test), $test)),*];
    };
}

/// The whole of `main`. As many tests at a time as `RUST_TEST_THREADS` says.
pub fn run(tests: &[Test]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    let trial = |&(name, test): &Test| {
        Trial::ignorable_test(name, move || {
            Ok(test().map_or_else(Completion::ignored_with, |()| Completion::Completed))
        })
    };
    libtest_mimic::run(&arguments, tests.iter().map(trial).collect()).exit_code()
}
