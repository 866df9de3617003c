//! Clients that are slow, rude, many or gone.

use super::support::{BIG, BOUND, Stage, serve};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use swipr_server::listen::Place;
use swipr_server::{Limits, Settings};

const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";

fn short() -> Duration {
    Duration::from_millis(20)
}

#[test]
fn a_head_that_comes_byte_by_byte_is_put_together() {
    let stage = Stage::new();
    let mut client = stage.client();
    let body = r#"{"numberOfSamples":3,"timeInterval":"1ms"}"#;
    let length = body.len();
    let request = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    for byte in request.bytes() {
        client.send([byte]);
    }
    let answer = client.answer();
    assert!(answer.text().contains("Ticks(3)"), "{}", answer.text());
}

#[test]
fn a_head_that_does_not_end_is_answered_with_408() {
    let limits = Limits { head: short(), ..Limits::default() };
    let stage = Stage::with(limits);
    assert_eq!(stage.ask("GET / HT").status, 408);
    let body = stage.ask("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
    assert_eq!(body.status, 408);
    let mut silent = stage.client();
    assert_eq!(silent.rest(), b"", "nothing was asked, nothing is answered");
    stage.check();
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let limits = Limits { idle: short(), ..Limits::default() };
    let stage = Stage::with(limits);
    let mut client = stage.client();
    client.send(HEALTH);
    assert_eq!(client.answer().status, 200);
    assert_eq!(client.rest(), b"");
}

#[test]
fn connecting_and_closing_is_nothing() {
    let stage = Stage::new();
    for _ in 0..300 {
        drop(stage.client());
    }
    for part in ["G", "GET / HTTP/1.1\r\n", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n{", HEALTH] {
        let mut client = stage.client();
        client.send(part);
    }
    stage.check();
    assert_eq!(stage.player.started.load(Ordering::SeqCst), 0);
}

#[test]
fn a_connection_that_says_nothing_lets_the_recorder_attend_and_idling_does_not() {
    let stage = Stage::new();
    let attended = || stage.player.attended.load(Ordering::SeqCst);
    assert_eq!(attended(), 0, "nobody came, nothing woke");
    let client = stage.client();
    let begin = std::time::Instant::now();
    while attended() == 0 && begin.elapsed() < BOUND {
        thread::yield_now();
    }
    assert_ne!(attended(), 0);
    drop(client);
}

#[test]
fn a_client_that_only_closes_its_sending_side_gets_its_answer() {
    let stage = Stage::new();
    for target in ["/health", "/profile", "/profile?title=big"] {
        let mut client = stage.client();
        client.send(format!("GET {target} HTTP/1.1\r\n\r\n"));
        client.half_close();
        let answer = client.answer();
        assert_eq!((answer.status, answer.complete), (200, true), "{target}");
        assert_eq!(client.rest(), b"");
    }
    let mut client = stage.client();
    client.send("GET /health HTTP/1.1\r\n");
    client.half_close();
    assert_eq!(client.answer().status, 400);
}

/// The requests that make recordings, in every format, with and without a first byte before the
/// client leaves.
fn requests_for_recordings() -> Vec<String> {
    let formats = swipr_formats::FORMATS.iter().map(|format| format!("/profile?format={}", format.name));
    let named =
        ["flamegraph.html", "flamegraph.svg", "profile.json", "profile.speedscope.json", "profile.pb.gz"];
    let named = named.iter().chain(&["profile.folded", "profile.perf"]).map(|name| format!("/{name}"));
    let others =
        ["/last", "/dump", "/dump?format=json", "/threads", "/maps", "/live", "/debug/pprof/profile"];
    let go = [
        "/debug/pprof/symbolizer=fake/profile",
        "/debug/pprof/goroutine",
        "/debug/pprof/goroutine?debug=2",
        "/debug/fgprof",
        "/pprof/profile",
        "/debug/pprof/symbol?0x10",
    ];
    let targets = formats.chain(named).chain(others.into_iter().chain(go).map(str::to_owned));
    let gets = targets.map(|target| format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    let body = r#"{"numberOfSamples":3,"timeInterval":"1ms"}"#;
    let length = body.len();
    let post = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
    // With a further request behind it, which is read before the end is.
    let ahead = "GET /profile HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2);
    gets.chain([post, ahead]).collect()
}

/// Regression: a client that left by TCP before the first byte of its answer was not noticed until
/// the recording's end. After eight abandoned recordings by `go tool pprof`, a ninth was refused
/// for ten minutes.
#[test]
fn a_client_that_goes_away_ends_its_recording() {
    let any_port = Place::Tcp("127.0.0.1:0".parse().unwrap());
    for part in ["silent", "endless"] {
        let stage = Stage::new();
        let (_server, tcp) = serve(&any_port, Settings::default(), &stage.player);
        stage.player.always(part);
        let mut gone = 0;
        for request in requests_for_recordings() {
            for by_tcp in [false, true] {
                if by_tcp {
                    let mut client = TcpStream::connect(&tcp).unwrap();
                    client.write_all(request.as_bytes()).unwrap();
                    stage.player.wait_until_started(gone + 1);
                } else {
                    let mut client = stage.client();
                    client.send(&request);
                    stage.player.wait_until_started(gone + 1);
                }
                gone += 1;
                stage.player.wait_until_closed(gone, &request);
            }
        }
        stage.check();
    }
}

#[test]
fn a_client_that_never_reads_loses_its_recording_and_disturbs_nobody() {
    let limits = Limits { stall: short(), ..Limits::default() };
    let stage = Stage::with(limits);
    let mut deaf = stage.client();
    deaf.send("GET /profile?title=endless HTTP/1.1\r\n\r\n");
    stage.check();
    stage.player.wait_until_closed(1, "endless");
    stage.check();
    drop(deaf);
}

#[test]
fn stopping_the_server_ends_recordings_and_removes_the_socket() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send("GET /profile?title=endless HTTP/1.1\r\n\r\n");
    client.head();
    stage.server.stop();
    assert!(!stage.path.exists());
    assert!(stage.server.wait(BOUND));
    stage.player.wait_until_closed(1, "endless");
    client.rest();
}

#[test]
fn ten_clients_at_once_get_ten_whole_answers() {
    let stage = Stage::new();
    thread::scope(|scope| {
        for index in 0..10 {
            let stage = &stage;
            scope.spawn(move || {
                let samples = index + 1;
                let answer = stage.get(&format!("/profile?samples={samples}"));
                assert!(answer.text().contains(&format!("Ticks({samples})")));
                let answer = stage.get("/profile?title=big");
                assert_eq!((answer.body.len(), answer.complete), (BIG, true));
            });
        }
    });
    stage.check();
}

#[test]
fn one_connection_carries_many_requests() {
    let stage = Stage::new();
    let mut client = stage.client();
    for _ in 0..20 {
        client.send(HEALTH);
        assert_eq!(client.answer().text(), "OK\n");
        client.send("GET /profile?samples=2 HTTP/1.1\r\n\r\n");
        assert!(client.answer().text().contains("Ticks(2)"));
        client.send("GET /nothing HTTP/1.1\r\n\r\n");
        assert_eq!(client.answer().status, 404);
    }
    client.send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answer().header("Connection"), Some("close"));
    assert_eq!(client.rest(), b"");
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let stage = Stage::new();
    let mut client = stage.client();
    let mut requests = String::new();
    for samples in 1..=50 {
        requests += &format!("GET /profile?samples={samples} HTTP/1.1\r\n\r\n{HEALTH}");
    }
    client.send(requests);
    for samples in 1..=50 {
        let text = client.answer().text();
        assert!(text.contains(&format!("Ticks({samples})")), "{text}");
        assert_eq!(client.answer().text(), "OK\n");
    }
}

#[test]
fn head_is_answered_without_a_body_and_records_nothing() {
    let stage = Stage::new();
    let mut client = stage.client();
    for (target, status) in [("/", 200), ("/profile", 200), ("/dump", 200), ("/nothing", 404)] {
        client.send(format!("HEAD {target} HTTP/1.1\r\n\r\n"));
        assert_eq!(client.head().status, status, "{target}");
    }
    client.send(HEALTH);
    assert_eq!(client.answer().text(), "OK\n", "no body came in between");
    assert_eq!(stage.player.started.load(Ordering::SeqCst), 0);
}

#[test]
fn a_client_that_waits_for_100_is_told_to_go_on() {
    let stage = Stage::new();
    let mut client = stage.client();
    let body = r#"{"numberOfSamples":4,"timeInterval":"1ms"}"#;
    let length = body.len();
    let head = format!("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n");
    client.send(head);
    assert_eq!(client.head().status, 100);
    client.send(body);
    assert!(client.answer().text().contains("Ticks(4)"));
    client.send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99999\r\n\r\n");
    assert_eq!(client.answer().status, 413, "refused before it is sent");
}

#[test]
fn a_body_in_chunks_is_put_together() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in ["{\"numberOf", "Samples\":6,", "\"timeInterval\":\"1ms\"}"] {
        client.send(format!("{:x};a=b\r\n{piece}\r\n", piece.len()));
    }
    client.send(format!("0\r\nX: y\r\n\r\n{HEALTH}"));
    assert!(client.answer().text().contains("Ticks(6)"));
    assert_eq!(client.answer().text(), "OK\n");
}

/// Regression: in chunks it was refused, and the smaller limit named for it.
#[test]
fn a_body_with_the_addresses_of_a_whole_profile_may_have_a_megabyte() {
    let stage = Stage::new();
    let limit = 1024 * 1024;
    // Without the token there is no such route, once the body is read.
    for (length, status) in [(limit, 404), (limit + 1, 413)] {
        let body = " ".repeat(length);
        for (framing, body) in [
            (format!("Content-Length: {length}"), body.clone()),
            ("Transfer-Encoding: chunked".to_owned(), format!("{length:x}\r\n{body}\r\n0\r\n\r\n")),
        ] {
            let mut client = stage.client();
            client.send(format!("POST /x/symbolicate/v5 HTTP/1.1\r\n{framing}\r\n\r\n{body}"));
            let answer = client.answer();
            assert_eq!(answer.status, status, "{framing}: {}", answer.text());
            assert_eq!(answer.text().contains("longer than 1048576 bytes"), status == 413, "{framing}");
        }
    }
}

#[test]
fn a_client_that_sends_a_megabyte_before_it_reads_gets_its_refusal() {
    let stage = Stage::new();
    let body = vec![b' '; 1024 * 1024];
    let length = format!("Content-Length: {}", body.len());
    for framing in [length.as_str(), "Transfer-Encoding: chunked"] {
        let mut client = stage.client();
        client.send(format!("POST / HTTP/1.1\r\n{framing}\r\n\r\n"));
        client.send(if framing == length { "" } else { "100000\r\n" });
        client.send(&body);
        assert_eq!(client.answer().status, 413, "{framing}");
    }
    stage.check();
}

#[test]
fn clients_that_never_ask_cannot_keep_others_out() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let stage = Stage::with(limits);
    let mut held = Vec::new();
    for round in 0..40 {
        let mut mute = stage.client();
        // Nothing, half a head, or half a body: none of them is a request.
        mute.send(["", "GET /hea", "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"][round % 3]);
        held.push(mute);
        stage.check();
    }
}

/// Regression: 64 clients that kept their connections after an answer kept all others out.
#[test]
fn the_connection_that_is_idle_longest_makes_room() {
    let stage = Stage::with(Limits { connections: 4, ..Limits::default() });
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = stage.client();
        client.send(HEALTH);
        assert_eq!(client.answer().status, 200);
        clients.push(client);
    }
    assert_eq!(clients.remove(0).rest(), b"", "it was closed");
    for client in &mut clients {
        client.send(HEALTH);
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn one_connection_too_many_is_told_so_and_the_next_is_served() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let stage = Stage::with(limits);
    let mut clients: Vec<_> = (0..4).map(|_| stage.client()).collect();
    for client in &mut clients {
        client.send("GET /profile?title=silent HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    stage.player.wait_until_started(4);
    let mut more = stage.client();
    assert_eq!(more.answer().status, 503);
    drop(clients);
    // The server sees the four go before, or when, it sees the next one come.
    let mut served = false;
    let begin = std::time::Instant::now();
    while !served && begin.elapsed() < BOUND {
        let mut stream = UnixStream::connect(&stage.path).unwrap();
        let mut answer = String::new();
        let sent = stream.write_all(b"GET /health HTTP/1.0\r\n\r\n");
        let read = stream.read_to_string(&mut answer);
        served = sent.is_ok() && read.is_ok() && answer.ends_with("OK\n");
    }
    assert!(served);
}
