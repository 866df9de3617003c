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
