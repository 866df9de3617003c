//! Answers that are known whole: their heads and bodies as bytes.
//! Not here: answers that stream (`recorded.rs`).

use super::head::{Keep, Method};

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";
/// Prometheus' text format; the version says how to parse it.
pub(crate) const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON: &str = "application/json";
/// How an example begins in a text.
pub(crate) const EXAMPLE: &str = "example: ";

/// The page of the Firefox Profiler.
pub(crate) const FIREFOX_PROFILER: &str = "https://profiler.firefox.com";

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Bytes {
        content_type: &'static str,
        bytes: Vec<u8>,
    },
    /// What was wrong, and how it would have been right (or nothing).
    Problem {
        what: String,
        example: String,
    },
}

/// What the request says about the form of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) content: Content,
    pub(crate) keep: Keep,
    pub(crate) errors: Errors,
    pub(crate) readers: Readers,
}

/// Which page's scripts may read the answer in a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Those of the agent's own page.
    Own,
    /// Those of the Firefox Profiler's page.
    FirefoxProfiler,
}

/// Whether the body is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Whole,
    HeadOnly,
}

/// How errors are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errors {
    Text,
    Json,
}

impl Form {
    /// The form of an answer to something that was not understood.
    pub(crate) const CLOSE: Form =
        Form { content: Content::Whole, keep: Keep::Close, errors: Errors::Text, readers: Readers::Own };

    pub(crate) fn content_of(method: &Method) -> Content {
        match method {
            Method::Head => Content::HeadOnly,
            _ => Content::Whole,
        }
    }
}

impl Answer {
    pub(crate) fn text(text: impl Into<String>) -> Answer {
        Answer::bytes(TEXT, text.into().into_bytes())
    }

    pub(crate) fn json(text: String) -> Answer {
        Answer::bytes(JSON, text.into_bytes())
    }

    pub(crate) fn bytes(content_type: &'static str, bytes: Vec<u8>) -> Answer {
        Answer { status: 200, headers: Vec::new(), body: Body::Bytes { content_type, bytes } }
    }

    /// An error: one line that says what is wrong.
    pub(crate) fn problem(status: u16, what: impl Into<String>) -> Answer {
        Answer {
            status,
            headers: Vec::new(),
            body: Body::Problem { what: what.into(), example: String::new() },
        }
    }

    /// Adds how it would have been right.
    pub(crate) fn example(mut self, text: impl Into<String>) -> Answer {
        if let Body::Problem { example, .. } = &mut self.body {
            *example = text.into();
        }
        self
    }

    /// Adds a header. The value must not hold a client's text.
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    /// Appends the answer to `out`.
    pub(crate) fn encode(&self, form: Form, out: &mut Vec<u8>) {
        let text;
        let (content_type, body): (&str, &[u8]) = match (&self.body, form.errors) {
            (Body::Bytes { content_type, bytes }, _) => (content_type, bytes),
            (Body::Problem { what, example }, Errors::Text) => {
                text = match example.as_str() {
                    "" => format!("{}\n", one_line(what)),
                    example => format!("{}\n{example}\n", one_line(what)),
                };
                (TEXT, text.as_bytes())
            }
            (Body::Problem { what, example }, Errors::Json) => {
                let what = serde_json::Value::from(what.as_str());
                text = match example.as_str() {
                    "" => format!("{{\"error\":{what}}}\n"),
                    example => {
                        // The field's name says that it is one.
                        let example = example.strip_prefix(EXAMPLE).unwrap_or(example);
                        let example = serde_json::Value::from(example);
                        format!("{{\"error\":{what},\"example\":{example}}}\n")
                    }
                };
                (JSON, text.as_bytes())
            }
        };
        head(self.status, form, content_type, &self.headers, out);
        out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        if form.content == Content::Whole {
            out.extend_from_slice(body);
        }
    }
}

/// The text in one line. An error may quote a client's text.
pub(crate) fn one_line(text: &str) -> String {
    let blank = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(blank).collect()
}

/// Appends a status line and headers, without the empty line that ends them.
pub(crate) fn head(
    status: u16,
    form: Form,
    content_type: &str,
    headers: &[(&'static str, String)],
    out: &mut Vec<u8>,
) {
    let mut text = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    text += &format!("Content-Type: {content_type}\r\n");
    text += "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    if form.readers == Readers::FirefoxProfiler {
        text += &format!("Access-Control-Allow-Origin: {}\r\nVary: Origin\r\n", FIREFOX_PROFILER);
    }
    if form.keep == Keep::Close {
        text += "Connection: close\r\n";
    }
    out.extend_from_slice(text.as_bytes());
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}
