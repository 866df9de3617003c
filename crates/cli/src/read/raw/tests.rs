use super::*;
use swipr_formats::Options;

fn golden() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/tests/data/lines_and_raw_names/raw.jsonl");
    std::fs::read_to_string(path).expect("a recording")
}

#[test]
fn what_the_raw_format_writes_is_read_without_loss() {
    let text = golden();
    let mut reader = RawReader::new(Arc::default(), None);
    let mut format = (swipr_formats::find("raw").expect("a format").make)(&Options::default());
    let mut out = Vec::new();
    for line in text.lines() {
        match reader.line(line.as_bytes()).expect(line) {
            Some(Event::Header(header)) => format.begin(&header, &mut out),
            Some(Event::Sample(sample)) => format.sample(&sample.as_sample(), &mut out),
            Some(Event::End(summary)) => format.finish(&summary, &mut out),
            None => {}
        }
    }
    assert_eq!(String::from_utf8_lossy(&out), text);
    assert_eq!(reader.threads(), 2);
}

#[test]
fn what_is_unknown_is_passed_over_and_what_contradicts_itself_is_an_error() {
    let read = |lines: &[&str]| {
        let mut reader = RawReader::new(Arc::default(), None);
        lines.iter().map(|line| reader.line(line.as_bytes()).map(|event| event.is_some())).collect::<Vec<_>>()
    };
    let header = golden().lines().next().expect("a header").to_owned();
    assert_eq!(read(&["", r#"{"type":"weather","sun":1}"#, &header]), [Ok(false), Ok(false), Ok(true)]);
    let sample = r#"{"type":"sample","time_ns":1,"thread":0,"state":"running","weight_ns":1,"stack":0}"#;
    for wrong in [
        &["no json"][..],
        &[sample],
        &[&header, sample],
        &[&header, r#"{"type":"thread","id":1,"tid":1,"name":"a"}"#],
        &[&header, r#"{"type":"stack","id":0,"frames":[{"address":"5"}]}"#],
        &[&header, r#"{"type":"stack","id":0,"frames":[{"address":"0x5","module":3}]}"#],
        &[&header.replace("\"swipr\":1", "\"swipr\":99")],
        &[&header.replace("wall", "lunar")],
    ] {
        let results = read(wrong);
        assert!(results.last().is_some_and(Result::is_err), "{wrong:?}: {results:?}");
    }
}

/// Programs that wait for their recording had a sample of that in it.
#[test]
fn the_wait_in_the_librarys_constructor_is_left_out_and_nothing_else() {
    let module = |id: usize, path: &str| {
        format!(
            r#"{{"type":"module","id":{id},"path":"{path}","start":"0x1000","end":"0x2000","file_offset":"0x0","build_id":""}}"#
        )
    };
    let stack = |id: usize, modules: &[usize]| {
        let frames: Vec<String> =
            modules.iter().map(|module| format!(r#"{{"address":"0x1001","module":{module}}}"#)).collect();
        format!(r#"{{"type":"stack","id":{id},"frames":[{}]}}"#, frames.join(","))
    };
    let sample = |thread: usize, stack: usize| {
        format!(
            r#"{{"type":"sample","time_ns":1,"thread":{thread},"state":"running","weight_ns":1,"stack":{stack}}}"#
        )
    };
    let header = golden().lines().next().expect("a header").to_owned();
    let mut reader = RawReader::new(Arc::default(), None);
    let mut is_there = |line: String| reader.line(line.as_bytes()).expect(&line).is_some();
    assert!(is_there(header)); // of process 77, /usr/bin/app
    for line in [
        r#"{"type":"thread","id":0,"tid":77,"name":"app"}"#.to_owned(),
        r#"{"type":"thread","id":1,"tid":78,"name":"worker"}"#.to_owned(),
        module(0, "/usr/bin/app"),
        module(1, "/opt/libswipr.so.0"),
        module(2, "/lib/ld.so"),
        stack(0, &[1, 2]),
        stack(1, &[1, 0, 2]),
        stack(2, &[2]),
    ] {
        assert!(!is_there(line));
    }
    assert!(!is_there(sample(0, 0)));
    assert!(is_there(sample(1, 0)) && is_there(sample(0, 1)) && is_there(sample(0, 2)));
}
