//! swift-profile-recorder's request: a JSON object, with further fields besides its own.

use super::parameters::{Defaults, PARAMETERS, Parameter, RecordingParams};
use crate::recording::{Length, Request};
use serde_json::Value;
use swipr_formats::Decimal;
use swipr_formats::model::Mode;

/// A request that is right.
pub(crate) const EXAMPLE: &str =
    r#"{"numberOfSamples":100,"timeInterval":"10 ms","format":"perfSymbolized"}"#;

/// Deepest nesting of brackets that is parsed at all.
const MAX_DEPTH: usize = 8;

/// Every parameter that is a field, with the field's name.
pub(crate) fn fields() -> impl Iterator<Item = (&'static str, &'static Parameter)> {
    PARAMETERS.iter().filter_map(|parameter| Some((parameter.json?, parameter)))
}

/// Reads the body; the error is one line, with the name of a field that is wrong.
pub(crate) fn parse(body: &[u8]) -> Result<Request, String> {
    if body.trim_ascii().is_empty() {
        return Err("the body is empty; it should be a JSON object".to_owned());
    }
    let Some(commas) = outer_commas(body) else {
        return Err("the body is not JSON of the right kind: it is nested too deeply".to_owned());
    };
    let value: Value =
        serde_json::from_slice(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let Value::Object(object) = value else {
        return Err("the body is JSON, but not an object".to_owned());
    };
    if commas >= object.len().max(1) {
        return Err("a field is given twice".to_owned());
    }
    let mut params = RecordingParams::default();
    for (name, value) in &object {
        let Some((_, parameter)) = fields().find(|(field, _)| field == name) else {
            let known = fields().map(|(field, _)| field).collect::<Vec<_>>().join(", ");
            return Err(format!("\"{name}\" is not a field known here ({known})"));
        };
        let wrong = |what: String| format!("\"{name}\": {what}");
        // null is as if it were not there.
        if let Some(text) = text(parameter.values, value).map_err(wrong)? {
            params.set(parameter.name, &text).map_err(wrong)?;
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

/// How many commas the outermost brackets have: serde_json keeps one of two fields with the same
/// name. `None`: brackets nest deeper than any right request's. serde_json stops at a depth of 128
/// only, and by then has used more stack than a thread here has.
fn outer_commas(body: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped, mut commas) = (0usize, false, false, 0);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' if !in_string && depth == 1 => commas += 1,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return None;
        }
    }
    Some(commas)
}

/// The value as a query would have it; `values`: the parameter's.
fn text(values: &str, value: &Value) -> Result<Option<String>, String> {
    let wanted = match (values, value) {
        (_, Value::Null) => return Ok(None),
        ("true, false", Value::Bool(on)) => return Ok(Some(on.to_string())),
        ("number" | "numbers" | "time", Value::Number(number)) => return Ok(Some(plain(number))),
        ("true, false", _) => "true or false",
        ("number", _) => "a number",
        (_, Value::String(text)) => return Ok(Some(text.clone())),
        ("numbers", _) => "a text with numbers",
        ("time", _) => "a time",
        _ => "a string",
    };
    Err(format!("{} is not {wanted}", shown(value)))
}

/// A number without an exponent.
fn plain(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float >= 0.0 => {
            let places = if float < 1e9 { 9 } else { 0 };
            Decimal::rounded(float, places).trimmed().to_string()
        }
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
