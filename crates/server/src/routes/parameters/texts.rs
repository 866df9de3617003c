//! What the texts of parameters mean, or what is wrong with them.

use crate::recording::StateFilter;
use crate::routes::values;
use swipr_formats::{FORMATS, FormatInfo};

/// Longest regular expression and longest title, in bytes.
const MAX_TEXT_BYTES: usize = 1000;
/// Longest id of a recording.
const MAX_ID_BYTES: usize = 64;

pub(super) fn once<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
    match place.replace(value?) {
        None => Ok(()),
        Some(_) => Err("it is given twice, or together with another name of it".to_owned()),
    }
}

pub(super) fn format(text: &str) -> Result<&'static FormatInfo, String> {
    swipr_formats::find(text).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        format!("\"{text}\" is not one of {}", names.join(", "))
    })
}

/// The regular expression of a parameter, or what is wrong with it.
pub fn regex(text: &str) -> Result<regex_lite::Regex, String> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("it is longer than {MAX_TEXT_BYTES} bytes"));
    }
    regex_lite::Regex::new(text).map_err(|error| format!("\"{text}\" is no regular expression: {error}"))
}

pub(super) fn tids(text: &str) -> Result<Vec<u32>, String> {
    let one = |tid: &str| {
        let wrong = || format!("\"{tid}\" is not a thread's id");
        tid.trim().parse::<u32>().map_err(|_| wrong())
    };
    text.split(',').map(one).collect()
}

pub(super) fn states(text: &str) -> Result<Vec<StateFilter>, String> {
    let known = [
        ("running", StateFilter::Running),
        ("waiting", StateFilter::Waiting),
        ("blocked", StateFilter::Blocked),
    ];
    text.split(',').map(|state| values::choice(state.trim(), &known)).collect()
}

pub(super) fn id(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    match is_plain && (1..=MAX_ID_BYTES).contains(&text.len()) {
        true => Ok(text.to_owned()),
        false => Err(format!("it is not 1 to {MAX_ID_BYTES} letters, digits, - or _")),
    }
}

/// The title of a parameter, or what is wrong with it.
pub fn title(text: &str) -> Result<String, String> {
    match text.len() > MAX_TEXT_BYTES || text.chars().any(char::is_control) {
        true => Err(format!("it has control characters or more than {MAX_TEXT_BYTES} bytes")),
        false => Ok(text.to_owned()),
    }
}
