//! Where profiles go: an address, how it wants them, and what it answers.

use super::otlp::{self, Resource};
use super::url::{Scheme, StoreUrl};
use super::{Profile, by_curl, pyroscope};
use crate::args::{Protocol, Push};
use crate::error::{Error, Exit};
use crate::http::{self, Answer, Request};
use std::fmt;
use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use swipr_formats::Options;
use swipr_formats::model::Mode;

/// How long a store may take to connect, and to answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait that a store may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// What became of a profile.
#[derive(Debug)]
pub(super) enum Sent {
    Done,
    /// It will not be taken at another time either.
    Refused(String),
    /// It may be taken later.
    Failed {
        why: String,
        after: Option<Duration>,
    },
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Destination {
    scheme: Scheme,
    /// Host and port.
    authority: String,
    /// What stands before the protocol's own path.
    path: String,
    protocol: Protocol,
    service: String,
    labels: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    rate: u32,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)
    }
}

impl Destination {
    pub(super) fn new(arguments: &Push, service: String) -> Result<Destination, Error> {
        let usage = |what: String, next: &str| Error::new(what, next).exit(Exit::Usage);
        let Some(url) = StoreUrl::parse(&arguments.url) else {
            return Err(usage(
                format!("cannot send to {}", arguments.url),
                "write http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]; --header 'Authorization: …' says who sends",
            ));
        };
        if url.scheme == Scheme::Https && !by_curl::is_there() {
            return Err(usage(
                format!("cannot send to {}: TLS is left to curl, and there is no curl", arguments.url),
                "install curl, or put a collector beside (Grafana Alloy, otelcol) and write http://HOST:PORT",
            ));
        }
        // A series is `service{name=value,…}`.
        let breaks = |text: &str| text.contains(['{', '}', ',']);
        let has_breaking = breaks(&service) || arguments.label.iter().any(|(k, v)| breaks(k) || breaks(v));
        if arguments.protocol == Protocol::Ingest && has_breaking {
            return Err(usage(
                "a brace or a comma in a service or a label would end it in Pyroscope's /ingest".to_owned(),
                "--protocol pyroscope-push takes any text",
            ));
        }
        Ok(Destination {
            scheme: url.scheme,
            authority: url.authority(arguments.protocol.port()),
            path: url.path.to_owned(),
            protocol: arguments.protocol,
            service,
            labels: arguments.label.clone(),
            headers: arguments.header.clone(),
            rate: arguments.rate,
        })
    }

    fn origin(&self) -> String {
        let scheme = if self.scheme == Scheme::Https { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    pub(super) fn send(&self, profile: &Profile) -> Sent {
        let (target, kind, body) = self.message(profile);
        match self.post(&target, &kind, &body) {
            Ok((200..=299, ..)) => Sent::Done,
            Ok((status @ (408 | 429 | 500..=599), after, text)) => {
                Sent::Failed { why: format!("it answered {status} {text}").trim_end().to_owned(), after }
            }
            Ok((status, _, text)) => Sent::Refused(format!("{status} {text}")),
            Err(error) => Sent::Failed { why: error.to_string(), after: None },
        }
    }

    /// Target, content type and body of the request.
    fn message(&self, profile: &Profile) -> (String, String, Vec<u8>) {
        let id = id();
        match self.protocol {
            Protocol::Ingest => {
                let seconds = |ns: u64| ns / 1_000_000_000;
                let from = seconds(profile.header.start_ns);
                let until = seconds(profile.header.start_ns + profile.summary.duration_ns).max(from + 1);
                let name = crate::args::percent(&pyroscope::series(&self.service, &self.labels));
                let target = format!(
                    "{}/ingest?name={name}&from={from}&until={until}&format=pprof&spyName=swipr&sampleRate={}",
                    self.path, self.rate
                );
                let (kind, body) = pyroscope::form(&pprof(profile));
                (target, kind, body)
            }
            Protocol::Push => {
                let mode: Mode = profile.header.mode;
                let body =
                    pyroscope::push_request(&pprof(profile), mode, &self.service, &self.labels, &uuid(&id));
                (format!("{}/push.v1.PusherService/Push", self.path), "application/proto".to_owned(), body)
            }
            Protocol::Otlp => {
                let resource = Resource { service: &self.service, labels: &self.labels };
                let body = otlp::request(&profile.header, &profile.samples, &profile.summary, &resource, &id);
                (format!("{}/v1development/profiles", self.path), "application/x-protobuf".to_owned(), body)
            }
        }
    }

    /// Status, how long to wait, and the first line of the answer.
    fn post(
        &self,
        target: &str,
        kind: &str,
        body: &[u8],
    ) -> std::io::Result<(u16, Option<Duration>, String)> {
        let mut headers = vec![("Content-Type", kind)];
        if self.protocol == Protocol::Push {
            headers.push(("Connect-Protocol-Version", "1"));
        }
        headers.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        if self.scheme == Scheme::Https {
            let url = format!("{}{target}", self.origin());
            return Ok(response(by_curl::post(&url, &headers, body, TIMEOUT)?));
        }
        headers.push(("Host", self.authority.as_str()));
        let address = self.authority.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(response(http::ask(stream, &Request { method: "POST", target, headers: &headers, body })?))
    }
}

fn response<C: Read>(mut answer: Answer<C>) -> (u16, Option<Duration>, String) {
    let after = answer.field("retry-after").and_then(|seconds| seconds.parse().ok());
    let after = after.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT));
    let mut text = Vec::new();
    let _ = answer.by_ref().take(1000).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    (answer.status, after, line)
}

fn pprof(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(format) = swipr_formats::find("pprof") {
        let mut format = (format.make)(&Options::default());
        format.begin(&profile.header, &mut out);
        profile.samples.iter().for_each(|sample| format.sample(&sample.as_sample(), &mut out));
        format.finish(&profile.summary, &mut out);
    }
    out
}

/// 16 random bytes; the clock's where there are none.
fn id() -> [u8; 16] {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if read.is_err() {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = now.as_nanos().to_be_bytes();
    }
    bytes
}

/// As a UUID of version 4 (RFC 9562).
fn uuid(id: &[u8; 16]) -> String {
    let mut bytes = *id;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
