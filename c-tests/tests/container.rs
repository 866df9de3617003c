//! What the agent can do must work in a hardened container, too: an ordinary user, no capability,
//! no new privileges, Docker's default seccomp profile, a read-only root.
//!
//! Where a machine cannot run containers these tests are counted as ignored, with the reason.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use swipr_c_tests::container::{Container, missing};
use swipr_c_tests::expectation::check;
use swipr_c_tests::harness::{self, NotRun};
use swipr_c_tests::host;
use swipr_c_tests::http;
use swipr_c_tests::recording;

swipr_c_tests::tests! {
    programs_are_sampled_as_anywhere_else,
    every_route_and_format_answers,
    a_forked_child_has_its_own_socket,
    the_c_interface_writes_files,
    with_nothing_configured_the_socket_is_in_a_private_directory,
    blocked_threads_are_left_alone_whatever_is_refused,
    who_closes_the_agents_descriptors_is_recorded_afterwards,
    a_program_that_sandboxes_itself_where_close_range_is_refused_has_children,
    a_process_that_is_not_dumpable_is_not_interrupted_where_it_waits,
    on_alternate_stacks_without_process_vm_readv_every_tick_is_accounted_for,
    without_timers_a_program_lives_and_its_running_time_is_not_sampled,
}

fn runs_here() -> Result<(), NotRun> {
    missing().map_or(Ok(()), |reason| Err(format!("this machine runs no containers: {reason}")))
}

/// Makes the recordings that a program's comments request, and checks what they expect.
fn records_as_expected(name: &str, refused: &[&str]) {
    let container = Container::new(name, refused);
    let host = container.start();
    let mut failures = Vec::new();
    for step in &container.program.steps {
        let recording = host::record(&container.socket_of(1), &step.query);
        failures.extend(step.expectations.iter().filter_map(|line| check(line, &recording).err()));
    }
    host.end();
    assert!(failures.is_empty(), "{name}, refused {refused:?}:\n{}", failures.join("\n"));
}

fn programs_are_sampled_as_anywhere_else() -> Result<(), NotRun> {
    runs_here()?;
    let programs = [
        "o0_blocked",
        "no_frame_pointer",
        "deep_stack",
        "blocked_threads",
        "cpu_and_wall",
        "waiting_for_cpu",
        "alternate_stack",
        "signal_handler_stack",
        "nested_signals",
        "coroutines",
        "registered_code",
        "other_namespace",
        "thread_churn",
    ];
    std::thread::scope(|scope| {
        for some in programs.chunks(7) {
            scope.spawn(|| some.iter().for_each(|name| records_as_expected(name, &[])));
        }
    });
    Ok(())
}

fn every_route_and_format_answers() -> Result<(), NotRun> {
    runs_here()?;
    let container = Container::new("closed_by_client", &[]);
    let host = container.start();
    let socket = container.socket_of(1);
    let get = |target: &str| {
        let answer = http::get(&socket, target).and_then(http::Answer::read_all).expect(target);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        (answer.status, text)
    };
    let (_, refusal) = get("/profile?format=none");
    let names = refusal.lines().next().and_then(|line| line.split_once("is not one of ")).expect("a list").1;
    let names: Vec<&str> = names.split(", ").collect();
    assert!(names.len() >= 5, "{names:?}");
    for (name, mode) in names.iter().zip(["wall", "cpu"].into_iter().cycle()) {
        let (status, text) = get(&format!("/profile?samples=500&hz=500&mode={mode}&format={name}"));
        assert!(status == 200 && !text.is_empty(), "{name}, {mode}: {status} {text}");
    }
    for (target, part) in [
        ("/", "curl"),
        ("/dump", "burner_main"),
        ("/dump?format=json", "burner_main"),
        ("/health", "OK"),
        ("/status", "\"blocked_threads_are_sampled_by\":\"copy\""),
        ("/status", "\"timer_signals_are_raised_by\":\""),
        ("/metrics", "swipr_off 0"),
    ] {
        let (status, text) = get(target);
        assert!(status == 200 && text.contains(part), "{target}: {status} {text}");
    }
    host.end();
    Ok(())
}

fn a_forked_child_has_its_own_socket() -> Result<(), NotRun> {
    runs_here()?;
    let container = Container::new("fork_child", &[]);
    let mut host = container.start();
    let child = host.heard("child ").trim().parse().expect("a process id");
    let of_child = host::record(&container.socket_of(child), "samples=200&hz=200");
    assert_eq!(check("thread childworker has stack child_main;child_work", &of_child), Ok(()));
    for what in ["forks", "spawns"] {
        host.tell(what);
        host.wait_for(&format!("{what} done"));
    }
    host.end();
    Ok(())
}

fn the_c_interface_writes_files() -> Result<(), NotRun> {
    runs_here()?;
    let container = Container::new("swipr_start_api", &[]);
    let files = container.path().join("files");
    std::fs::create_dir(&files).expect("a directory");
    std::os::unix::fs::chown(&files, Some(1000), None).expect("the directory can be given away");
    let mut host = host::Host::spawn(container.command(&[&files.display().to_string()]));
    host.wait_for("ready");
    host.end();
    let text = std::fs::read_to_string(files.join("whole.folded")).expect("a recording");
    assert!(recording::folded(&text).is_ok_and(|samples| !samples.is_empty()));
    Ok(())
}

fn with_nothing_configured_the_socket_is_in_a_private_directory() -> Result<(), NotRun> {
    runs_here()?;
    let mut container = Container::new("closed_by_client", &[]);
    container.environment = vec![("SWIPR_LOG".into(), "1".into())];
    let mut command: Command = container.command(&[]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the container");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("its standard error"));
    // The agent starts while the program runs. The program ends when its input is closed.
    while !said.contains("listening on") && lines.read_line(&mut said).is_ok_and(|bytes| bytes > 0) {}
    drop(child.stdin.take());
    let status = child.wait().expect("the program's end");
    assert!(status.success() && said.contains("listening on /tmp/swipr-1000/swipr-pid-1.sock"), "{said}");
    Ok(())
}

fn blocked_threads_are_left_alone_whatever_is_refused() -> Result<(), NotRun> {
    runs_here()?;
    for refused in [
        &["process_vm_readv"][..],
        &["close_range"],
        &["ptrace"],
        &["process_vm_readv", "close_range", "ptrace"],
    ] {
        records_as_expected("blocked_threads", refused);
        records_as_expected("o0_blocked", refused);
    }
    Ok(())
}

/// Where close_range(2) is refused, the agent's descriptors are in the host's table. Nothing tells
/// the server that they were closed.
fn who_closes_the_agents_descriptors_is_recorded_afterwards() -> Result<(), NotRun> {
    runs_here()?;
    let container = Container::new("closes_once", &["close_range"]);
    let mut host = container.start();
    container.socket_of(1);
    host.tell("close");
    host.wait_for("closed");
    let recording = host::record(&container.socket_of(1), "samples=100&hz=500");
    host.end();
    check("every sample of burner has stack burner_main;work", &recording).expect("a recording");
    Ok(())
}

/// Regression: its children were killed for a call of the agent's, which closed its descriptors.
fn a_program_that_sandboxes_itself_where_close_range_is_refused_has_children() -> Result<(), NotRun> {
    runs_here()?;
    records_as_expected("sandboxed_service", &["close_range"]);
    Ok(())
}

/// Regression: the first sample cut each of its sleeps short.
fn a_process_that_is_not_dumpable_is_not_interrupted_where_it_waits() -> Result<(), NotRun> {
    runs_here()?;
    let container = Container::new("not_dumpable", &[]);
    let host = container.start();
    let socket = container.socket_of(1);
    let recording = host::record(&socket, "samples=500&hz=500");
    let expected = ["every sample of burner has stack burner_main;work", "every tick is accounted for"];
    let failures: Vec<_> = expected.iter().filter_map(|line| check(line, &recording).err()).collect();
    let status = http::get(&socket, "/status").and_then(http::Answer::read_all).expect("an answer");
    let status = String::from_utf8_lossy(&status.body).into_owned();
    host.end();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(status.contains("\"blocked_threads_are_sampled_by\":\"nothing\""), "{status}");
    Ok(())
}

/// A handler on an alternate stack cannot read the thread's own stack then. The samples must say
/// so, and not guess.
fn on_alternate_stacks_without_process_vm_readv_every_tick_is_accounted_for() -> Result<(), NotRun> {
    runs_here()?;
    let container = Container::new("alternate_stack", &["process_vm_readv"]);
    let host = container.start();
    let recording = host::record(&container.socket_of(1), "samples=500&hz=500");
    let expected = ["every tick is accounted for", "thread nested has stack handler_work", "threads >= 3"];
    let failures: Vec<_> = expected.iter().filter_map(|line| check(line, &recording).err()).collect();
    host.end();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

fn without_timers_a_program_lives_and_its_running_time_is_not_sampled() -> Result<(), NotRun> {
    runs_here()?;
    let container = Container::new("no_frame_pointer", &["timer_create"]);
    let host = container.start();
    let recording = host::record(&container.socket_of(1), "samples=200&hz=200");
    let expected = ["thread burner is not sampled", "every tick is accounted for", "samples >= 100"];
    let failures: Vec<_> = expected.iter().filter_map(|line| check(line, &recording).err()).collect();
    host.end();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

fn main() -> ExitCode {
    harness::run(TESTS)
}
