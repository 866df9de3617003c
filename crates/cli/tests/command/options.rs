//! Options that are not right, and messages that nobody reads.

use crate::support::*;
use std::os::unix::process::CommandExt;
use swipr_c_tests::directory::Directory;

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

/// A similar option was named instead, `--idle`.
#[test]
fn an_option_of_py_spy_that_there_is_not_is_explained() {
    for verb in ["run", "record", "top", "dump"] {
        says([verb, "--gil", "1"]).refuses(2, &["unexpected argument '--gil'", "[waits for the GIL]"]);
        assert!(!says([verb, "--help"]).well().out.contains("--gil"));
    }
}

/// `convert` and `diff` ended with 101, though the file was written.
#[test]
fn messages_that_cannot_be_written_change_no_exit_status() {
    let directory = Directory::new();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let file = path("a.folded");
    std::fs::write(&file, "shop::main;shop::sell 5\n").expect("a file");
    for arguments in [
        &["convert", &file, "--names", "mangled", "-o", &path("b.folded")][..],
        &["diff", &file, &file, "-o", &path("d.html")],
    ] {
        let said = said(swipr(arguments).stderr(full_device()));
        assert_eq!(said.status, Some(0), "{arguments:?}: {said:?}");
    }
}
