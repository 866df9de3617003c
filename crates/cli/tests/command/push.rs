//! `swipr push`, with stores that write down what they get.

mod busy_agent;

use crate::otlp;
use crate::support::*;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use swipr_properties::readers::pprof::{self, Profile};

/// What a store was sent.
pub struct Request {
    first_line: String,
    fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    fn field(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// A store that answers with these, the last one again and again; and what it was sent. An empty
/// answer never comes.
pub fn store(answers: &'static [&'static str]) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        let mut answers = answers.iter().chain(std::iter::repeat(answers.last().expect("an answer")));
        let mut unanswered = Vec::new();
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let line = |reader: &mut BufReader<_>| {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                line.trim_end().to_owned()
            };
            let first_line = line(&mut reader);
            let mut fields = Vec::new();
            loop {
                let line = line(&mut reader);
                let Some((name, value)) = line.split_once(':') else { break };
                fields.push((name.to_owned(), value.trim().to_owned()));
            }
            let mut request = Request { first_line, fields, body: Vec::new() };
            let length: u64 = request.field("content-length").parse().expect("a length");
            reader.by_ref().take(length).read_to_end(&mut request.body).expect("a body");
            let answer = answers.next().expect("an answer");
            // Before the answer, with which the command may end.
            if sender.send(request).is_err() {
                return;
            }
            if answer.is_empty() {
                unanswered.push(reader);
                continue;
            }
            let _ = write!(reader.get_mut(), "HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
        }
    });
    (address, requests)
}

const TIMEOUT: Duration = Duration::from_secs(60);

/// Pushes one profile and returns what came, and the process's id.
fn pushed(protocol: &str, more: &[&str]) -> (Request, u32) {
    let (url, requests) = store(&["200 OK"]);
    let host = running_burner();
    let pid = host.pid().to_string();
    let arguments =
        ["push", &pid, "--url", &url, "--protocol", protocol, "--service", "shop", "--count", "1", "-d", "1"];
    let said = says(arguments.iter().chain(more)).well();
    assert!(said.errors.contains("sent 1 profiles, refused 0, dropped 0"), "{said:?}");
    let pid = host.pid();
    host.end();
    (requests.recv_timeout(TIMEOUT).expect("a request"), pid)
}

fn has_burner(profile: &Profile) {
    assert!(profile.string_table.iter().any(|text| text == "burner_main"), "{:?}", profile.string_table);
    assert!(!profile.sample.is_empty());
}

#[test]
fn pyroscopes_ingest_gets_a_form_with_a_profile_its_series_and_its_time() {
    let (request, _) = pushed("pyroscope", &["--label", "region=eu west", "--header", "X-Scope-OrgID: 7"]);
    let target =
        request.first_line.strip_prefix("POST /ingest?").and_then(|rest| rest.strip_suffix(" HTTP/1.1"));
    let query: Vec<(&str, &str)> =
        target.expect(&request.first_line).split('&').filter_map(|pair| pair.split_once('=')).collect();
    let of = |name: &str| query.iter().find(|(key, _)| *key == name).expect(name).1;
    assert_eq!(of("name"), "shop%7Bregion%3Deu%20west%7D");
    assert_eq!((of("format"), of("spyName"), of("sampleRate")), ("pprof", "swipr", "100"));
    let (from, until): (u64, u64) =
        (of("from").parse().expect("seconds"), of("until").parse().expect("seconds"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
    assert!(from < until && until <= now + 1 && now - from < 60, "{from} {until} {now}");
    assert_eq!(request.field("x-scope-orgid"), "7");
    let boundary =
        request.field("content-type").strip_prefix("multipart/form-data; boundary=").expect("a form");
    let parts: Vec<&[u8]> = split(&request.body, format!("--{boundary}").as_bytes());
    assert_eq!((parts.len(), parts[0], parts[3]), (4, &b""[..], &b"--\r\n"[..]));
    let part = |index: usize| {
        let split = split(parts[index], b"\r\n\r\n");
        let head = String::from_utf8(split[0].to_vec()).expect("text");
        let body = &parts[index][split[0].len() + 4..parts[index].len() - 2];
        (head, body.to_vec())
    };
    let (head, profile) = part(1);
    assert!(head.contains("name=\"profile\"; filename=\"profile.pprof\""), "{head}");
    has_burner(&pprof::decode(&profile));
    let (head, config) = part(2);
    assert!(head.contains("name=\"sample_type_config\""), "{head}");
    let config: serde_json::Value = serde_json::from_slice(&config).expect("JSON");
    assert_eq!(
        (&config["cpu"]["units"], &config["cpu"]["aggregation"]),
        (&"nanoseconds".into(), &"sum".into())
    );
}

fn split<'a>(bytes: &'a [u8], by: &[u8]) -> Vec<&'a [u8]> {
    let (mut parts, mut rest) = (Vec::new(), bytes);
    while let Some(at) = rest.windows(by.len()).position(|window| window == by) {
        parts.push(&rest[..at]);
        rest = &rest[at + by.len()..];
    }
    parts.push(rest);
    parts
}

#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Pair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
}

#[test]
fn pyroscopes_push_api_gets_a_series_with_labels_and_a_profile() {
    for (more, name) in
        [(&["--label", "region=eu"][..], "process_cpu"), (&["--label", "region=eu", "--idle"], "wall")]
    {
        let (request, _) = pushed("pyroscope-push", more);
        assert_eq!(request.first_line, "POST /push.v1.PusherService/Push HTTP/1.1");
        assert_eq!(
            (request.field("content-type"), request.field("connect-protocol-version")),
            ("application/proto", "1")
        );
        let message = PushRequest::decode(request.body.as_slice()).expect("a message");
        let [series] = message.series.as_slice() else { panic!("{} series", message.series.len()) };
        let labels: Vec<(&str, &str)> =
            series.labels.iter().map(|label| (label.name.as_str(), label.value.as_str())).collect();
        assert_eq!(labels, [("__name__", name), ("service_name", "shop"), ("region", "eu")]);
        let [sample] = series.samples.as_slice() else { panic!("{} samples", series.samples.len()) };
        assert_eq!((sample.id.len(), sample.id.as_bytes()[14]), (36, b'4'), "{}", sample.id);
        has_burner(&pprof::decode(&sample.raw_profile));
    }
}

#[test]
fn a_collector_gets_an_otlp_profile_whose_every_index_is_right() {
    let (request, pid) = pushed("otlp", &["--idle", "--label", "deployment.environment.name=test"]);
    assert_eq!(request.first_line, "POST /v1development/profiles HTTP/1.1");
    assert_eq!(request.field("content-type"), "application/x-protobuf");
    let message = otlp::Request::decode(request.body.as_slice()).expect("a message");
    otlp::check(&message);
    let resource = &message.resource_profiles[0];
    let attribute = |key: &str| {
        let all = &resource.resource.as_ref().expect("a resource").attributes;
        let found = all.iter().find(|pair| pair.key == key).unwrap_or_else(|| panic!("no {key}"));
        found.value.clone().expect("a value")
    };
    assert_eq!(attribute("service.name").string_value.as_deref(), Some("shop"));
    assert_eq!(attribute("deployment.environment.name").string_value.as_deref(), Some("test"));
    assert_eq!(attribute("process.pid").int_value, Some(i64::from(pid)));
    let scope = &resource.scope_profiles[0];
    assert_eq!(scope.scope.as_ref().expect("a scope").name, "swipr");
    let profile = &scope.profiles[0];
    let text =
        |place: i32| message.dictionary.as_ref().expect("tables").string_table[place as usize].as_str();
    let kind = profile.sample_type.as_ref().expect("a type");
    assert_eq!((text(kind.type_strindex), text(kind.unit_strindex)), ("wall", "nanoseconds"));
    assert_eq!((profile.period, profile.profile_id.len()), (10_000_000, 16));
    assert!(profile.duration_nano >= 900_000_000 && profile.time_unix_nano > 1_600_000_000_000_000_000);
    let stacks = otlp::stacks(&message);
    let burns = |stack: &otlp::Sampled| {
        stack.thread == "burner" && stack.functions.windows(2).any(|pair| pair == ["first", "burner_main"])
    };
    assert!(stacks.iter().any(|stack| burns(stack) && stack.ns > 100_000_000), "{stacks:?}");
    assert!(stacks.iter().any(|stack| stack.state == "blocked"), "{stacks:?}");
}

#[test]
fn what_a_store_cannot_take_now_is_sent_again_and_what_it_refuses_is_not() {
    let (url, requests) = store(&["503 Busy\r\nRetry-After: 0", "429 Slow\r\nRetry-After: 0", "200 OK"]);
    let host = running_burner();
    let pid = host.pid().to_string();
    let push = |url: &str, more: &[&str]| {
        let arguments = ["push", &pid, "--url", url, "-d", "300ms", "--count", "1"];
        says(arguments.iter().chain(more))
    };
    let said = push(&url, &[]).well();
    assert!(
        said.errors.contains(": it answered 503\nnext: ") && said.errors.contains("sent 1 profiles"),
        "{said:?}"
    );
    let bodies: Vec<Vec<u8>> = requests.try_iter().map(|request| request.body).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]), "{} requests", bodies.len());
    let (url, requests) = store(&["400 No"]);
    push(&url, &[]).refuses(1, &["refuses a profile: 400", "no profile was delivered"]);
    assert_eq!(requests.try_iter().count(), 1);
    host.end();
}

/// After the first message that nobody read, profiles were recorded and none was sent.
#[test]
fn messages_that_cannot_be_written_do_not_end_the_delivery() {
    let (url, requests) = store(&["400 No", "200 OK"]);
    let host = running_burner();
    let pid = host.pid().to_string();
    let mut push = swipr(["push", &pid, "--url", &url, "-d", "300ms", "--count", "2"]);
    said(push.stderr(full_device())).well();
    assert_eq!(requests.try_iter().count(), 2);
    host.end();
}

#[test]
fn profiles_that_find_no_room_are_counted_and_the_newest_are_kept() {
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a socket").local_addr().expect("an address");
    let host = running_burner();
    let pid = host.pid().to_string();
    let url = format!("http://{nobody}");
    let said = says(["push", &pid, "--url", &url, "-d", "200ms", "--count", "4", "--queue", "1"]);
    said.refuses(1, &["cannot deliver to", "no profile was delivered"]);
    assert!(!said.errors.contains("dropped 0"), "{said:?}");
    host.end();
}

/// With a store that did not answer at the end, the totals were 0 and the command had failed. What
/// waited was in none of them.
#[test]
fn at_the_end_what_is_not_delivered_is_counted_as_dropped() {
    let (url, requests) = store(&["200 OK", ""]);
    let host = running_burner();
    let mut command = swipr(["push", &host.pid().to_string(), "--url", &url, "-d", "200ms"]);
    let child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn();
    let child = child.expect("the command");
    for _ in 0..2 {
        requests.recv_timeout(TIMEOUT).expect("a request");
    }
    // SAFETY: kill(2) takes values.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let said = Said::of(child.wait_with_output().expect("its end")).well();
    assert!(said.errors.contains("sent 1 profiles, refused 0, dropped "), "{said:?}");
    assert!(!said.errors.contains("dropped 0"), "{said:?}");
    host.end();
}

#[test]
fn profiles_go_on_until_the_process_ends() {
    let (url, requests) = store(&["200 OK"]);
    let mut host = running_burner();
    let mut command = swipr(["push", &host.pid().to_string(), "--url", &url, "-d", "200ms"]);
    let child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn();
    let child = child.expect("the command");
    for _ in 0..3 {
        requests.recv_timeout(TIMEOUT).expect("a request");
    }
    assert!(host.ended().success());
    Said::of(child.wait_with_output().expect("its end")).well();
}

#[test]
fn where_it_cannot_send_to_is_told() {
    let host = running_burner();
    let pid = host.pid().to_string();
    let mut without_curl = swipr(["push", &pid, "--url", "https://localhost"]);
    said(without_curl.env("PATH", "/nonexistent")).refuses(2, &["TLS", "install curl", "Alloy"]);
    // Of these only the first was refused; the others were tried for ever.
    for url in ["ftp://localhost", "http://user:secret@localhost", "http://localhost:http", "http://::1"] {
        says(["push", &pid, "--url", url, "-d", "100ms", "--count", "1"]).refuses(2, &[url, "--header"]);
    }
    // Of these one label became two, and the store named another service.
    for wrong in [["--label", "region=eu,zone=b"], ["--service", "shop{}"]] {
        let arguments = ["push", &pid, "--url", "http://localhost"];
        says(arguments.iter().chain(&wrong)).refuses(2, &["a comma", "next: --protocol pyroscope-push"]);
    }
    for wrong in [&["--label", "x"][..], &["--protocol", "ftp"], &["--queue", "0"]] {
        let arguments = ["push", &pid, "--url", "http://localhost"];
        assert_eq!(says(arguments.iter().chain(wrong)).status, Some(2), "{wrong:?}");
    }
    host.end();
}

/// Answers one POST with what it got, and writes that into files.
const SECURE_STORE: &str = r#"
import http.server, ssl, sys
class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        open("request", "w").write(self.requestline + "\n" + str(self.headers))
        open("body", "wb").write(body)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"2\r\nok\r\n0\r\n\r\n")
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Store)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
while True:
    server.handle_request()
"#;

#[test]
fn a_store_behind_tls_is_reached_by_curl_if_its_certificate_is_right() {
    let directory = swipr_c_tests::directory::Directory::new();
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(directory.path())
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("not run: there is no openssl");
        return;
    }
    let mut python = std::process::Command::new("python3");
    python.args(["-c", SECURE_STORE]).current_dir(directory.path());
    let mut server = python.stdout(std::process::Stdio::piped()).spawn().expect("python3");
    let mut port = String::new();
    BufReader::new(server.stdout.take().expect("a pipe")).read_line(&mut port).expect("a line");
    let host = running_burner();
    let pid = host.pid().to_string();
    let url = format!("https://127.0.0.1:{}", port.trim());
    let push = |bundle: &str| {
        let arguments =
            ["push", &pid, "--url", &url, "-d", "300ms", "--count", "1", "--header", "X-Secret: a\"b\\c"];
        said(swipr(arguments).env("CURL_CA_BUNDLE", directory.path().join(bundle)))
    };
    let known = push("cert.pem");
    std::fs::write(directory.path().join("empty.pem"), "").expect("a file");
    let unknown = push("empty.pem");
    let _ = server.kill();
    let _ = server.wait();
    assert!(known.well().errors.contains("sent 1 profiles"));
    unknown.refuses(1, &["cannot deliver to https://127.0.0.1", "curl: (77)"]);
    let request = read(&directory.path().join("request"));
    assert!(request.starts_with("POST /ingest?name="), "{request}");
    assert!(request.contains("X-Secret: a\"b\\c") && !request.contains("Expect"), "{request}");
    let body = std::fs::read(directory.path().join("body")).expect("the body");
    assert!(body.windows(14).any(|part| part == b"profile.pprof\""), "{} bytes", body.len());
    host.end();
}
