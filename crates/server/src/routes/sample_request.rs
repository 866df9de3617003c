//! swift-profile-recorder's request: a JSON object, with further fields besides its own.

use super::parameters::{Defaults, RecordingParams};
use crate::recording::{Length, Request};
use serde_json::Value;
use swipr_formats::model::Mode;

/// A request that is right.
pub(crate) const EXAMPLE: &str =
    r#"{"numberOfSamples":100,"timeInterval":"10 ms","format":"perfSymbolized"}"#;

/// Deepest nesting of brackets that is parsed at all.
const MAX_DEPTH: usize = 8;

/// A field of the object: its name, and the parameter it sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) parameter: &'static str,
    kind: FieldKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Text,
    Number,
    TextOrNumber,
    Switch,
}

const fn field(name: &'static str, parameter: &'static str, kind: FieldKind) -> Field {
    Field { name, parameter, kind }
}

/// Every field.
pub(crate) static FIELDS: &[Field] = &[
    field("numberOfSamples", "samples", FieldKind::Number),
    field("timeInterval", "interval", FieldKind::TextOrNumber),
    field("format", "format", FieldKind::Text),
    field("symbolizer", "symbolizer", FieldKind::Text),
    field("durationMs", "duration_ms", FieldKind::Number),
    field("mode", "mode", FieldKind::Text),
    field("source", "source", FieldKind::Text),
    field("threads", "threads", FieldKind::Text),
    field("tid", "tid", FieldKind::TextOrNumber),
    field("mayCome", "may_come", FieldKind::Switch),
    field("state", "state", FieldKind::Text),
    field("include", "include", FieldKind::Text),
    field("exclude", "exclude", FieldKind::Text),
    field("mergeThreads", "merge_threads", FieldKind::Switch),
    field("names", "names", FieldKind::Text),
    field("lines", "lines", FieldKind::Switch),
    field("inline", "inline", FieldKind::Switch),
    field("maxDepth", "max_depth", FieldKind::Number),
    field("title", "title", FieldKind::Text),
    field("weight", "weight", FieldKind::Text),
    field("states", "states", FieldKind::Switch),
    field("compat", "compat", FieldKind::Switch),
];

/// Reads the body; the error is one line that names the field.
pub(crate) fn parse(body: &[u8]) -> Result<Request, String> {
    if body.trim_ascii().is_empty() {
        return Err("the body is empty; it should be a JSON object".to_owned());
    }
    if is_deep(body) {
        return Err("the body is not JSON of the right kind: it is nested too deeply".to_owned());
    }
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let Value::Object(object) = value else {
        return Err("the body is JSON, but not an object".to_owned());
    };
    let mut params = RecordingParams::default();
    for (name, value) in &object {
        let Some(field) = FIELDS.iter().find(|field| field.name == name) else {
            let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
            let known = names.join(", ");
            return Err(format!("\"{name}\" is not a field known here ({known})"));
        };
        let wrong = |what: String| format!("\"{name}\": {what}");
        // null is as if it were not there.
        if let Some(text) = text(field.kind, value).map_err(wrong)? {
            params.set(field.parameter, &text).map_err(wrong)?;
        }
    }
    if params.ticks.is_none() && params.duration_ns.is_none() {
        return Err("\"numberOfSamples\" is missing".to_owned());
    }
    if params.interval_ns.is_none() {
        return Err("\"timeInterval\" is missing".to_owned());
    }
    // Its pipelines sum up periods if there are any, and multiply by the interval afterwards: so
    // there are none. In CPU mode, which its clients do not know, samples without periods would be
    // false.
    if params.mode != Some(Mode::Cpu) {
        params.compat.get_or_insert(true);
    }
    params.into_request(Defaults { length: Length::Ticks(1), mode: Mode::Wall, format: "perf" })
}

/// Whether brackets nest deeper than any right request's. serde_json stops at a depth
/// of 128 only, and by then has used more stack than a thread here has.
fn is_deep(body: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// The value as a query would have it.
fn text(kind: FieldKind, value: &Value) -> Result<Option<String>, String> {
    match (kind, value) {
        (_, Value::Null) => Ok(None),
        (FieldKind::Text | FieldKind::TextOrNumber, Value::String(text)) => Ok(Some(text.clone())),
        (FieldKind::Switch, Value::Bool(on)) => Ok(Some(on.to_string())),
        (FieldKind::Number | FieldKind::TextOrNumber, Value::Number(number)) => Ok(Some(plain(number))),
        (FieldKind::Text, other) => Err(format!("{} is not a string", shown(other))),
        (FieldKind::Number, other) => Err(format!("{} is not a number", shown(other))),
        (FieldKind::TextOrNumber, other) => Err(format!("{} is no time", shown(other))),
        (FieldKind::Switch, other) => Err(format!("{} is not true or false", shown(other))),
    }
}

/// A number without an exponent.
fn plain(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float.to_string(),
        _ => number.to_string(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => other.to_string(),
    }
}
