//! `swipr push`, and an agent that makes no recording now.

use super::*;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Instant;
use swipr_c_tests::directory::Directory;
use swipr_c_tests::http;

/// Listens at `place` and answers as the agent at `agent`, but refuses the first profiles so. Tells
/// when profiles were asked for.
fn busy(agent: PathBuf, place: &Path, refusals: &'static [&'static str]) -> Receiver<Instant> {
    let listener = UnixListener::bind(place).expect("a socket");
    let (sender, asked) = channel();
    std::thread::spawn(move || {
        let mut refusals = refusals.iter();
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let head: Vec<String> =
                reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let Some(target) = head.first().and_then(|line| line.split(' ').nth(1)) else { continue };
            let is_profile = target.starts_with("/profile");
            if is_profile && sender.send(Instant::now()).is_err() {
                return;
            }
            let (status, body) = match is_profile.then(|| refusals.next()).flatten() {
                Some(refusal) => ((*refusal).to_owned(), b"the reason\n".to_vec()),
                None => {
                    let answer = http::get(&agent, target).and_then(http::Answer::read_all);
                    let answer = answer.expect("the agent's answer");
                    (answer.status.to_string(), answer.body)
                }
            };
            let head = format!("HTTP/1.1 {status} \r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = reader.get_mut().write_all(&[head.as_bytes(), &body].concat());
        }
    });
    asked
}

/// Pushes one profile of an agent that refuses so at first, and tells when profiles were asked for.
fn pushed_by(refusals: &'static [&'static str]) -> (Said, Vec<Instant>) {
    let (url, _requests) = store(&["200 OK"]);
    let (host, directory) = (running_burner(), Directory::new());
    let socket = directory.path().join("busy.sock");
    let asked = busy(host.socket(), &socket, refusals);
    let said = says(["push", &socket.display().to_string(), "--url", &url, "-d", "1", "--count", "1"]);
    host.end();
    (said, asked.try_iter().collect())
}

/// It was asked thousands of times a second, and not a word was said.
#[test]
fn it_is_asked_again_after_a_pause_and_its_reason_is_told_once() {
    let (said, asked) = pushed_by(&["429 Busy", "503 Busy"]);
    let said = said.well();
    assert_eq!(said.errors.matches("the reason").count(), 2, "{said:?}");
    assert!(said.errors.contains("sent 1 profiles"), "{said:?}");
    assert_eq!(asked.len(), 3);
    for pair in asked.windows(2) {
        assert!(pair[1] - pair[0] >= Duration::from_millis(400), "{asked:?}");
    }
}

#[test]
fn what_it_will_not_take_at_another_time_either_ends_the_command() {
    let (said, asked) = pushed_by(&["400 No"]);
    said.refuses(1, &["the reason", "--help has examples"]);
    assert_eq!(asked.len(), 1);
}

/// Regression: the store's address was to be checked, to which nothing had been sent.
#[test]
fn where_no_recording_found_cpu_time_that_is_said_and_not_the_store_is_blamed() {
    let (said, asked) = pushed_by(&["422 Nothing"]);
    said.refuses(1, &["the reason", "--idle"]);
    assert!(!said.errors.contains("--url"), "{said:?}");
    assert_eq!(asked.len(), 1);
}
