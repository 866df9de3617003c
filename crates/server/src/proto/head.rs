//! The head of a request: what the server needs of it, and where its body ends.
//! Not here: whether it may be answered (`access.rs`), and how (`routes.rs`).

use super::answer::{Answer, Errors, Form, Readers};
use crate::percent::percent_decode;

/// Longest head; what is longer is refused.
pub(crate) const MAX_HEAD_BYTES: usize = 16 * 1024;
/// Longest body of most requests.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;
/// Most header lines.
const MAX_HEADERS: usize = 100;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Options,
    Other,
}

/// Whether a connection is kept, so that another request may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Open,
    Close,
}

/// HTTP's version: 1.0 knows no chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http10,
    Http11,
}

/// How long the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes.
    Length(usize),
    /// As the chunks say.
    Chunked,
}

/// A request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: Method,
    /// Percent-decoded.
    pub(crate) path: String,
    /// As it was sent.
    pub(crate) query: String,
    pub(crate) version: Version,
    pub(crate) keep: Keep,
    pub(crate) framing: Framing,
    /// The client waits for `100 Continue` before it sends its body.
    pub(crate) waits: bool,
    pub(crate) errors: Errors,
    /// The client accepts HTML, as browsers do.
    pub(crate) wants_page: bool,
    pub(crate) host: Option<String>,
    pub(crate) origin: Option<String>,
    pub(crate) authorization: Option<String>,
    /// What a browser says of the page that made it send the request: `same-origin`, `same-site`,
    /// `cross-site`, or `none`.
    pub(crate) fetch_site: Option<String>,
    /// A browser requests a picture for a page.
    pub(crate) wants_picture: bool,
    pub(crate) readers: Readers,
}

impl Head {
    pub(crate) fn form(&self) -> Form {
        let content = Form::content_of(&self.method);
        Form { content, keep: self.keep, errors: self.errors, readers: self.readers }
    }

    /// Longest body, decoded. A request for names has the addresses of a whole profile.
    pub(crate) fn max_body_bytes(&self) -> usize {
        if self.path.ends_with("/symbolicate/v5") { MAX_BODY_BYTES * 16 } else { MAX_BODY_BYTES }
    }
}

/// How the bytes so far parse.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// More bytes are needed.
    Incomplete,
    /// A head, and its length in bytes.
    Complete(Box<Head>, usize),
    /// They are no head, whatever follows.
    Bad(Answer),
}

/// Reads a head from the start of `input`.
pub(crate) fn parse(input: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(input) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
        Ok(httparse::Status::Partial) if input.len() <= MAX_HEAD_BYTES => {
            return Parsed::Incomplete;
        }
        Ok(_) => return Parsed::Bad(too_long(input)),
        Err(httparse::Error::TooManyHeaders) => {
            return Parsed::Bad(Answer::problem(431, format!("more than {MAX_HEADERS} header lines")));
        }
        Err(httparse::Error::Version) => {
            return Parsed::Bad(Answer::problem(505, "only HTTP/1.0 and HTTP/1.1 are spoken"));
        }
        Err(error) => {
            return Parsed::Bad(Answer::problem(400, format!("not an HTTP request: {error}")));
        }
    };
    match understood(&request) {
        Ok(head) => Parsed::Complete(Box::new(head), length),
        Err(answer) => Parsed::Bad(answer),
    }
}

fn too_long(input: &[u8]) -> Answer {
    let first_line = input.iter().position(|b| *b == b'\n');
    if first_line.is_none_or(|end| end >= MAX_HEAD_BYTES) {
        Answer::problem(414, format!("the target is longer than {MAX_HEAD_BYTES} bytes"))
    } else {
        Answer::problem(431, format!("the head is longer than {MAX_HEAD_BYTES} bytes"))
    }
}

fn understood(request: &httparse::Request<'_, '_>) -> Result<Head, Answer> {
    let version = match request.version {
        Some(0) => Version::Http10,
        _ => Version::Http11,
    };
    let (path, query) = target(request.path.unwrap_or("/"))?;
    let mut head = Head {
        method: match request.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            Some("POST") => Method::Post,
            Some("OPTIONS") => Method::Options,
            _ => Method::Other,
        },
        path,
        query,
        version,
        keep: match version {
            Version::Http10 => Keep::Close,
            Version::Http11 => Keep::Open,
        },
        framing: Framing::Length(0),
        waits: false,
        errors: Errors::Text,
        wants_page: false,
        host: None,
        origin: None,
        authorization: None,
        fetch_site: None,
        wants_picture: false,
        readers: Readers::Own,
    };
    let mut body = BodyFields::default();
    for header in request.headers.iter() {
        let value = String::from_utf8_lossy(header.value);
        field(&mut head, &mut body, &header.name.to_ascii_lowercase(), value.trim())?;
    }
    head.framing = match (body.length, body.is_chunked) {
        (Some(_), true) => {
            let what = "both Content-Length and Transfer-Encoding: the body has no clear end";
            return Err(Answer::problem(400, what));
        }
        (None, true) => Framing::Chunked,
        (None, false) => Framing::Length(0),
        (Some(text), false) => Framing::Length(content_length(&text, head.max_body_bytes())?),
    };
    Ok(head)
}

/// What a head says of its body's end.
#[derive(Default)]
struct BodyFields {
    length: Option<String>,
    is_chunked: bool,
}

fn field(head: &mut Head, body: &mut BodyFields, name: &str, value: &str) -> Result<(), Answer> {
    match name {
        // It may be missing: AsyncHTTPClient of Swift sends none by Unix sockets.
        "host" if !value.bytes().all(is_of_host) => {
            return Err(Answer::problem(400, "Host is neither a name nor an address"));
        }
        "host" => once(&mut head.host, "Host", value)?,
        "origin" => once(&mut head.origin, "Origin", value)?,
        "authorization" => once(&mut head.authorization, "Authorization", value)?,
        "sec-fetch-site" => once(&mut head.fetch_site, "Sec-Fetch-Site", value)?,
        "content-length" => once(&mut body.length, "Content-Length", value)?,
        "transfer-encoding" => {
            if body.is_chunked || !value.eq_ignore_ascii_case("chunked") {
                let what = "the only transfer encoding known here is chunked";
                return Err(Answer::problem(501, what));
            }
            body.is_chunked = true;
        }
        "connection" if has_word(value, "close") => head.keep = Keep::Close,
        "expect" => {
            if !value.eq_ignore_ascii_case("100-continue") {
                let what = "the only expectation known here is 100-continue";
                return Err(Answer::problem(417, what));
            }
            head.waits = head.version == Version::Http11;
        }
        "accept" => {
            if has_word(value, "application/json") {
                head.errors = Errors::Json;
            }
            head.wants_page |= has_word(value, "text/html");
            head.wants_picture |= is_list_of_pictures(value);
        }
        _ => {}
    }
    Ok(())
}

/// RFC 3986, sections 3.2.2 and 3.2.3.
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(&byte)
}

fn once(place: &mut Option<String>, name: &str, value: &str) -> Result<(), Answer> {
    match place.replace(value.to_owned()) {
        None => Ok(()),
        Some(_) => Err(Answer::problem(400, format!("{name} is given twice"))),
    }
}

fn content_length(text: &str, most: usize) -> Result<usize, Answer> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Answer::problem(400, "Content-Length is not a number"));
    }
    match text.parse::<usize>() {
        Ok(length) if length <= most => Ok(length),
        _ => Err(body_too_long(most)),
    }
}

pub(crate) fn body_too_long(most: usize) -> Answer {
    Answer::problem(413, format!("the body is longer than {most} bytes"))
}

/// Whether a comma-separated list has that word, with or without parameters.
fn has_word(list: &str, word: &str) -> bool {
    list.split(',').any(|item| {
        let item = item.split(';').next().unwrap_or(item);
        item.trim().eq_ignore_ascii_case(word)
    })
}

/// Whether it is what browsers accept for an `<img>`: `image/avif,image/webp,*/*;q=0.8`. A single
/// kind of picture is what people write by hand.
fn is_list_of_pictures(list: &str) -> bool {
    let has_picture = list.split(',').any(|item| item.trim_start().starts_with("image/"));
    has_picture && !has_word(list, "text/html") && (list.contains(',') || has_word(list, "image/*"))
}

/// Path and query of a target in origin form, or in absolute form, which servers
/// must take too (RFC 9112, section 3.2.2).
fn target(text: &str) -> Result<(String, String), Answer> {
    let from_path = match text.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') && !scheme.contains('?') => {
            rest.find(['/', '?']).map_or("/", |at| rest.get(at..).unwrap_or("/"))
        }
        _ => text,
    };
    let (path, query) = from_path.split_once('?').unwrap_or((from_path, ""));
    let decoded = percent_decode(path.as_bytes()).and_then(|path| String::from_utf8(path).ok());
    let path = decoded.ok_or_else(|| Answer::problem(400, "the path is not percent-encoded UTF-8"))?;
    let path = if path.is_empty() { "/".to_owned() } else { path };
    Ok((path, query.to_owned()))
}
