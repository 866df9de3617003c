//! Pyroscope's two ways in: `/ingest`, a form with a pprof profile, and the push API, a protobuf
//! message with one.

use swipr_formats::model::Mode;
use swipr_formats::protobuf::Message;

/// Stands between the parts of a form. Chosen by chance once; a profile is packed and will not have
/// it.
const BOUNDARY: &str = "swipr-7b1e0c6f5d2a4938";

/// The form of `/ingest`, and its content type.
pub fn form(profile: &[u8]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    let mut part = |name: &str, more: &str, bytes: &[u8]| {
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    };
    part("profile", "; filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream", profile);
    part("sample_type_config", "; filename=\"sample_type_config.json\"", sample_types().as_bytes());
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={BOUNDARY}"), body)
}

/// How the values of swipr's profiles are to be summed and named.
fn sample_types() -> String {
    let one = |name: &str, units: &str| {
        format!(
            "\"{name}\":{{\"units\":\"{units}\",\"aggregation\":\"sum\",\"display-name\":\"{name}\",\"sampled\":true}}"
        )
    };
    format!("{{{},{},{}}}", one("samples", "samples"), one("cpu", "nanoseconds"), one("wall", "nanoseconds"))
}

/// `/ingest`'s name of a series: `service{key=value,…}`.
pub fn series(service: &str, labels: &[(String, String)]) -> String {
    let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if pairs.is_empty() { service.to_owned() } else { format!("{service}{{{}}}", pairs.join(",")) }
}

/// The push API's message with one profile.
pub fn push_request(
    profile: &[u8],
    mode: Mode,
    service: &str,
    labels: &[(String, String)],
    id: &str,
) -> Vec<u8> {
    let kind = match mode {
        Mode::Cpu => "process_cpu",
        Mode::Wall => "wall",
    };
    let mut series = Message::new();
    let mut label = |name: &str, value: &str| {
        let mut pair = Message::new();
        pair.text(1, name);
        pair.text(2, value);
        series.message(1, pair);
    };
    label("__name__", kind);
    label("service_name", service);
    labels.iter().for_each(|(name, value)| label(name, value));
    let mut sample = Message::new();
    sample.block(1, profile);
    sample.text(2, id);
    series.message(2, sample);
    let mut request = Message::new();
    request.message(1, series);
    request.into_bytes()
}
