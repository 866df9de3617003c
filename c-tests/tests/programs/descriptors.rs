//! Descriptors, clients and rights.

use std::io::Write;
use std::os::unix::net::UnixStream;
use swipr_c_tests::expectation::expect;
use swipr_c_tests::host::{Host, wait_until};
use swipr_c_tests::http::{self};
use swipr_c_tests::program::compiled;

#[test]
fn a_client_that_goes_away_leaves_nothing_behind() {
    let (_directory, program) = compiled("closed_by_client");
    let host = Host::start(&program);
    let socket = host.socket();
    drop(host.record("samples=10&hz=500"));
    let count = |what: &str| {
        let path = format!("/proc/{}/{what}", host.pid());
        std::fs::read_dir(path).map_or(0, Iterator::count)
    };
    // Fifty equal readings in a row: what earlier clients held has been released.
    let mut before = (0, 0);
    let mut agreed = 0;
    wait_until("descriptors and threads to settle", || {
        let now = (count("fd"), count("task"));
        agreed = if now == before { agreed + 1 } else { 0 };
        before = now;
        agreed == 50
    });

    for _ in 0..20 {
        // More than may run at once: those that lost their client have to end first.
        wait_until("a recording to begin", || {
            let target = "/profile?seconds=60&hz=200&format=perf";
            http::get(&socket, target).expect("an answer").status == 200
        });
    }
    for half in ["", "GET /pro", "GET /profile?seconds=5 HTTP/1.1\r\nHost: a"] {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        stream.write_all(half.as_bytes()).expect("half a request");
    }
    for _ in 0..1000 {
        drop(UnixStream::connect(&socket).expect("a connection"));
    }
    let after = host.record("samples=500&hz=500");
    expect(
        &after,
        &["every sample of burner has stack burner_main;work", "every sample of burner is complete"],
    );
    wait_until("descriptors and threads to be as before", || {
        (count("fd"), count("task")) <= before && count("task") <= before.1
    });
    host.end();
}

/// Regression: in 4 of 60 starts on a busy machine the socket's directory became unwritable before
/// the socket was made.
#[test]
fn hosts_that_give_up_their_rights_at_once_have_their_sockets() {
    let (_directory, program) = compiled("not_dumpable");
    let hosts: Vec<Host> = (0..16).map(|_| Host::start(&program)).collect();
    for host in hosts {
        assert!(http::get(&host.socket(), "/status").is_ok());
        host.end();
    }
}

#[test]
fn descriptors_0_to_2_are_the_hosts_and_16_are_enough() {
    let (_directory, program) = compiled("low_fds");
    let host = Host::start(&program);
    let recording = host.record("samples=1000&hz=1000");
    expect(&recording, &["share of burner with stack burner_main >= 0.9"]);
    host.end();
}
