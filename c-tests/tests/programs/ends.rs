//! How recorded programs end: as they would without the agent.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::host::{Agent, Host, Start};
use swipr_c_tests::http;
use swipr_c_tests::program::compiled;

#[test]
fn the_last_threads_end_ends_the_process_with_the_hosts_files() {
    let (_directory, program) = compiled("last_thread_ends");
    let files = Directory::new();
    let file = files.path().join("file");
    let host =
        Host::start_with(Start { program: &program, arguments: &[file.as_os_str()], agent: Agent::Loaded });
    std::fs::remove_file(host.socket()).expect("the socket");
    host.end();
    assert_eq!(std::fs::read_to_string(file).expect("the file"), "main\nworker\nexit\n");
}

/// Regression: such a process never ended, because the agent's threads kept it alive. Strict
/// seccomp leaves no other way to end.
#[test]
fn a_first_thread_that_ends_by_the_system_call_ends_the_process_with_its_status() {
    let (_directory, program) = compiled("first_thread_exits");
    let mut host = Host::start(&program);
    assert_eq!(host.ended().code(), Some(5));
}

/// Regression: each idle process was woken once a second, to see whether its first thread had
/// ended.
#[test]
fn an_idle_agent_sleeps() {
    let (_directory, program) = compiled("first_thread_exits");
    let host = Host::start(&program);
    let sleeps = || -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", host.pid())).expect("the threads").flatten();
        let read = |task: &std::fs::DirEntry, file| {
            std::fs::read_to_string(task.path().join(file)).expect("a thread's file")
        };
        let agents = tasks.filter(|task| read(task, "comm").starts_with("swipr-"));
        let switches = agents.map(|task| {
            let status = read(&task, "status");
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.expect("a count").trim().parse::<u64>().expect("a number")
        });
        switches.sum()
    };
    // Its start may not be over yet.
    let is_quiet = |_| {
        let before = sleeps();
        std::thread::sleep(Duration::from_secs(4));
        sleeps() == before
    };
    assert!((0..5).any(is_quiet));
}

/// Ends the program in one way, with and without the agent: the status is the same.
fn ends_as_without_the_agent(how: &str) -> Host {
    let (_directory, program) = compiled("exit_while_recording");
    let start = |agent| Host::start_with(Start { program: &program, arguments: &[OsStr::new(how)], agent });
    let alone = start(Agent::Absent).ended();
    let mut host = start(Agent::Loaded);
    let answer = host.begin_recording("seconds=60&hz=500&format=perf");
    let recorded = host.ended();
    assert_eq!(
        (recorded.code(), recorded.signal()),
        (alone.code(), alone.signal()),
        "the status of a program that ends by {how}"
    );
    // The client sees the end of its connection, with a whole answer or not.
    if let Err(error) = answer.read_all() {
        let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!silent, "the recording did not end: {error}");
    }
    host
}

/// No socket is left in the program's directory.
fn left_no_socket(host: &Host) {
    let left = std::fs::read_dir(host.directory()).map_or(0, Iterator::count);
    assert_eq!(left, 0, "files left in the directory of the sockets");
}

/// Regression: of a program that ended by itself, a client had nothing, or lacked the end.
#[test]
fn at_exit_clients_get_what_was_sampled() {
    for how in ["exit", "return", "quick_exit"] {
        let (_directory, program) = compiled("exit_while_recording");
        let start = Start { program: &program, arguments: &[OsStr::new(how)], agent: Agent::Loaded };
        let mut host = Host::start_with(start);
        let socket = host.socket();
        let answer = std::thread::scope(|scope| {
            let get = || http::get(&socket, "/profile?seconds=60&hz=500&format=folded")?.read_all();
            let reader = scope.spawn(get);
            host.record("seconds=0.5&hz=500&format=perf");
            host.ended();
            reader.join().expect("the client")
        });
        let answer = answer.unwrap_or_else(|error| panic!("the answer at {how}: {error}"));
        let text = String::from_utf8_lossy(&answer.body);
        assert!(answer.status == 200 && text.contains("burner_main"), "{how}: {} {text}", answer.status);
    }
}

#[test]
fn a_client_that_does_not_read_does_not_keep_the_program() {
    let (_directory, program) = compiled("exit_while_recording");
    let start = Start { program: &program, arguments: &[OsStr::new("exit")], agent: Agent::Loaded };
    let mut host = Host::start_with(start);
    let unread = host.begin_recording("seconds=60&hz=10000&format=perf");
    host.record("seconds=3&hz=100&format=perf");
    assert_eq!(host.ended().code(), Some(7));
    drop(unread);
}

/// Regression: with the agent's threads in it, the process never ended.
#[test]
fn a_handler_of_a_program_of_one_thread_ends_it_in_fork() {
    let (_directory, program) = compiled("exits_in_fork");
    for _ in 0..20 {
        assert_eq!(Host::start(&program).wait().code(), Some(3));
    }
}

/// Regression: each child's handler forked the next one, without end.
#[test]
fn a_handler_for_crashes_forks_on_its_alternate_stack() {
    let (_directory, program) = compiled("crash_helper");
    for is_recorded in [false, true] {
        let mut host = Host::start(&program);
        let recording = is_recorded.then(|| host.begin_recording("seconds=60&hz=1000&format=perf"));
        host.tell_end();
        assert_eq!(host.wait().code(), Some(5));
        drop(recording);
    }
}

#[test]
fn exit_while_recording_keeps_the_status_and_removes_the_socket() {
    left_no_socket(&ends_as_without_the_agent("exit"));
}

#[test]
fn returning_from_main_while_recording_keeps_the_status_and_removes_the_socket() {
    left_no_socket(&ends_as_without_the_agent("return"));
}

#[test]
fn the_last_thread_ends_the_process_while_recording() {
    left_no_socket(&ends_as_without_the_agent("last-thread"));
}

#[test]
fn ending_without_handlers_while_recording_keeps_the_status() {
    ends_as_without_the_agent("_exit");
}

#[test]
fn quick_exit_while_recording_keeps_the_status() {
    ends_as_without_the_agent("quick_exit");
}

#[test]
fn an_abort_while_recording_stays_one() {
    ends_as_without_the_agent("abort");
}

#[test]
fn a_crash_while_recording_stays_one() {
    ends_as_without_the_agent("crash");
}

#[test]
fn a_crash_with_a_reporter_is_reported_and_stays_one() {
    ends_as_without_the_agent("reported");
}

#[test]
fn sigterm_ends_a_recorded_process() {
    ends_as_without_the_agent("sigterm");
}
