//! Routes of viewers and of other projects' tools: what they request, and what they check of the
//! answer.

use super::support::Stage;

#[test]
fn a_path_that_names_a_file_gives_it_its_format_type_and_name() {
    let stage = Stage::new();
    for (path, format, kind, how, suffix) in [
        ("/flamegraph.html", "html", "text/html; charset=utf-8", "inline", "html"),
        ("/flamegraph.svg", "svg", "image/svg+xml", "inline", "svg"),
        ("/profile.json", "firefox", "application/json", "attachment", "firefox.json"),
        ("/profile.speedscope.json", "speedscope", "application/json", "attachment", "speedscope.json"),
        ("/profile.pb.gz", "pprof", "application/octet-stream", "attachment", "pb.gz"),
        ("/profile.folded", "folded", "text/plain; charset=utf-8", "inline", "folded"),
        ("/profile.perf", "perf", "text/plain; charset=utf-8", "inline", "perf"),
    ] {
        let answer = stage.get(&format!("{path}?seconds=2"));
        assert_eq!(answer.status, 200, "{path}");
        assert!(
            answer.text().contains(&format!("length=Time(2s) mode=Wall format={format} ")),
            "{}",
            answer.text()
        );
        assert_eq!(answer.header("Content-Type"), Some(kind));
        check_disposition(answer.header("Content-Disposition"), how, suffix);
        assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
        let has_stats = answer.header("X-Swipr-Stats").is_some() || answer.trailers.contains("X-Swipr-Stats");
        assert!(has_stats, "{path}");
        assert_eq!(stage.get(&format!("{path}?format=perf")).status, 400, "its name says it already");
    }
}

/// A browser shows what is text; what is saved says which process it is of and when it was made.
fn check_disposition(found: Option<&str>, how: &str, suffix: &str) {
    let begin = format!("{how}; filename=\"http-");
    let pid = std::process::id();
    let parts = found.and_then(|text| text.strip_prefix(&begin)?.strip_suffix(&format!(".{suffix}\"")));
    // The hash in the name of the test's executable comes first.
    let time = parts.and_then(|parts| parts.split_once(&format!("-{pid}-"))).map(|(_, time)| time);
    let is_time = time.is_some_and(|time| {
        let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        shape == "00000000T000000Z"
    });
    assert!(is_time, "{found:?}");
}

#[test]
fn a_browser_shows_a_dump() {
    let stage = Stage::new();
    for (target, how, suffix) in [
        ("/dump", "inline", "txt"),
        ("/dump?format=json", "attachment", "dump.json"),
        ("/profile", "inline", "perf"),
    ] {
        check_disposition(stage.get(target).header("Content-Disposition"), how, suffix);
    }
}

#[test]
fn filters_are_understood_or_refused() {
    let stage = Stage::new();
    for (query, status, part) in [
        ("tid=7,8", 200, "tids: [7, 8]"),
        ("state=running,waiting", 200, "states: [Running, Waiting]"),
        (
            "include=%5Eparse&exclude=free",
            200,
            "include: Some(Regex(\"^parse\")), exclude: Some(Regex(\"free\"))",
        ),
        ("tid=x", 400, "\"x\" is not a thread's id"),
        ("tid=", 400, "is not a thread's id"),
        ("state=asleep", 400, "running, waiting, blocked"),
        ("include=(", 400, "regular expression"),
        ("exclude=(", 400, "regular expression"),
    ] {
        let answer = stage.get(&format!("/profile?{query}"));
        assert!(answer.status == status && answer.text().contains(part), "{query}: {}", answer.text());
    }
}

#[test]
fn gos_profile_has_gos_headers_and_defaults() {
    let stage = Stage::new();
    for (query, part) in [
        ("", "interval=10ms length=Time(30s) mode=Cpu format=pprof"),
        ("?seconds=14", "length=Time(14s)"),
        ("?seconds=0", "length=Time(30s)"),
        ("?seconds=-1", "length=Time(30s)"),
        ("?seconds=soon", "length=Time(30s)"),
        ("?seconds=5&hz=50&gc=1&debug=0", "interval=20ms length=Time(5s)"),
        ("?seconds=5&mode=wall", "mode=Wall"),
    ] {
        let answer = stage.get(&format!("/debug/pprof/profile{query}"));
        assert!(answer.status == 200 && answer.text().contains(part), "{query}: {}", answer.text());
        assert_eq!(answer.header("Content-Type"), Some("application/octet-stream"));
        assert_eq!(answer.header("Content-Disposition"), Some("attachment; filename=\"profile\""));
        assert_eq!(answer.header("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(answer.header("Content-Encoding"), None);
    }
    for (path, part) in [
        ("/debug/fgprof?seconds=3", "length=Time(3s) mode=Wall format=pprof"),
        ("/debug/fgprof?format=folded", "format=folded"),
        ("/debug/pprof/symbolizer=fake/profile", "symbolize=Never"),
        ("/debug/pprof/goroutine", "length=Ticks(1) mode=Wall format=pprof"),
        ("/debug/pprof/goroutine?debug=1", "format=goroutines"),
        ("/debug/pprof/goroutine?debug=2", "format=goroutine-stacks"),
        ("/pprof/profile?seconds=1", "mode=Cpu format=gperftools"),
        ("/debug/pprof/symbol?0x10+0x20", "purpose=Names([16, 32])"),
    ] {
        let answer = stage.get(path);
        assert!(answer.status == 200 && answer.text().contains(part), "{path}: {}", answer.text());
    }
    let symbols = stage.ask("POST /pprof/symbol HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n0x10+0x20");
    assert!(symbols.text().contains("purpose=Names([16, 32])"), "{}", symbols.text());
    assert_eq!(stage.get("/pprof/symbol").text(), "num_symbols: 1\n");
    assert!(stage.get("/pprof/cmdline").text().contains("http"), "the test's own name");
}

#[test]
fn gos_errors_are_one_line_and_say_so() {
    let stage = Stage::new();
    for (path, status) in [
        ("/debug/pprof/profile?hz=0", 400),
        ("/debug/fgprof?format=gif", 400),
        ("/debug/pprof/profile?threads=(", 400),
    ] {
        let answer = stage.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert_eq!(answer.header("X-Go-Pprof"), Some("1"), "{path}");
        assert_eq!(answer.header("Content-Type"), Some("text/plain; charset=utf-8"));
        assert_eq!(answer.text().lines().count(), 1, "{}", answer.text());
    }
}

#[test]
fn a_browser_gets_a_page_that_runs_no_other_script() {
    let stage = Stage::new();
    let page =
        stage.ask("GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\n\r\n");
    assert_eq!(page.header("Content-Type"), Some("text/html; charset=utf-8"));
    let policy = page.header("Content-Security-Policy").unwrap();
    for part in ["default-src 'none'", "script-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"));
    assert!(page.text().starts_with("<!DOCTYPE html>") && !page.text().contains("{{"));
    assert!(!page.text().contains(" src=") && !page.text().contains("http://"), "nothing from elsewhere");
    assert!(stage.get("/").text().starts_with("swipr: "), "curl gets the help");
}

#[test]
fn a_moment_is_a_recording_of_one_tick() {
    let stage = Stage::new();
    for (path, part) in [
        ("/threads?state=blocked", "length=Ticks(1) mode=Wall format=threads"),
        ("/maps", "purpose=Code"),
        ("/live?hz=49", "format=live"),
    ] {
        let answer = stage.get(path);
        assert!(answer.status == 200 && answer.text().contains(part), "{path}: {}", answer.text());
        assert_eq!(answer.header("Content-Disposition"), None, "it is to be seen");
    }
}
