//! Recordings that a client ends early.

use std::path::Path;
use std::thread::{JoinHandle, spawn};
use swipr_c_tests::agent;
use swipr_c_tests::examples::built;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::http::{self, Answer};

fn burner(variables: &[(&str, &str)]) -> Host {
    let (_directory, executable) = built("mini_demo");
    let mut command = std::process::Command::new(executable);
    command.args(["--burn-cpu", "--threads", "1", "--iterations", "100000"]);
    command.env("LD_PRELOAD", agent::library()).envs(variables.iter().copied());
    Host::spawn(command)
}

fn text(answer: Answer) -> (u16, String) {
    let answer = answer.read_all().expect("the whole answer");
    (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
}

fn stop(socket: &Path, query: &str) -> (u16, String) {
    text(http::send(socket, "POST", &format!("/stop{query}"), "").expect("an answer"))
}

/// A recording that would take an hour, and waits until it has samples.
fn begin(host: &Host, target: &str) -> JoinHandle<Answer> {
    let (socket, target) = (host.socket(), target.to_owned());
    let before = samples(&socket);
    let asked = socket.clone();
    let answer = spawn(move || http::get(&asked, &target).and_then(Answer::read_all).expect("an answer"));
    wait_until("samples", || samples(&socket) > before + 20);
    answer
}

fn samples(socket: &Path) -> u64 {
    let (_, metrics) = text(http::get(socket, "/metrics").expect("metrics"));
    let line = metrics.lines().find_map(|line| line.strip_prefix("swipr_samples_total "));
    line.and_then(|count| count.parse().ok()).expect("the count of samples")
}

#[test]
fn a_recording_that_is_ended_early_is_answered_as_one_whose_time_is_over() {
    let host = burner(&[]);
    let socket = host.socket();
    let mine = begin(&host, "/profile.pb.gz?seconds=3600&id=mine");
    assert_eq!(stop(&socket, "?id=another").0, 404);
    assert_eq!(stop(&socket, "?id=mine"), (200, "1 recording ends\n".to_owned()));
    let answer = mine.join().expect("an answer");
    assert!(answer.status == 200 && answer.body.starts_with(&[0x1f, 0x8b]), "{:?}", answer.status);
    let stats = answer.field("x-swipr-stats").expect("its figures");
    assert!(!stats.contains("samples=0 "), "{stats}");
    assert_eq!(stop(&socket, "?id=mine").0, 404, "it has ended");
}

/// Regression: `POST /stop` ended the recording of `swipr run`, too.
#[test]
fn recordings_without_an_id_are_ended_and_others_and_the_flight_recorder_are_not() {
    let host = burner(&[("SWIPR_CONTINUOUS", "49hz,60s")]);
    let socket = host.socket();
    wait_until("the flight recorder", || samples(&socket) > 0);
    assert_eq!(stop(&socket, "").0, 404);
    let two = [
        begin(&host, "/profile?seconds=3600&format=folded"),
        begin(&host, "/flamegraph.html?samples=360000"),
    ];
    let with_id = begin(&host, "/profile?seconds=3600&format=folded&id=x");
    assert_eq!(stop(&socket, ""), (200, "2 recordings end\n".to_owned()));
    for answer in two {
        assert_eq!(answer.join().expect("an answer").status, 200);
    }
    assert_eq!(stop(&socket, "?id=x").0, 200);
    assert_eq!(with_id.join().expect("an answer").status, 200);
    let before = samples(&socket);
    wait_until("more samples of the flight recorder", || samples(&socket) > before);
    assert_eq!(http::get(&socket, "/last?seconds=5&format=folded").expect("an answer").status, 200);
}
