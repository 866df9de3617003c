//! `swipr dump`.

use crate::support::*;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::program::Program;

#[test]
fn shows_every_threads_stack_with_its_lines_and_what_it_waits_for() {
    let host = running_burner();
    let pid = host.pid().to_string();
    // Where other programs leave no CPU to the burner for a second, it is shown without a stack.
    wait_until("the burner gets a CPU", || {
        let said = says(["dump", &pid]).well();
        for part in ["no_frame_pointer.c:", "blocked in ", "\"burner\" tid "] {
            assert!(said.out.contains(part), "{part} is not in {said:?}");
        }
        said.out.contains("burner_main")
    });
    let said = says(["dump", "--pid", &pid, "--thread-name", "^burner$"]).well();
    assert!(said.out.contains("\"burner\" tid ") && !said.out.contains("blocked in"), "{said:?}");
    host.end();
}

#[test]
fn a_thread_that_cannot_be_asked_is_shown_without_a_stack() {
    let directory = Directory::new();
    let host = Host::start(&Program::compile("signals_blocked", directory.path()));
    let pid = host.pid().to_string();
    host.socket(); // waits for the agent
    wait_until("the thread computes with all signals blocked", || {
        let said = says(["dump", &pid]).well();
        let (_, thread) = said.out.split_once("\"changing\" tid ").expect("every thread is shown");
        thread.lines().nth(1).is_some_and(|frame| frame.ends_with("[not sampled]"))
    });
    host.end();
}

#[test]
fn as_json_it_is_an_object() {
    let host = running_burner();
    let said = says(["dump", &host.pid().to_string(), "--json"]).well();
    let object: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(object["pid"], host.pid(), "{object}");
    host.end();
}

#[test]
fn children_are_shown_where_asked() {
    let directory = Directory::new();
    let child = directory.path().join("a_child");
    std::fs::copy(&burner().executable, &child).expect("a copy");
    let mut shell = std::process::Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("{}; true", child.display()))
        .env("LD_PRELOAD", swipr_c_tests::agent::library());
    let mut host = swipr_c_tests::host::Host::spawn(shell);
    host.wait_for("ready");
    let pid = host.pid().to_string();
    assert!(!says(["dump", &pid]).well().out.contains("burner_main"));
    assert!(says(["dump", &pid, "-s"]).well().out.contains("burner_main"));
    host.tell_end();
    host.wait_for("ok");
}

/// Regression: a process that had just been forked had "no swipr inside" (8 of 20).
#[test]
fn a_process_that_has_just_begun_is_waited_for() {
    // As soon as they are forked.
    const SCRIPT: &str = r#"for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        (read -r until <$FIFO; :) & LD_PRELOAD= "$SWIPR" dump $! >/dev/null || echo "failed: $!"; kill $!
        done"#;
    let directory = Directory::new();
    let fifo = directory.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(SCRIPT).env("FIFO", &fifo).env("SWIPR", env!("CARGO_BIN_EXE_swipr"));
    shell.env("LD_PRELOAD", swipr_c_tests::agent::library());
    let output = shell.output().expect("a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{errors}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let host = running_burner();
    let script = format!("{} dump {} | head -n 1", env!("CARGO_BIN_EXE_swipr"), host.pid());
    let output = std::process::Command::new("sh").arg("-c").arg(script).output().expect("sh");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    host.end();
}
