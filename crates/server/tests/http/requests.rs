//! Requests and their answers, as tables.

use super::support::{Answer, Stage};

/// Status and a part of the text that each target's answer has.
fn check_gets(table: &[(&str, u16, &str)]) {
    let stage = Stage::new();
    for (target, status, part) in table {
        let answer = stage.get(target);
        let text = answer.text();
        assert_eq!(answer.status, *status, "{target}: {text}");
        assert!(text.contains(part), "{target}: {text}");
        assert!(answer.complete, "{target}");
    }
    stage.check();
}

#[test]
fn right_queries_are_understood() {
    check_gets(&[
        ("/", 200, "curl -sS --unix-socket /"),
        ("/", 200, "GET  /profile"),
        ("http://swipr/", 200, "routes"),
        ("/health", 200, "OK\n"),
        ("/%68ealth", 200, "OK\n"),
        ("/health?", 200, "OK\n"),
        ("/health?token=whatever", 200, "OK\n"),
        ("/status", 200, "{\"state\":\"asleep\"}"),
        ("/metrics", 200, "asleep 1\n"),
        ("/profile", 200, "interval=10ms length=Time(30s) mode=Wall format=perf threads=None symbolize=Now"),
        ("/profile?seconds=1.5", 200, "length=Time(1.5s)"),
        ("/profile?samples=7", 200, "length=Ticks(7)"),
        ("/profile?hz=1000", 200, "interval=1ms"),
        ("/profile?rate=50", 200, "interval=20ms"),
        ("/profile?hz=0.5", 200, "interval=2s"),
        ("/profile?interval=250us", 200, "interval=250\u{b5}s"),
        ("/profile?interval=1h", 200, "interval=3600s"),
        ("/profile?mode=cpu", 200, "mode=Cpu"),
        ("/profile?mode=WALL", 200, "mode=Wall"),
        ("/profile?format=folded", 200, "format=folded"),
        ("/profile?format=pprofSymbolized", 200, "format=pprof"),
        ("/profile?threads=%5Ework.*", 200, "threads=Some(\"^work.*\")"),
        ("/profile?names=mangled", 200, "names: Mangled"),
        ("/profile?lines=1&inline=false", 200, "lines: true, inline: false"),
        ("/profile?max_depth=64", 200, "max_depth: Some(64)"),
        ("/profile?title=a+b%20c", 200, "title: Some(\"a b c\")"),
        ("/profile?merge_threads=true", 200, "merge_threads: true"),
        ("/profile?weight=ns", 200, "weight: Some(Nanoseconds)"),
        ("/profile", 200, "source=Timer"),
        ("/profile?source=preempt", 200, "source=Preempt"),
        ("/profile?symbolizer=fake", 200, "symbolize=Never"),
        ("/profile?symbolize=lazy", 200, "symbolize=Lazy"),
        ("/profile?compat=true", 200, "compat: true"),
        ("/dump", 200, "length=Ticks(1) mode=Wall format=dump"),
        ("/dump?format=json&threads=x", 200, "format=json threads=Some(\"x\")"),
    ]);
}

#[test]
fn wrong_queries_are_told_what_is_wrong() {
    check_gets(&[
        ("/nothing", 404, "there is no /nothing here"),
        ("/nothing", 404, "/profile"),
        ("/profile/", 404, "there is no"),
        ("/%ff", 400, "UTF-8"),
        ("/%", 400, "percent-encoded"),
        ("/health?x=1", 400, "\"x\" is not a parameter of /health"),
        ("/profile?second=1", 400, "\"second\" is not a parameter"),
        ("/profile?second=1", 400, "example: curl"),
        ("/profile?frames=all", 400, "\"all\" is not one of merged, interpreter, native"),
        ("/last?frames=native", 400, "frames: what /last keeps is merged"),
        ("/profile?seconds", 400, "seconds: \"\" is not a number"),
        ("/profile?seconds=0", 400, "more than 0 and at most 86400"),
        ("/profile?seconds=-1", 400, "out of range"),
        ("/profile?seconds=86401", 400, "86400"),
        ("/profile?seconds=NaN", 400, "not a number"),
        ("/profile?seconds=1e9", 400, "not a number"),
        ("/profile?seconds=99999999999999999999999999999999999999999", 400, "out of range"),
        ("/profile?seconds=1&seconds=2", 400, "twice"),
        ("/profile?seconds=1&samples=2", 400, "only one can hold"),
        ("/profile?samples=0", 400, "1 to 10000000"),
        ("/profile?samples=10000001", 400, "1 to 10000000"),
        ("/profile?samples=-5", 400, "out of range"),
        ("/profile?samples=1.5", 400, "whole number"),
        ("/profile?samples=1000000&interval=1h", 400, "longer than 24 h"),
        ("/profile?hz=0", 400, "0.0003 to 10000"),
        ("/profile?rate=0", 400, "0.0003 to 10000"),
        ("/profile?hz=10001", 400, "0.0003 to 10000"),
        ("/profile?hz=-100", 400, "out of range"),
        ("/profile?hz=inf", 400, "not a number"),
        ("/profile?hz=10&interval=1ms", 400, "another name"),
        ("/profile?interval=-1ms", 400, "100 us to 1 h"),
        ("/profile?interval=2h", 400, "100 us to 1 h"),
        ("/profile?interval=99us", 400, "100 us to 1 h"),
        ("/profile?interval=soon", 400, "is not a time"),
        ("/profile?mode=both", 400, "wall, cpu"),
        ("/profile?source=perf", 400, "timer, preempt"),
        ("/profile?format=gif", 400, "perf, folded"),
        ("/profile?threads=(", 400, "regular expression"),
        ("/profile?threads=(((a{1000}){1000}){1000})", 400, "regular expression"),
        ("/profile?threads=%ff", 400, "UTF-8"),
        ("/profile?names=short", 400, "safe, raw, mangled"),
        ("/profile?lines=maybe", 400, "true, false"),
        ("/profile?max_depth=1", 400, "2 to"),
        ("/profile?title=a%0ab", 400, "control characters"),
        ("/profile?id=a+b", 400, "1 to 64 letters"),
        ("/profile?id=", 400, "1 to 64 letters"),
        ("/dump?format=pprof", 400, "dump, json"),
        ("/dump?seconds=1", 400, "not a parameter of /dump"),
    ]);
}

#[test]
fn what_the_recorder_says_becomes_a_status() {
    check_gets(&[
        ("/profile?title=too+many", 429, "8 recordings"),
        ("/profile?title=stopping", 503, "stopping"),
        ("/profile?title=refused", 500, "no threads left"),
        ("/profile?title=fail", 500, "the clock stood still"),
        ("/profile?title=vanish", 500, "without a result"),
        ("/profile?title=nothing", 422, "threads=0 ticks=3 samples=0"),
        ("/profile?title=nothing&mode=cpu", 422, "mode=wall"),
        ("/profile?title=nothing&threads=zz", 422, "threads=zz"),
        ("/profile?title=no+sample&format=pprof", 422, "nothing to see"),
    ]);
    let stage = Stage::new();
    let answer = stage.get("/profile?title=too+many");
    assert_eq!(answer.header("Retry-After"), Some("5"));
    let answer = stage.get("/profile?title=fail+later");
    assert_eq!((answer.status, answer.complete), (200, false), "cut, not ended");
    assert_eq!(answer.trailers, "X-Swipr-Error: and then not\r\n");
    stage.check();
}

#[test]
fn a_regular_expression_nested_deeply_is_refused() {
    let stage = Stage::new();
    for (open, close) in [("(", ")"), ("(?:a", "|b)*"), ("[", "]")] {
        let regex = open.repeat(130) + &close.repeat(130);
        let answer = stage.get(&format!("/profile?threads={}", regex.replace('|', "%7C")));
        assert_eq!(answer.status, 400, "{regex}: {}", answer.text());
    }
    stage.check();
}

fn post(stage: &Stage, path: &str, body: &[u8]) -> Answer {
    let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    stage.ask([head.as_bytes(), body].concat())
}

#[test]
fn right_json_is_understood() {
    let stage = Stage::new();
    for (body, part) in [
        (
            r#"{"numberOfSamples":100,"timeInterval":"10 ms","format":"perfSymbolized","symbolizer":"native"}"#,
            "interval=10ms length=Ticks(100) mode=Wall format=perf threads=None symbolize=Now",
        ),
        (r#"{"numberOfSamples":1,"timeInterval":"1s"}"#, "interval=1s length=Ticks(1)"),
        (r#"{"numberOfSamples":1,"timeInterval":" 2 MIN "}"#, "interval=120s"),
        (r#"{"numberOfSamples":1,"timeInterval":"20"}"#, "interval=20ms"),
        (r#"{"numberOfSamples":1,"timeInterval":20}"#, "interval=20ms"),
        (r#"{"numberOfSamples":1,"timeInterval":0.25}"#, "interval=250µs"),
        (r#"{"numberOfSamples":1,"timeInterval":"500 µs"}"#, "interval=500µs"),
        (r#"{"numberOfSamples":1e2,"timeInterval":"1ms"}"#, "length=Ticks(100)"),
        (r#"{"durationMs":1500,"timeInterval":"1ms"}"#, "length=Time(1.5s)"),
        (r#"{"numberOfSamples":1,"timeInterval":"1ms","format":"pprofSymbolized"}"#, "format=pprof"),
        (
            r#"{"numberOfSamples":1,"timeInterval":"1ms","format":"flamegraphCollapsedSymbolized"}"#,
            "format=folded",
        ),
        (
            r#"{"numberOfSamples":1,"timeInterval":"1ms","format":"raw","symbolizer":"fake"}"#,
            "format=raw threads=None symbolize=Never",
        ),
        (
            r#"{"numberOfSamples":1,"timeInterval":"1ms","mode":"cpu","threads":"^a","mergeThreads":true,"lines":true,"compat":true,"format":null}"#,
            "mode=Cpu format=perf threads=Some(\"^a\")",
        ),
    ] {
        for path in ["/", "/sample", "/samples"] {
            let answer = post(&stage, path, body.as_bytes());
            assert_eq!(answer.status, 200, "{body}: {}", answer.text());
            assert!(answer.text().contains(part), "{body}: {}", answer.text());
        }
    }
    stage.check();
}

/// Its recipe for Pyroscope came out 10^8 too large: what sums up its text took periods of
/// nanoseconds for counts.
#[test]
fn swift_profile_recorders_request_is_answered_without_periods() {
    let stage = Stage::new();
    for (more, compat) in [
        ("", true),
        (r#","format":"perfSymbolized","mode":"wall""#, true),
        (r#","compat":false"#, false),
        // Its users know no CPU mode: samples of CPU time weigh what they represent.
        (r#","mode":"cpu""#, false),
        (r#","mode":"cpu","compat":true"#, true),
    ] {
        let body = format!(r#"{{"numberOfSamples":1,"timeInterval":"1ms"{more}}}"#);
        for path in ["/", "/sample", "/samples"] {
            let answer = post(&stage, path, body.as_bytes());
            assert!(answer.text().contains(&format!("compat: {compat}")), "{body}: {}", answer.text());
        }
    }
    assert!(stage.get("/profile").text().contains("compat: false"));
    stage.check();
}

#[test]
fn wrong_json_is_told_the_field_and_an_example() {
    let stage = Stage::new();
    let deep = "[".repeat(60_000);
    let deep_object = format!("{{\"numberOfSamples\":{}", "{\"a\":".repeat(10_000));
    let brackets = "[{\\\"".repeat(100);
    let brackets_in_a_string =
        format!("{{\"numberOfSamples\":1,\"timeInterval\":\"1ms\",\"format\":\"{brackets}\"}}");
    for (body, part) in [
        ("", "empty"),
        ("  \n ", "empty"),
        ("hello", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not an object"),
        ("7", "not an object"),
        ("{}", "\"numberOfSamples\" is missing"),
        (r#"{"timeInterval":"1ms"}"#, "\"numberOfSamples\" is missing"),
        (r#"{"numberOfSamples":1}"#, "\"timeInterval\" is missing"),
        (r#"{"numberOfSamples":null,"timeInterval":"1ms"}"#, "\"numberOfSamples\" is missing"),
        (r#"{"numberOfSamples":1,"numberOfSamples":2,"timeInterval":"1ms"}"#, "a field is given twice"),
        (r#"{"numberOfSamples":0,"timeInterval":"1ms"}"#, "1 to 10000000"),
        (r#"{"numberOfSamples":-1,"timeInterval":"1ms"}"#, "\"numberOfSamples\": "),
        (r#"{"numberOfSamples":1e300,"timeInterval":"1ms"}"#, "1 to 10000000"),
        (r#"{"numberOfSamples":1e999,"timeInterval":"1ms"}"#, "not JSON"),
        (r#"{"numberOfSamples":"1","timeInterval":"1ms"}"#, "is not a number"),
        (r#"{"numberOfSamples":[1],"timeInterval":"1ms"}"#, "a list is not a number"),
        (r#"{"numberOfSamples":1,"timeInterval":"-1 ms"}"#, "100 us to 1 h"),
        (r#"{"numberOfSamples":1,"timeInterval":"2 h"}"#, "100 us to 1 h"),
        (r#"{"numberOfSamples":1000000,"timeInterval":"1 h"}"#, "longer than 24 h"),
        (r#"{"numberOfSamples":1,"timeInterval":-5}"#, "100 us to 1 h"),
        (r#"{"numberOfSamples":1,"timeInterval":true}"#, "\"timeInterval\": true is not a time"),
        (r#"{"numberOfSamples":1,"timeInterval":"1ms","format":"gif"}"#, "\"format\": "),
        (r#"{"numberOfSamples":1,"timeInterval":"1ms","symbolizer":"x"}"#, "native, lazy, fake"),
        (r#"{"numberOfSamples":1,"timeInterval":"1ms","lines":"yes"}"#, "not true or false"),
        (r#"{"numberOfSamples":1,"timeInterval":"1ms","threads":"("}"#, "regular expression"),
        (r#"{"numberOfSamples":1,"timeInterval":"1ms","extra":1}"#, "\"extra\" is not a field"),
        (r#"{"numberOfSamples":1,"timeInterval":"1ms","durationMs":5}"#, "only one can hold"),
        (r#"{"durationMs":0,"timeInterval":"1ms"}"#, "\"durationMs\": "),
        (deep.as_str(), "nested too deeply"),
        (deep_object.as_str(), "nested too deeply"),
        (brackets_in_a_string.as_str(), "\"format\": "),
    ] {
        let answer = post(&stage, "/sample", body.as_bytes());
        let text = answer.text();
        let shown: String = body.chars().take(80).collect();
        assert_eq!(answer.status, 400, "{shown}: {text}");
        assert!(text.contains(part), "{shown}: {text}");
        assert!(text.contains("example: curl"), "{shown}: {text}");
        assert!(text.contains("\"numberOfSamples\":100"), "{shown}: {text}");
    }
    let answer = post(&stage, "/", b"{\"numberOfSamples\":1,\"\xff\":1}");
    assert_eq!(answer.status, 400, "{}", answer.text());
    stage.check();
}

#[test]
fn requests_that_are_no_http_or_too_much_of_it_are_refused() {
    let stage = Stage::new();
    let long_target = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000));
    let long_header = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(20_000));
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(200));
    let fits = format!("GET /health HTTP/1.1\r\nA: {}\r\n\r\n", "a".repeat(16_000));
    let post = "POST / HTTP/1.1\r\n";
    for (request, status) in [
        ("hello\r\n\r\n".to_owned(), 400),
        ("GET\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), 400),
        ("GET /\u{1} HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/2.0\r\n\r\n".to_owned(), 505),
        ("\u{16}\u{3}\u{1}\u{2}\n\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/1.1\r\nHost: a b/c?\r\n\r\n".to_owned(), 400),
        ("GET /health HTTP/1.1\r\nHost: \r\n\r\n".to_owned(), 200),
        ("GET /health HTTP/1.1\r\nHost: [fe80::1%25eth0]:80\r\n\r\n".to_owned(), 200),
        (long_target, 414),
        (long_header, 431),
        (many_headers, 431),
        (fits, 200),
        ("PUT / HTTP/1.1\r\n\r\n".to_owned(), 405),
        ("POST /health HTTP/1.1\r\n\r\n".to_owned(), 405),
        ("GET /sample HTTP/1.1\r\n\r\n".to_owned(), 405),
        ("GET /stop HTTP/1.1\r\n\r\n".to_owned(), 405),
        ("POST /stop HTTP/1.1\r\n\r\n".to_owned(), 404),
        ("POST /stop?title=a HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("POST /stop HTTP/1.1\r\nContent-Length: 7\r\n\r\nid=mine".to_owned(), 400),
        ("BREW /nothing HTTP/1.1\r\n\r\n".to_owned(), 404),
        (format!("{post}Content-Length: x\r\n\r\n"), 400),
        (format!("{post}Content-Length: -1\r\n\r\n"), 400),
        (format!("{post}Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400),
        (format!("{post}Content-Length: 65537\r\n\r\n"), 413),
        (format!("{post}Content-Length: 99999999999999999999999\r\n\r\n"), 413),
        (format!("{post}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400),
        (format!("{post}Transfer-Encoding: gzip\r\n\r\n"), 501),
        (format!("{post}Transfer-Encoding: gzip, chunked\r\n\r\n"), 501),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400),
        (format!("{post}Transfer-Encoding: chunked\r\n\r\nfffff\r\n"), 413),
        (format!("{post}Expect: a miracle\r\n\r\n"), 417),
    ] {
        let answer = stage.ask(&request);
        let shown: String = request.chars().take(60).collect();
        assert_eq!(answer.status, status, "{shown:?}: {}", answer.text());
        assert!(answer.complete);
        if status == 400 {
            let text = answer.text();
            let second = text.lines().nth(1).unwrap_or_default();
            assert!(second.starts_with("example: curl "), "{shown:?}: {text}");
        }
    }
    let answer = stage.ask(b"GET /\xff\xfe HTTP/1.1\r\n\r\n");
    assert_eq!(answer.status, 400);
    let answer = stage.ask("DELETE / HTTP/1.1\r\n\r\n");
    assert_eq!(answer.header("Allow"), Some("GET, HEAD, POST"));
    stage.check();
}

#[test]
fn errors_are_json_for_those_who_accept_it() {
    let stage = Stage::new();
    let head = "HTTP/1.1\r\nAccept: text/html, application/json;q=0.9\r\n\r\n";
    for target in ["/nothing", "/profile?hz=%22%0a", "/profile?title=fail", "/profile?title=nothing"] {
        let answer = stage.ask(format!("GET {target} {head}"));
        assert!(answer.status >= 400);
        assert_eq!(answer.header("Content-Type"), Some("application/json"));
        let value: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert!(value["error"].is_string(), "{value}");
        if answer.status == 400 {
            let example = value["example"].as_str().unwrap_or_default();
            assert!(example.starts_with("curl "), "{value}");
        }
    }
}

#[test]
fn an_error_is_one_line_whatever_the_request_has_in_it() {
    let stage = Stage::new();
    let answer = stage.get("/profile?a%0d%0aX-Evil:%20yes=1");
    assert_eq!(answer.status, 400);
    assert!(!answer.head.contains("X-Evil"));
    assert_eq!(answer.text().lines().count(), 2, "{}", answer.text());
}

#[test]
fn figures_come_as_a_trailer_after_a_stream_and_as_a_header_before_a_whole() {
    let stage = Stage::new();
    let stats = "threads=2 ticks=7 samples=5 truncated=0 late=0 dropped=0";
    let streamed = stage.get("/profile?format=perf");
    assert_eq!(streamed.header("Trailer"), Some("X-Swipr-Stats"));
    assert_eq!(streamed.trailers, format!("X-Swipr-Stats: {stats}\r\n"));
    let whole = stage.get("/profile?format=folded");
    assert_eq!(whole.header("X-Swipr-Stats"), Some(stats));
    assert!(whole.header("Content-Length").is_some());
    let disposition = whole.header("Content-Disposition").unwrap();
    assert!(disposition.ends_with(".folded\""), "{disposition}");
    let big = stage.get("/profile?format=folded&title=big");
    assert_eq!(big.body.len(), super::support::BIG);
    assert_eq!(big.trailers, format!("X-Swipr-Stats: {stats}\r\n"));
    let old = stage.ask("GET /profile HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200);
    assert_eq!(old.header("Transfer-Encoding"), None);
    assert_eq!(old.header("Connection"), Some("close"));
    assert!(old.text().starts_with("interval="));
    let old = stage.ask("GET /profile?title=big HTTP/1.0\r\n\r\n");
    assert_eq!(old.body.len(), super::support::BIG);
}
