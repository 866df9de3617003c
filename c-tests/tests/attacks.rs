//! Hostile clients and files, against a real program: the program keeps running, and the agent
//! neither grows nor spins.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};
use swipr_c_tests::directory::Directory;
use swipr_c_tests::expectation::check;
use swipr_c_tests::host::{self, Agent, Host, Start, wait_until};
use swipr_c_tests::http;
use swipr_c_tests::program::compiled;

/// The folder of the agent's server thread in /proc.
fn server_thread(host: &Host) -> String {
    let tasks = format!("/proc/{}/task", host.pid());
    let mut found = None;
    wait_until("the server thread", || {
        let tasks = std::fs::read_dir(&tasks).expect("the program's threads");
        let folders = tasks.filter_map(|task| Some(task.ok()?.path().display().to_string()));
        found = folders.into_iter().find(|folder| {
            std::fs::read_to_string(format!("{folder}/comm")).is_ok_and(|name| name.trim() == "swipr-server")
        });
        found.is_some()
    });
    found.expect("just found")
}

/// Descriptors in the agent's own table.
fn descriptors(thread: &str) -> usize {
    std::fs::read_dir(format!("{thread}/fd")).map_or(0, Iterator::count)
}

fn resident_kib(host: &Host) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.pid())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).expect("a number")
}

/// Requests of all kinds; each connection is closed before the next.
fn storm(socket: &Path, connections: usize) {
    let requests: [&[u8]; 8] = [
        b"",
        b"GET /health HTTP/1.1\r\n\r\nGET /status HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\n{\"numberOfSamples\":1}",
        b"GET /nothing%0a%00 HTTP/1.1\r\n\r\n",
        b"GET /profile?threads=((((a{99}){99}){99}) HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n",
        b"GET /health HTTP/1.1\r\nHost:",
    ];
    for request in requests.iter().cycle().take(connections) {
        let mut stream = UnixStream::connect(socket).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a bound");
        // The server may have refused the connection already.
        let _ = stream.write_all(request);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

#[test]
fn ten_thousand_requests_leave_neither_memory_nor_descriptors_behind() {
    let (_directory, program) = compiled("closed_by_client");
    let host = Host::start(&program);
    let socket = host.socket();
    let thread = server_thread(&host);
    storm(&socket, 2_000);
    wait_until("the connections to go", || descriptors(&thread) < 20);
    let (memory, open) = (resident_kib(&host), descriptors(&thread));
    storm(&socket, 10_000);
    wait_until("the connections to go", || descriptors(&thread) <= open);
    let grown = resident_kib(&host).saturating_sub(memory);
    assert!(grown < 512, "{grown} KiB more than before");
    host.end();
}

#[test]
fn no_client_makes_the_server_spin() {
    let (_directory, program) = compiled("closed_by_client");
    let host = Host::start(&program);
    let socket = host.socket();
    let thread = server_thread(&host);
    let cpu_ns = || {
        let text = std::fs::read_to_string(format!("{thread}/schedstat")).expect("the thread's times");
        text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).expect("a number")
    };
    let begin = |request: &[u8]| {
        let mut stream = UnixStream::connect(&socket).expect("a connection");
        stream.write_all(request).expect("a request");
        stream
    };
    // A recording whose ticks are far apart: nothing is sent meanwhile.
    let quiet = b"GET /profile?seconds=60&interval=30s HTTP/1.1\r\n\r\n";
    let clients: [(&str, UnixStream); 8] = [
        ("says nothing", begin(b"")),
        ("sends half a head", begin(b"GET / HT")),
        ("sends half a body", begin(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{")),
        ("says nothing and closes its sending side", begin(b"GET /health HTTP/1.1\r\n")),
        ("records and closes its sending side", begin(quiet)),
        ("records and closes its receiving side", begin(quiet)),
        ("records and sends more", begin(quiet)),
        ("never reads", begin(b"GET /profile?seconds=60&hz=2000&format=raw&lines=1 HTTP/1.1\r\n\r\n")),
    ];
    for (what, client) in &clients {
        let mut client = client;
        let done = match *what {
            "records and closes its receiving side" => client.shutdown(Shutdown::Read),
            what if what.contains("closes") => client.shutdown(Shutdown::Write),
            "records and sends more" => client.set_nonblocking(true).and_then(|()| {
                let more = b"GET /health HTTP/1.1\r\n\r\n".repeat(1000);
                client.write(&more).map(|_| ())
            }),
            _ => Ok(()),
        };
        assert!(done.is_ok(), "{what}: {done:?}");
        let (began, before) = (Instant::now(), cpu_ns());
        std::thread::sleep(Duration::from_millis(200));
        let share = (cpu_ns() - before) as f64 / began.elapsed().as_nanos() as f64;
        // A server that spins uses all it can get; one that does not, some thousandths.
        assert!(share < 0.1, "{what}: the server used {share} of a CPU");
    }
    let recording = host.record("samples=500&hz=500");
    assert_eq!(check("thread burner has stack burner_main;work", &recording), Ok(()));
    drop(clients);
    host.end();
}

/// Regression: eight recordings that `go tool pprof` had started and given up kept all other
/// clients out for ten minutes. Those whose ticks are far apart kept their places in the sampler,
/// so that the next recording had no sample.
#[test]
fn recordings_that_were_given_up_leave_their_places() {
    let (_directory, program) = compiled("closed_by_client");
    let host = Host::start_with_variable(&program, "SWIPR_LISTEN", "127.0.0.1:0");
    let socket = host.socket();
    let address = http::tcp_address(&socket);
    let running = || {
        let answer = http::get(&socket, "/status").and_then(http::Answer::read_all).expect("the status");
        let status: serde_json::Value = serde_json::from_slice(&answer.body).expect("JSON");
        status["recordings"]["running"].as_u64().expect("a number")
    };
    for target in [
        "/debug/pprof/profile?seconds=600",
        "/debug/fgprof?seconds=600",
        "/flamegraph.html?seconds=600",
        "/profile?seconds=600&mode=cpu&threads=closed",
        "/profile?seconds=80000&interval=1h&format=folded",
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let clients: Vec<TcpStream> = (0..8)
            .map(|_| {
                let mut client = TcpStream::connect(&address).expect("a connection");
                client.write_all(request.as_bytes()).expect("sent");
                client
            })
            .collect();
        wait_until("eight recordings", || running() == 8);
        drop(clients);
        wait_until("their end", || running() == 0);
        let recording = host.record("samples=200&hz=200");
        assert_eq!(check("thread burner has stack burner_main;work", &recording), Ok(()), "{target}");
    }
    host.end();
}

#[test]
fn a_thousand_clients_at_once_do_not_keep_a_recording_from_its_client() {
    let (_directory, program) = compiled("closed_by_client");
    let mut host = Host::start(&program);
    let socket = host.socket();
    let thread = server_thread(&host);
    let open = descriptors(&thread);
    host.while_recorded("seconds=60&hz=200&format=perf", |_| {
        let clients: Vec<UnixStream> =
            (0..1000).map(|_| UnixStream::connect(&socket).expect("a connection")).collect();
        // All but the last 64 at most were sent away; the next is served all the same.
        let answer = http::get(&socket, "/health").expect("an answer");
        assert_eq!(answer.status, 200);
        drop(clients);
    });
    wait_until("the connections to go", || descriptors(&thread) <= open + 20);
    host.end();
}

/// Lines of perf's text are heads of samples, frames, remarks or empty; nothing else, whatever
/// names hold.
fn is_perf_line(line: &str) -> bool {
    let is_head = || {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.iter().any(|word| {
            word.split_once('/')
                .is_some_and(|(pid, tid)| pid.parse::<u32>().is_ok() && tid.parse::<u32>().is_ok())
        })
    };
    // Two blanks: where a frame's source is.
    line.is_empty() || line.starts_with("  ") || line.starts_with('\t') || line.starts_with('#') || is_head()
}

#[test]
fn hostile_files_and_names_are_no_danger_to_the_program_or_to_readers() {
    let (_directory, program) = compiled("hostile_files");
    let files = Directory::new();
    let mut host = Host::start_with(Start {
        program: &program,
        arguments: &[files.path().as_os_str()],
        agent: Agent::Loaded,
    });
    let socket = host.socket();
    for state in ["whole", "shrink", "grow"] {
        if state != "whole" {
            host.tell(state);
            host.wait_for(&format!("{state} done"));
        }
        for (target, is_json) in [
            ("/profile?samples=200&hz=1000&format=perf&lines=1", false),
            ("/profile?samples=200&hz=1000&format=folded", false),
            ("/profile?samples=200&hz=1000&format=raw", true),
            ("/profile?samples=200&hz=1000&format=pprof", false),
            ("/profile?samples=200&hz=1000&mode=cpu&format=perf&names=raw", false),
            ("/dump", false),
            ("/dump?format=json", true),
            ("/status", true),
        ] {
            let answer = http::get(&socket, target).and_then(http::Answer::read_all).expect(target);
            assert_eq!(answer.status, 200, "{target}, {state}");
            if target.contains("pprof") {
                assert!(answer.body.starts_with(&[0x1f, 0x8b]), "{target}, {state}: not gzip");
                continue;
            }
            let text = String::from_utf8(answer.body).expect("UTF-8");
            let escapes = text.chars().find(|&c| c.is_control() && c != '\n' && c != '\t');
            assert_eq!(escapes, None, "{target}, {state}: a control character");
            if is_json {
                // Line breaks stand between values only: each line is one, with its quotes in
                // pairs.
                let quotes = |line: &str| line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
                let odd = text
                    .lines()
                    .find(|line| !line.starts_with(['{', '}', '[', ']', ' ', '"']) || quotes(line) % 2 == 1);
                assert_eq!(odd, None, "{target}, {state}");
            } else if target.contains("perf") {
                let odd = text.lines().find(|line| !is_perf_line(line));
                assert_eq!(odd, None, "{target}, {state}");
            }
        }
    }
    // Of 200 samples a late sweep alone had enough, before it had seen all threads.
    let recording = host::record(&socket, "samples=2000&hz=1000&format=perf");
    assert_eq!(check("threads = 7", &recording), Ok(()));
    host.end();
}
