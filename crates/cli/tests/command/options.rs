//! Options that are not right.

use crate::support::*;
use std::os::unix::process::CommandExt;

/// Of all errors these had no `next:` line.
#[test]
fn wrong_options_are_refused_with_the_help_that_has_the_right_ones() {
    let next = |arguments: &[&str], next: &str| {
        let said = says(arguments);
        said.refuses(2, &[]);
        assert!(said.errors.ends_with(&format!("\nnext: {next}\n")), "{said:?}");
    };
    next(&["record", "--nope", "1"], "swipr record --help");
    next(&["run", "-r", "many", "--", "true"], "swipr run --help");
    next(&["nope"], "swipr --help");
    next(&["--nope"], "swipr --help");
    let converter = said(swipr(["--nope"]).arg0("swipr-sample-conv"));
    converter.refuses(2, &["\nnext: swipr-sample-conv --help\n"]);
    // The help itself is no error.
    assert!(!says(["record", "--help"]).well().out.contains("\nnext: "));
    assert!(!says([""; 0]).errors.contains("\nnext: "));
}
