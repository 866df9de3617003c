//! What a recording counts when the process was stopped, or another one begins.

use crate::figure;
use crate::read_until_stack;
use std::process::Command;
use std::time::{Duration, SystemTime};
use swipr_c_tests::agent::{FAULT_VARIABLE, faulty_library};
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{self, Host, wait_until};
use swipr_c_tests::http;
use swipr_c_tests::program::compiled;
use swipr_c_tests::recording;

/// Stops the program for so long while it is recorded.
fn record_stopped(host: &Host, query: &str, stopped: Duration) -> recording::Recording {
    let mut answer = host.begin_recording(query);
    read_until_stack(&mut answer, "burner_main;burn");
    for signal in [libc::SIGSTOP, libc::SIGCONT] {
        // SAFETY: a child of this process that has not been waited for.
        assert_eq!(unsafe { libc::kill(host.pid() as i32, signal) }, 0);
        if signal == libc::SIGSTOP {
            std::thread::sleep(stopped);
        }
    }
    host::finish_recording(answer, query)
}

/// Regression: ticks after the recording's end were counted as late, and busy threads were shown as
/// running while their process was stopped.
#[test]
fn a_program_that_was_stopped_has_its_ticks_counted_and_did_not_run_meanwhile() {
    let (_directory, program) = compiled("cpu_and_wall");
    let host = Host::start(&program);
    let within = record_stopped(&host, "seconds=3&hz=100&format=perf", Duration::from_secs(2));
    let (ticks, late) = (figure(&within, "ticks"), figure(&within, "late"));
    assert!((299..=300).contains(&(ticks + late)) && late >= 150, "{ticks} ticks, {late} late");
    expect(&within, &["every tick is accounted for"]);
    let ran = within.samples.iter().filter(|sample| sample.thread == "burner").count() as u64;
    assert!(ran + 100 <= ticks + late, "{ran} samples of a busy thread: {:?}", within.stats);

    let beyond = record_stopped(&host, "seconds=1&hz=100&format=perf", Duration::from_secs(3));
    let ticks = figure(&beyond, "ticks") + figure(&beyond, "late");
    assert!((99..=100).contains(&ticks), "{ticks} ticks: {:?}", beyond.stats);

    let used = record_stopped(&host, "seconds=3&hz=100&mode=cpu&format=perf", Duration::from_secs(2));
    assert!(used.count() <= figure(&used, "ticks") * 2, "{:?}", used.stats);
    host.end();
}

/// Regression: the wait in which a recording ended was a blocked thread's time.
#[test]
fn a_wait_for_a_cpu_in_which_a_recording_ends_is_one() {
    let (_directory, program) = compiled("waits_at_the_end");
    let host = Host::start(&program);
    for ticks in [40, 60, 80, 100] {
        let answer = http::get(&host.socket(), &format!("/profile?samples={ticks}&hz=200&format=folded"));
        let body = answer.and_then(http::Answer::read_all).expect("a recording").body;
        let text = String::from_utf8_lossy(&body).into_owned();
        let of_patient: Vec<&str> = text.lines().filter(|line| line.starts_with("patient;")).collect();
        let has = |state: &str| of_patient.iter().any(|line| line.contains(state));
        assert!(has(";[waiting for a CPU] ") && !has(";[blocked"), "{of_patient:?}");
    }
    host.end();
}

/// Regression: each recording that began took from the others what their threads had waited since
/// their last observation.
#[test]
fn recordings_that_begin_take_nothing_of_the_waits_that_another_counts() {
    let (_directory, program) = compiled("waiting_for_cpu");
    let host = Host::start(&program);
    let query = "seconds=3&hz=2&format=folded";
    let socket = host.socket();
    let long = std::thread::spawn(move || host::record(&socket, query));
    while !long.is_finished() {
        host.record("samples=1&hz=1000&format=folded");
    }
    let long = long.join().expect("the recording");
    expect(&long, &["stats cpu_wait_ns >= 3000000000"]);
    host.end();
}

/// Regression: when the time of day had been set, or the machine had been asleep, the flight
/// recorder had nothing of the last minute, for ever.
#[test]
fn the_last_minute_is_there_when_the_time_of_day_was_set() {
    let (_directory, program) = compiled("clock_is_set");
    let mut command = Command::new(&program.executable);
    command.env("LD_PRELOAD", faulty_library()).env(FAULT_VARIABLE, "imports");
    command.env("SWIPR_CONTINUOUS", "49hz,60s");
    let mut host = Host::spawn(command);
    host.wait_for("ready");
    let socket = host.socket();
    let last = || http::get(&socket, "/last?seconds=30&format=raw").and_then(http::Answer::read_all);
    wait_until("samples to be kept", || last().is_ok_and(|answer| answer.status == 200));
    host.tell("now");
    host.wait_for("set");
    let answer = last().expect("an answer");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{text}");
    let header: serde_json::Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    let start = header["start_ns"].as_u64().expect("a time") / 1_000_000_000;
    assert!((now + 500..=now + 600).contains(&start), "it begins at {start}, and it is {now}");
    host.end();
}
