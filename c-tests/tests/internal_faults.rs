//! Faults of the agent itself: whatever breaks in it, the program keeps running, and clients get
//! the reason.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use swipr_c_tests::agent::{FAULT_VARIABLE, faulty_library, library};
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::http;
use swipr_c_tests::program::{Program, compiled};

/// A program under an agent that has the fault.
fn start(program: &Program, fault: &str) -> Host {
    let mut command = Command::new(&program.executable);
    command.env("LD_PRELOAD", faulty_library()).env(FAULT_VARIABLE, fault);
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    host
}

/// Everything that comes for a request up to the connection's end; nothing if no server listens.
fn raw(socket: &Path, target: &str) -> String {
    let mut answer = Vec::new();
    if let Ok(mut stream) = UnixStream::connect(socket) {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a bound");
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        // A server that is ending may close before it has read; what comes is what counts.
        let _ = stream.write_all(request.as_bytes());
        let read = stream.read_to_end(&mut answer);
        let is_reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        assert!(read.as_ref().err().is_none_or(is_reset), "{target}: {read:?}");
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn a_start_that_takes_long_holds_up_no_call_of_the_hosts() {
    let (_directory, program) = compiled("slow_start");
    let host = start(&program, "imports");
    expect(&host.record("samples=200&hz=200"), &["every sample of burner has stack burner_main;work"]);
    host.end();
}

fn panic_ends_recordings(thread: &str) {
    let (_directory, program) = compiled("fork_child");
    let mut host = start(&program, &format!("panic:{thread}"));
    let socket = host.socket();
    let recording = raw(&socket, "/profile?seconds=60&hz=500&format=perf&symbolizer=fake");
    let said = "the agent has turned itself off: as the test wants it, at ";
    assert!(recording.starts_with("HTTP/1.1 200 "), "{recording}");
    assert!(recording.contains("wall-clock:\n"), "what was sampled before is there: {recording}");
    let end = recording.rsplit_once("\r\n0\r\n").map_or("", |(_, end)| end);
    assert!(end.starts_with(&format!("X-Swipr-Error: {said}")), "the end is {end:?}");
    assert!(end.matches("\r\n").count() == 1, "the last line is missing, as of all that is cut: {end:?}");

    for target in ["/health", "/profile?seconds=1&format=folded", "/dump"] {
        let answer = raw(&socket, target);
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains(said), "{target}: {answer}");
    }
    let status = raw(&socket, "/status");
    assert!(status.contains("\"off\":\"as the test wants it, at "), "{status}");
    assert!(raw(&socket, "/metrics").contains("\nswipr_off 1\n"));
    host.tell("forks");
    host.wait_for("forks done");
    let sockets = std::fs::read_dir(host.directory()).map_or(0, Iterator::count);
    assert!(sockets <= 2, "children of a program whose agent is off have no agent");
    host.end();
}

#[test]
fn a_panic_in_the_sampler_ends_recordings_with_the_reason_and_the_program_goes_on() {
    panic_ends_recordings("sampler");
}

#[test]
fn a_panic_in_a_writer_ends_recordings_with_the_reason_and_the_program_goes_on() {
    panic_ends_recordings("writer");
}

#[test]
fn a_panic_in_the_server_removes_the_socket_and_the_program_goes_on() {
    let (_directory, program) = compiled("fork_child");
    let mut host = start(&program, "panic:server");
    let socket = host.socket();
    assert_eq!(raw(&socket, "/status"), "");
    wait_until("the socket to go", || !socket.exists());
    host.tell("forks");
    host.wait_for("forks done");
    host.end();
}

/// Rust's standard library ends the process when there is no memory.
#[test]
fn a_heap_that_gives_nothing_any_more_ends_the_agent_and_never_the_program() {
    let (_directory, program) = compiled("fork_child");
    let mut off = 0;
    // From the loading of the library to a recording in full swing: some thousand calls.
    for calls in [0, 1, 3, 10, 30, 60, 100, 200, 300, 400, 600, 1000, 2000, 4000, 8000, 20_000] {
        let mut host = start(&program, &format!("memory:{calls}"));
        let socket = host.directory().join(format!("{}.sock", host.pid()));
        let answers = ["/status", "/profile?samples=200&hz=500&format=pprof", "/health"].map(|target| {
            let answer = raw(&socket, target);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 "), "{calls}: {answer}");
            answer
        });
        off += u32::from(answers.iter().any(|answer| answer.contains("there is no memory")));
        host.tell("forks");
        host.wait_for("forks done");
        host.end();
    }
    assert!(off > 0, "none of them could say why it was off");
}

/// The same, with what the kernel refuses.
#[test]
fn a_limit_on_address_space_ends_the_agent_and_never_the_program() {
    let (_directory, program) = compiled("memory_limit");
    let mut recorded = 0;
    for spare_kib in [0, 64, 512, 1024, 1536, 2048, 4096, 8192, 16384, 65536, 262_144] {
        let mut command = Command::new(&program.executable);
        command.env("LD_PRELOAD", library());
        let mut host = Host::spawn(command);
        host.wait_for("ready");
        let socket = host.socket();
        host.tell(&spare_kib.to_string());
        host.wait_for("limited");
        for target in ["/status", "/profile?samples=200&hz=500&format=pprof", "/dump", "/health"] {
            // A client must not wait for ever; what its answer says does not matter here.
            let answer = raw(&socket, target);
            recorded += u32::from(answer.starts_with("HTTP/1.1 200 ") && target == "/dump");
        }
        host.tell("lift");
        host.wait_for("lifted");
        host.end();
    }
    assert!(recorded > 0, "with memory enough there is a dump");
}

#[test]
fn turning_off_is_one_log_line_for_who_asked() {
    let (directory, program) = compiled("closed_by_client");
    let mut child = Command::new(&program.executable)
        .env("LD_PRELOAD", faulty_library())
        .env(FAULT_VARIABLE, "panic:sampler")
        .env("SWIPR_LOG", "1")
        .env("SWIPR_SOCKET", directory.path().join("s"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let socket = directory.path().join("s");
    wait_until("the socket to accept", || http::get(&socket, "/health").is_ok());
    raw(&socket, "/profile?seconds=30&hz=500&format=perf&symbolizer=fake");
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(": listening on ")).collect();
    assert!(
        lines.len() == 1 && lines[0].contains("turned off for good: as the test wants it, at "),
        "{text}"
    );
}
