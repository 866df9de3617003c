//! Children, and programs that execute others.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use swipr_c_tests::agent;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{self, Host};
use swipr_c_tests::http::{self};
use swipr_c_tests::program::compiled;

#[test]
fn a_forked_child_has_its_own_socket_and_is_sampled() {
    let (_directory, program) = compiled("fork_child");
    let host = Host::start(&program);
    let child = host.heard("child ").trim().parse().expect("a process id");
    let of_child = host::record(&host.socket_of(child), "samples=200&hz=200");
    let of_parent = host.record("samples=200&hz=200");
    expect(
        &of_child,
        &[
            "thread childworker has stack child_main;child_work",
            "every sample of childworker is complete",
            "thread burner is not sampled",
        ],
    );
    expect(
        &of_parent,
        &[
            "every sample of burner has stack burner_main;parent_work",
            "every sample of burner is complete",
            "thread childworker is not sampled",
        ],
    );
    assert!(of_child.samples.iter().all(|sample| sample.pid == child));
    host.end();
}

#[test]
fn what_a_program_registered_before_a_fork_holds_in_the_child() {
    let (_directory, program) = compiled("registered_before_fork");
    let host = Host::start(&program);
    let child = host.heard("child ").trim().parse().expect("a process id");
    let of_child = host::record(&host.socket_of(child), "samples=200&hz=200");
    expect(
        &of_child,
        &["every sample of child has stack child_main;call;burn", "every sample of child is complete"],
    );
    host.end();
}

#[test]
fn forking_and_spawning_go_on_while_recorded() {
    let (_directory, program) = compiled("fork_child");
    let mut host = Host::start(&program);
    for what in ["forks", "spawns"] {
        host.while_recorded("seconds=60&hz=1000&format=perf", |host| {
            host.tell(what);
            host.wait_for(&format!("{what} done"));
        });
        let after = host.record("samples=500&hz=500");
        expect(&after, &["every sample of burner has stack burner_main;parent_work"]);
    }
    host.end();
}

#[test]
fn a_program_that_executes_another_is_not_killed_by_a_late_signal() {
    let (_directory, program) = compiled("exec_chain");
    let host = Host::start(&program);
    let socket = host.socket();
    for _ in 0..40 {
        // Each program of the chain ends its recording; between two of them no server listens.
        if let Err(error) = http::get(&socket, "/profile?seconds=5&hz=2000&format=perf") {
            assert!(error.kind() != ErrorKind::TimedOut, "{error}");
        }
        if std::fs::read_to_string(format!("/proc/{}/cmdline", host.pid()))
            .is_ok_and(|line| line.ends_with("\x000\0"))
        {
            break;
        }
    }
    host.end();
}

/// Runs a shell whose children find the shell's socket where theirs should be; returns what is on
/// stderr.
fn errors_of_children(variable: &str, value: impl AsRef<OsStr>) -> String {
    errors_of_shell("(exec sleep 0.2); (exec sleep 0.2); :", variable, value)
}

fn errors_of_shell(script: &str, variable: &str, value: impl AsRef<OsStr>) -> String {
    let output = Command::new("sh")
        .args(["-c", script])
        .env("LD_PRELOAD", agent::library())
        .env(variable, value)
        .output()
        .expect("a shell");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn children_of_a_process_with_a_fixed_socket_write_nothing_about_it() {
    let directory = Directory::new();
    let socket = directory.path().join("fixed.sock");
    assert_eq!(errors_of_children("SWIPR_SOCKET", &socket), "");
}

#[test]
fn the_program_of_a_script_with_a_fixed_socket_is_found_by_the_script() {
    let (_directory, program) = compiled("fork_child");
    let directory = Directory::new();
    let socket = directory.path().join("fixed.sock");
    let mut command = Command::new("sh");
    command.args(["-c", "\"$@\"; :", "sh"]).arg(&program.executable);
    command.env("LD_PRELOAD", agent::library()).env("SWIPR_SOCKET", &socket);
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let name = "# stacks of the child process fork_child (";
    let mut help = String::new();
    // The program, and its own child, which may listen before it. The nearest is named first.
    host::wait_until("the help names both", || {
        let answer = http::get(&socket, "/").and_then(http::Answer::read_all);
        help = answer.map(|answer| String::from_utf8_lossy(&answer.body).into_owned()).unwrap_or_default();
        help.matches(name).count() == 2
    });
    let command = help.split(name).nth(1).expect("a child").lines().nth(1).expect("a command");
    let of_child = command.split_whitespace().nth(3).expect("a socket");
    let recording = host::record(of_child.as_ref(), "samples=200&hz=200");
    expect(&recording, &["every sample of burner has stack burner_main;parent_work"]);
    host.end();
}

#[test]
fn a_value_that_cannot_be_used_is_told_without_being_asked() {
    let errors = errors_of_children("SWIPR_RUNTIMES", "cobol");
    let count = errors.matches("not profiled: cannot use SWIPR_RUNTIMES=cobol: ").count();
    // Regression: every command of a script said it once more.
    assert_eq!(count, 1, "{errors}");
    // Regression: so did they of a secret, which is not shown, and of what is not UTF-8.
    for value in [&b"a b"[..], b"\xff"] {
        let errors = errors_of_children("SWIPR_TOKEN", OsStr::from_bytes(value));
        assert_eq!(errors.matches("not profiled: cannot use SWIPR_TOKEN=").count(), 1, "{errors}");
    }
    let errors = errors_of_shell("SWIPR_RUNTIMES=cobol sleep 0; :", "SWIPR_FOLLOW", "all");
    assert_eq!(errors.matches("not profiled").count(), 1, "a value of the child's own: {errors}");
    assert!(errors_of_children("SWIPR_AUTOSTART", "x").contains("cannot use SWIPR_AUTOSTART=x"));
}
