use super::*;
use flate2::read::MultiGzDecoder;
use swipr_formats::{Options, Weight};

fn data(case: &str, file: &str) -> Vec<u8> {
    let path = format!("{}/../formats/tests/data/{case}/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What a format's writer makes of a recording in these bytes.
fn converted(bytes: &[u8], to: &str, options: &Options) -> Vec<u8> {
    let mut format = (swipr_formats::find(to).expect("a format").make)(options);
    let mut out = Vec::new();
    let mut take = |event| {
        match event {
            Event::Header(header) => format.begin(&header, &mut out),
            Event::Sample(sample) => format.sample(&sample.as_sample(), &mut out),
            Event::End(summary) => format.finish(&summary, &mut out),
        }
        Ok(())
    };
    recording(bytes, None, "app", &Arc::default(), &mut Symbols::default(), &mut take).expect("a recording");
    out
}

/// Folded text in one spelling, whatever way it came.
fn folded(bytes: &[u8], options: &Options) -> String {
    String::from_utf8(converted(bytes, "folded", options)).expect("text")
}

const CASE: &str = "lines_and_raw_names";

#[test]
fn every_format_that_can_be_read_says_the_same_as_the_recording_it_was_written_from() {
    let raw = data(CASE, "raw.jsonl");
    let nanoseconds = Options { weight: Some(Weight::Nanoseconds), ..Options::default() };
    for options in [Options::default(), nanoseconds] {
        let wanted = folded(&raw, &options);
        for format in ["pprof", "perf"] {
            let written = converted(&raw, format, &Options::default());
            assert_eq!(sorted(&folded(&written, &options)), sorted(&wanted), "{format}");
        }
    }
    let merged = Options { merge_threads: true, states: false, ..Options::default() };
    let once = folded(&raw, &merged);
    assert_eq!(folded(once.as_bytes(), &merged), once);
}

/// `bar (/opt/lib/libx.so` became a function, in a module `deleted)`.
#[test]
fn in_perfs_text_a_file_that_is_gone_has_its_functions_all_the_same() {
    let text = "dotnet 7 12.5: 9 cpu-clock:pppH:
\t1236 bar (/opt/lib/libx.so (deleted))
\t1235 foo+0x12 (/opt/lib/libx.so (deleted))
\t1234 [unknown] (/memfd:doublemapper (deleted))
\t1233 f(int) (/app)
\t1232 g(int)
";
    let raw = String::from_utf8(converted(text.as_bytes(), "raw", &Options::default())).expect("text");
    let lines = || raw.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let of = |kind: &'static str| lines().filter(move |line: &serde_json::Value| line["type"] == kind);
    let paths: Vec<_> = of("module").map(|module| module["path"].clone()).collect();
    assert_eq!(paths, ["/opt/lib/libx.so", "/memfd:doublemapper", "/app"]);
    let stack = of("stack").next().expect("a stack");
    let frames = stack["frames"].as_array().expect("frames").iter();
    let frames: Vec<_> = frames.map(|frame| (&frame["functions"][0]["name"], &frame["module"])).collect();
    let name = |name: &str| serde_json::Value::from(name);
    assert_eq!(
        frames,
        [
            (&name("bar"), &0.into()),
            (&name("foo"), &0.into()),
            (&serde_json::Value::Null, &1.into()),
            (&name("f(int)"), &2.into()),
            (&name("g(int)"), &serde_json::Value::Null)
        ]
    );
}

fn sorted(lines: &str) -> std::collections::BTreeSet<&str> {
    lines.lines().collect()
}

/// In a pprof profile all calls became one, and `swipr diff` showed changes that were none.
#[test]
fn the_system_call_that_a_thread_waits_in_stays_with_and_without_a_name() {
    let start = r#"{"type":"header","swipr":1,"pid":7,"process_name":"app","executable":"/app","start_ns":1,"interval_ns":10000000,"mode":"wall"}
{"type":"thread","id":0,"tid":7,"name":"app"}
{"type":"stack","id":0,"frames":[{"address":"0x1","functions":[{"name":"wait","offset":0}]}]}"#;
    let read = format!("\"syscall\":{},", libc::SYS_read);
    let samples = [&read, "\"syscall\":999,", ""].map(|call| {
        format!(
            r#"{{"type":"sample","time_ns":1,"thread":0,"state":"blocked",{call}"weight_ns":10000000,"stack":0}}"#
        )
    });
    let raw = format!("{start}\n{}\n", samples.join("\n"));
    let wanted = ["[blocked in read]", "[blocked in system call 999]", "[blocked]"];
    for format in ["raw", "pprof", "perf"] {
        let text = folded(&converted(raw.as_bytes(), format, &Options::default()), &Options::default());
        let leaves: Vec<_> = text.lines().filter_map(|line| line.rsplit(';').next()).collect();
        assert_eq!(leaves, wanted.map(|leaf| format!("{leaf} 1")), "{format}: {text}");
    }
}

#[test]
fn folded_nanoseconds_are_not_taken_for_samples() {
    let options = Options { weight: Some(Weight::Nanoseconds), merge_threads: true, ..Options::default() };
    assert_eq!(folded(b"a;b 5000000000\na;c 7\n", &options), "a;b 5000000000\na;c 7\n");
    assert_eq!(folded(b"a;b 5\n", &options), "a;b 50000000\n");
}

#[test]
fn broken_files_are_refused_with_the_reason_and_never_break_the_reader() {
    let mut ignored = |_: Event| Ok(());
    let mut read =
        |bytes: &[u8]| recording(bytes, None, "app", &Arc::default(), &mut Symbols::default(), &mut ignored);
    for wrong in
        [&b""[..], b"\x1f\x8b", b"a;b\n", b"hello", b"# nothing\n", b"{\"type\":\"header\"}", b"\x0a\xff\x08"]
    {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
    let text = read(b"Dear diary,\nnothing was sampled today.\n").expect_err("no recording");
    assert_eq!(text.what, "it is in no format that can be read (raw, perf, folded, pprof)");
    // Every prefix, and every byte changed: an answer, whatever it is.
    for file in ["raw.jsonl", "perf", "folded"] {
        let whole = data(CASE, file);
        for at in 0..whole.len() {
            let _ = read(&whole[..at]);
            let mut changed = whole.clone();
            changed[at] ^= 0x15;
            let _ = read(&changed);
        }
    }
    let pprof = converted(&data(CASE, "raw.jsonl"), "pprof", &Options::default());
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(pprof.as_slice()).read_to_end(&mut unpacked).expect("gzip");
    for at in 0..unpacked.len() {
        let _ = read(&unpacked[..at]);
        let mut changed = unpacked.clone();
        changed[at] ^= 0x95;
        let _ = read(&changed);
    }
}

/// Regression: of functions of Python that call each other, perf text gave one frame with the
/// others inlined, and a name that looks like a linker's was demangled.
#[test]
fn functions_of_languages_stay_what_they_are_in_formats_that_tell_it() {
    let frames = Language::ALL.iter().enumerate().flat_map(|(number, language)| {
        let frame = move |name: &str| {
            let (address, word) = (0x1001 + number, language.word());
            format!(
                r#"{{"address":"{address:#x}","kind":"{word}","functions":[{{"name":"{name}","offset":0}}]}}"#
            )
        };
        [frame("inner"), frame("_ZN3foo3barEv")]
    });
    let frames: Vec<String> = frames.collect();
    let header = String::from_utf8(data(CASE, "raw.jsonl"))
        .expect("text")
        .lines()
        .next()
        .expect("a header")
        .to_owned();
    let raw = format!(
        "{header}\n{}\n{{\"type\":\"stack\",\"id\":0,\"frames\":[{}]}}\n{}\n",
        r#"{"type":"thread","id":0,"tid":7,"name":"app"}"#,
        frames.join(","),
        r#"{"type":"sample","time_ns":1,"thread":0,"state":"running","weight_ns":10000000,"stack":0}"#,
    );
    let kinds = |raw: Vec<u8>| {
        let text = String::from_utf8(raw).expect("text");
        let stack = text.lines().find(|line| line.contains(r#""type":"stack""#)).expect("a stack");
        let stack: serde_json::Value = serde_json::from_str(stack).expect("JSON");
        let frames = stack["frames"].as_array().expect("frames").iter();
        frames
            .map(|frame| {
                assert_eq!(frame["functions"].as_array().map(Vec::len), Some(1), "{frame}");
                (frame["kind"].clone(), frame["functions"][0]["name"].clone())
            })
            .collect::<Vec<_>>()
    };
    let options = Options::default();
    let wanted = kinds(converted(raw.as_bytes(), "raw", &options));
    assert_eq!(wanted.len(), 2 * Language::ALL.len());
    for format in ["perf", "pprof"] {
        let written = converted(raw.as_bytes(), format, &options);
        assert_eq!(kinds(converted(&written, "raw", &options)), wanted, "{format}");
    }
}
