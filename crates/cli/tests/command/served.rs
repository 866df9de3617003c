//! `swipr proxy` and `swipr view`.

use crate::support::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use swipr_c_tests::directory::Directory;

/// A command that serves until it is dropped, and the first line that it said.
struct Serving(Child, String);

impl Serving {
    fn start(arguments: &[&str]) -> Serving {
        let mut child = swipr(arguments).stdout(Stdio::piped()).spawn().expect("the command");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        Serving(child, line.trim_end().to_owned())
    }

    /// What stands behind `http://`, up to a blank, slash or comma.
    fn address(&self) -> String {
        let (_, rest) = self.1.split_once("http://").expect(&self.1);
        rest.split([' ', '/', ',']).next().expect("an address").to_owned()
    }
}

impl Serving {
    /// Of `view`: where the profile is, and the symbol server, without `http://`.
    fn viewed(&self) -> (String, String) {
        let rest = self.1.strip_prefix("https://profiler.firefox.com/from-url/").expect(&self.1);
        let plain = rest.replace("%3A", ":").replace("%2F", "/").replace("%2E", ".");
        let (profile, server) = plain.split_once("?symbolServer=").expect(&plain);
        let place = |url: &str| url.strip_prefix("http://").expect(url).to_owned();
        (place(profile), place(server))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An answer's head and body.
fn ask(address: &str, head: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(head.as_bytes()).expect("written");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end + 4..].to_vec())
}

#[test]
fn by_the_proxy_go_tool_pprof_records_a_process() {
    let host = running_burner();
    let proxy = Serving::start(&["proxy", &host.pid().to_string()]);
    let address = proxy.address();
    let (head, body) = ask(&address, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && body == b"OK\n", "{head}");
    // Regression: Go's tools got an error of a program that is idle.
    let idle = format!("/debug/pprof/profile?seconds=1&tid={}", host.pid()); // its first thread waits
    let (head, _) = ask(&address, &format!("GET {idle} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("samples=0"), "{head}");
    let directory = Directory::new();
    let top = std::process::Command::new("go")
        .args(["tool", "pprof", "-top", &format!("http://{address}/debug/pprof/profile?seconds=1")])
        .env("HOME", directory.path())
        .output();
    match top {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains("burner_main"), "{output:?}");
        }
        other => eprintln!("not checked with go itself: {other:?}"),
    }
    host.end();
}

#[test]
fn the_proxy_refuses_web_pages_and_names_that_were_rebound() {
    let host = running_burner();
    let proxy = Serving::start(&["proxy", &host.pid().to_string()]);
    for fields in [
        "Host: evil.example",
        "Host: localhost\r\nOrigin: http://evil.example",
        "Host: localhost\r\nSec-Fetch-Site: cross-site",
        "Host: localhost\r\nAccept: image/webp,*/*",
    ] {
        let (head, _) = ask(&proxy.address(), &format!("GET /status HTTP/1.1\r\n{fields}\r\n\r\n"));
        assert!(head.starts_with("HTTP/1.1 403"), "{fields}: {head}");
    }
    host.end();
}

#[test]
fn a_recording_by_the_proxy_ends_with_its_client() {
    let host = running_burner();
    let proxy = Serving::start(&["proxy", &host.pid().to_string()]);
    let mut client = TcpStream::connect(proxy.address()).expect("connected");
    client.write_all(b"GET /profile?seconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("written");
    let mut some = [0; 100];
    client.read_exact(&mut some).expect("an answer");
    drop(client);
    swipr_c_tests::host::wait_until("the recording's end", || {
        let said = says(["ls", "--json"]).well();
        let rows: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
        let own = rows.as_array().and_then(|rows| rows.iter().find(|row| row["pid"] == host.pid()));
        own.is_some_and(|row| row["recordings"] == 0)
    });
    host.end();
}

#[test]
fn a_recording_is_shown_to_the_viewer_only() {
    let directory = Directory::new();
    let file = directory.path().join("a.folded");
    std::fs::write(&file, "main;work 5\nmain;rest 7\n").expect("a file");
    let view = Serving::start(&["view", &file.display().to_string(), "--no-open"]);
    let (url, _) = view.viewed();
    let (address, path) = url.split_once('/').expect(&url);
    let (head, body) = ask(address, &format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    assert!(head.contains("Access-Control-Allow-Origin: https://profiler.firefox.com"), "{head}");
    let text = String::from_utf8_lossy(&body).into_owned();
    assert!(text.contains("work") && text.contains("rest"), "{text}");
    let (head, _) = ask(address, &format!("OPTIONS /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 204") && head.contains("Private-Network: true"), "{head}");
    for request in [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        format!("GET /0{path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        format!("GET /{path} HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
    ] {
        let (head, body) = ask(address, &request);
        assert!(head.starts_with("HTTP/1.1 404") && body.is_empty(), "{request}: {head}");
    }
}

#[test]
fn the_viewer_is_told_names_and_sources_of_the_recording_and_no_other_file() {
    let directory = Directory::new();
    let host = running_burner();
    let file = directory.path().join("a.jsonl").display().to_string();
    says(["record", &host.pid().to_string(), "-d", "300ms", "-o", &file]).well();
    host.end();
    let view = Serving::start(&["view", &file, "--no-open"]);
    let (profile, server) = view.viewed();
    let (address, path) = profile.split_once('/').expect(&profile);
    let (_, profile) = ask(address, &format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n"));
    let profile: serde_json::Value = serde_json::from_slice(&profile).expect("JSON");
    let libraries = profile["libs"].as_array().expect("libraries");
    let own = burner().executable.file_name().expect("a name").to_string_lossy().into_owned();
    let library = libraries.iter().find(|library| library["debugName"] == *own).expect("the program");
    let question = |path: &str, question: serde_json::Value| {
        let (_, base) = server.split_once('/').expect(&server);
        let (length, body) = (question.to_string().len(), question.to_string());
        let head = format!(
            "POST /{base}{path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let (head, body) = ask(address, &head);
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        serde_json::from_slice::<serde_json::Value>(&body).expect("JSON")
    };
    let (name, id) = (&library["debugName"], &library["breakpadId"]);
    // An address that some frame of it has.
    let raw = read(std::path::Path::new(&file));
    let lines: Vec<serde_json::Value> =
        raw.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let frames = lines.iter().filter_map(|line| line["frames"].as_array()).flatten();
    let burn = frames.into_iter().find(|frame| frame["functions"][0]["name"] == "burn").expect("burn");
    let module = lines.iter().find(|line| line["type"] == "module" && line["id"] == burn["module"]);
    let number = |value: &serde_json::Value| {
        u64::from_str_radix(value.as_str().expect("text").trim_start_matches("0x"), 16).expect("a number")
    };
    let module = module.expect("its module");
    let offset = number(&burn["address"]) - number(&module["start"]) + number(&module["file_offset"]);
    let job = serde_json::json!({ "memoryMap": [[name, id]], "stacks": [[[0, offset]]] });
    let answer = question("/symbolicate/v5", serde_json::json!({ "jobs": [job] }));
    let frame = &answer["results"][0]["stacks"][0][0];
    assert_eq!(frame["function"], "burn", "{answer}");
    let source = |file: &serde_json::Value| {
        let at = format!("{offset:#x}");
        question(
            "/source/v1",
            serde_json::json!({ "debugName": name, "debugId": id, "moduleOffset": at, "file": file }),
        )
    };
    let text = source(&frame["file"]);
    assert!(text["source"].as_str().is_some_and(|text| text.contains("burner_main")), "{text}");
    assert!(source(&"/etc/passwd".into())["error"].is_string());
}
