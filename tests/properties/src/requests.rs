//! Requests: whatever a client sends, it gets whole answers, and nothing is recorded beyond the
//! limits in `docs/http.md`.

use crate::choices::Choices;
use std::sync::Arc;
use std::time::Duration;
use swipr_formats::model::Summary;
use swipr_server::opened::{self, ParsedHead};
use swipr_server::recording::{Length, Output, Recorder, Request, StartError};

/// Longest of an input that is sent in pieces; each piece costs system calls.
const MAX_BYTES: usize = 2048;

/// Records a line, and checks that the request is within the limits.
struct OneLine;

impl Recorder for OneLine {
    fn start(&self, request: Request, mut output: Box<dyn Output>) -> Result<(), StartError> {
        assert_within_limits(&request);
        output.write(b"main 1\n").map_err(|_| StartError::Stopping)?;
        output.finish(Ok(Summary { samples: 1, ticks: 1, threads: 1, ..Summary::default() }));
        Ok(())
    }

    fn status(&self) -> String {
        "{}".to_owned()
    }

    fn metrics(&self) -> String {
        "# nothing\n".to_owned()
    }
}

fn assert_within_limits(request: &Request) {
    let day = Duration::from_secs(24 * 3600);
    let interval = request.interval;
    assert!(interval >= Duration::from_micros(100) && interval <= Duration::from_secs(3600), "{interval:?}");
    let (ticks, time) = match request.length {
        Length::Ticks(ticks) => (u128::from(ticks), interval.saturating_mul(ticks as u32)),
        Length::Time(time) => (time.as_nanos() / interval.as_nanos(), time),
        Length::Open => panic!("a client asks for an end"),
    };
    assert!(ticks <= 10_000_000 && time <= day && time > Duration::ZERO, "{ticks} ticks, {time:?}");
    let options = &request.format.options;
    assert!(options.max_depth.is_none_or(|depth| depth >= 2));
    let is_title = |title: &String| title.len() <= 1000 && !title.chars().any(char::is_control);
    assert!(options.title.as_ref().is_none_or(is_title));
    if let Some(threads) = &request.threads {
        for name in ["", "worker-12345678", "ααααααα", "(((((((((((((((", "aaaaaaaaaaaaaaa"] {
            threads.is_match(name);
        }
    }
}

/// The head of a request ends where it ends, whatever follows it and however it comes.
pub fn head(bytes: &[u8]) {
    let whole = opened::head(bytes);
    let ParsedHead::Complete(length, says) = &whole else { return };
    assert!(*length <= bytes.len());
    assert_eq!(opened::head(&bytes[..*length]), whole, "the head alone");
    for cut in 0..*length {
        let part = opened::head(&bytes[..cut]);
        assert_eq!(part, ParsedHead::Incomplete, "the first {cut} bytes of {says}");
    }
}

/// What a query asks for is refused or within the limits.
pub fn query(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for path in ["/profile", "/dump"] {
        match opened::query(path, &text, &OneLine) {
            Ok(request) => assert_within_limits(&request),
            Err(status) => assert_eq!(status, 400),
        }
    }
}

/// What a JSON body asks for is refused or within the limits.
pub fn json(bytes: &[u8]) {
    if let Ok(request) = opened::json(bytes) {
        assert_within_limits(&request);
    }
}

/// A client gets the same answers however its bytes are cut into pieces, and each of them is whole:
/// no text of a client's makes another answer out of one.
pub fn conversation(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let piece = 1 + choices.below(48) as usize;
    let mut sent = choices.rest().to_vec();
    sent.truncate(MAX_BYTES);
    // Heads are looked at when a line ends.
    sent.push(b'\n');
    let recorder: Arc<dyn Recorder> = Arc::new(OneLine);
    let answers = |size: usize| {
        let answers = opened::conversation(sent.chunks(size), Arc::clone(&recorder)).unwrap();
        without_continue(&answers)
    };
    let whole = answers(sent.len());
    assert_eq!(text(&whole), text(&answers(piece)), "in pieces of {piece} bytes");
    assert_whole_answers(&whole);
}

/// The word for clients that wait depends on what has come.
fn without_continue(answers: &[u8]) -> Vec<u8> {
    const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut rest = answers;
    let mut out = Vec::new();
    while let Some((&byte, after)) = rest.split_first() {
        match rest.strip_prefix(CONTINUE) {
            Some(after) => rest = after,
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// One answer after the other, by their own lengths, up to the end.
fn assert_whole_answers(mut rest: &[u8]) {
    while !rest.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut answer = httparse::Response::new(&mut headers);
        let parsed = answer.parse(rest).unwrap_or_else(|error| panic!("{error}: {}", text(rest)));
        let httparse::Status::Complete(length) = parsed else { panic!("cut: {}", text(rest)) };
        let header = |name: &str| {
            let found = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(found.value).ok()
        };
        let body = &rest[length..];
        let is_without_body = body.is_empty() || body.starts_with(b"HTTP/1.1 ");
        rest = match (header("Content-Length"), header("Transfer-Encoding")) {
            // An answer to HEAD.
            (_, _) if is_without_body => body,
            (Some(length), None) => &body[length.parse::<usize>().unwrap()..],
            (None, Some("chunked")) => after_chunks(body),
            // HTTP/1.0: up to the end.
            (None, None) => return,
            other => panic!("two lengths: {other:?}"),
        };
    }
}

fn after_chunks(mut rest: &[u8]) -> &[u8] {
    let line = |rest: &mut &[u8]| {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a line's end");
        let line = text(&rest[..end]).into_owned();
        *rest = &rest[end + 2..];
        line
    };
    loop {
        match usize::from_str_radix(&line(&mut rest), 16).expect("a chunk's size") {
            0 => break,
            size => {
                assert_eq!(&rest[size..size + 2], b"\r\n");
                rest = &rest[size + 2..];
            }
        }
    }
    while !line(&mut rest).is_empty() {}
    rest
}
