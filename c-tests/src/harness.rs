//! Runs tests that may find out, when they begin, that this machine cannot run them: they are
//! counted as ignored, with the reason. The usual harness cannot do that. This one prints the same
//! lines, and `cargo test NAME` and `--list` work.

use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// The whole of `main`.
pub fn run(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let chosen = tests.iter().filter(|(name, _)| is_wanted(name));
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let [mut passed, mut failed, mut ignored] = [0; 3];
    for (name, test) in chosen {
        match catch_unwind(AssertUnwindSafe(test)) {
            Ok(Ok(())) => {
                passed += 1;
                println!("test {name} ... ok");
            }
            Ok(Err(why)) => {
                ignored += 1;
                println!("test {name} ... ignored, {why}");
            }
            Err(_) => {
                failed += 1;
                println!("test {name} ... FAILED");
            }
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
