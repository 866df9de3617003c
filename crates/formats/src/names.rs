//! Names of functions, modules and threads that no reader can trip over. Not here:
//! what a line around a name looks like, and escapes of formats that have their own
//! (JSON).
//!
//! The rules come from reading hostile files back through the tools people use:
//! each says below what goes wrong without it.

mod shorten;

use std::borrow::Cow;

use crate::Names;
use crate::model::{Frame, FrameKind, Function, Measure};

/// The name of a function or a module that is not known.
pub const UNKNOWN: &str = "[unknown]";

/// A function's name; `None` when it has none. Names of interpreted functions are not shortened:
/// they have no arguments, and Crystal's are told apart by theirs. Their parentheses become braces,
/// because FlameGraph and inferno cut a name at its first parenthesis: of `block (2 levels) in f`
/// they would leave `block`.
///
/// Never empty, never begins with `(` or `0x`, has no `;`, no `->`, no control
/// character and no white space but the blank, none at its ends.
pub fn symbol(frame: &Frame, function: &Function, names: Names) -> Option<String> {
    let mangled = function.mangled.as_deref().filter(|name| !name.is_empty());
    let chosen = match (names, mangled) {
        (Names::Safe, _)
            if matches!(frame.kind, FrameKind::Interpreted(_)) || is_of_crystal(&function.name) =>
        {
            Cow::Owned(function.name.replace('(', "{").replace(')', "}"))
        }
        (Names::Safe, _) => Cow::Owned(shorten::shorten(&function.name)),
        (Names::Mangled, Some(mangled)) => Cow::Borrowed(mangled),
        (Names::Mangled, None) | (Names::Raw, _) => Cow::Borrowed(&*function.name),
    };
    Some(guard(&chosen)).filter(|name| !name.is_empty() && name != UNKNOWN)
}

/// Whether a symbol is a function of Crystal, `*Fiber#run:(File | Nil)`, or a block:
/// `~procProc(Int32)@a.cr:7`. No name in C++, Rust or Swift begins so.
fn is_of_crystal(name: &str) -> bool {
    name.starts_with(['*', '~'])
}

/// A remark in place of a function's name, by the same rules.
pub fn note(text: &str) -> String {
    let text = guard(text);
    if text.is_empty() { UNKNOWN.to_owned() } else { text }
}

/// A frame's name where no function is known: its module in brackets. JIT code has none: it must
/// have one name in two recordings.
pub fn unnamed(frame: &Frame) -> String {
    if frame.kind == FrameKind::Jit {
        return "[JIT]".to_owned();
    }
    let module = module(frame, 0);
    let file = module.rsplit('/').find(|part| !part.is_empty());
    match file {
        Some(file) if file.starts_with('[') => file.to_owned(),
        Some(file) => format!("[{file}]"),
        None => UNKNOWN.to_owned(),
    }
}

/// The module of a frame: its path with what readers stumble over percent-encoded.
///
/// JIT code is in `/tmp/perf-PID.map`, where readers expect it.
pub fn module(frame: &Frame, pid: u32) -> String {
    match (frame.kind, &frame.module) {
        (FrameKind::Jit, _) => format!("/tmp/perf-{pid}.map"),
        (FrameKind::Interpreted(language), _) => language.module(),
        (FrameKind::Note, _) | (FrameKind::Native, None) => UNKNOWN.to_owned(),
        (FrameKind::Native, Some(module)) => path(&module.path),
    }
}

/// A path without blanks, parentheses, `;` and control characters, which are
/// percent-encoded, and without the kernel's ` (deleted)`.
pub fn path(path: &str) -> String {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    if path.is_empty() {
        return UNKNOWN.to_owned();
    }
    let mut encoded = String::with_capacity(path.len());
    for character in path.chars() {
        if breaks_a_word(character) || matches!(character, '(' | ')' | ';' | '%') {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                encoded.push_str(&format!("%{byte:02x}"));
            }
        } else {
            encoded.push(character);
        }
    }
    encoded
}

/// A thread's name as one word of at least two characters.
///
/// A leading `#` makes a comment of the line, a leading `{` makes a reader think of
/// JSON, a `;` is a frame boundary, and one reader wants two characters.
pub fn thread(name: &str) -> String {
    let trimmed =
        name.trim_start_matches(|c: char| c == '#' || breaks_a_word(c)).trim_end_matches(breaks_a_word);
    if trimmed.is_empty() {
        return "unnamed".to_owned();
    }
    let mut safe = String::with_capacity(trimmed.len() + 1);
    for (index, character) in trimmed.chars().enumerate() {
        safe.push(match character {
            ';' => ':',
            '{' | '[' | '"' if index == 0 => '_',
            other if breaks_a_word(other) => '_',
            other => other,
        });
    }
    if safe.encode_utf16().count() < 2 {
        safe.push('_');
    }
    safe
}

/// Text for people and for strings of binary formats: control characters replaced.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { '_' } else { c }).collect()
}

/// White space of any kind or a character that is not for showing.
fn breaks_a_word(character: char) -> bool {
    character.is_whitespace() || is_harmful(character)
}

/// Control characters; separators that end a line or that a regular expression's dot
/// does not match; marks that turn the direction of text.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}')
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The rules that every name keeps, shortened or not.
fn guard(name: &str) -> String {
    let cleaned: String = name
        .trim_matches(breaks_a_word)
        .chars()
        .map(|character| match character {
            ';' => ':',
            ' ' => ' ',
            other if breaks_a_word(other) => '_',
            other => other,
        })
        .collect();
    // Taken for Java frames inlined into one another, and split.
    let mut text = cleaned.replace("->", "→");
    if let Some(rest) = text.strip_prefix("(anonymous namespace)") {
        text = format!("{{anonymous}}{rest}");
    }
    if text.is_empty() {
        return text;
    }
    guard_start(&mut text);
    guard_end(&mut text);
    text
}

/// A name may not begin in a way that makes readers drop it, cut it down to nothing
/// or take it for an address.
fn guard_start(text: &mut String) {
    // FlameGraph takes these four out before it cuts at the first parenthesis.
    let shown = text.trim_start_matches(['<', '>', '"', '\'', ' ']);
    let vanishes = shown.is_empty() || shown.starts_with('(');
    let is_address = text.starts_with("0x") || text.starts_with("0X");
    if vanishes || is_address {
        text.insert(0, '_');
    }
    // inferno takes a legacy Rust hash off, and undoes the escapes of what is left.
    if let Some(rest) = without_hash(text) {
        let rest = rest.strip_suffix("::").unwrap_or(rest);
        if rest.is_empty() || rest.starts_with(['$', '.']) || rest.starts_with("_$") {
            text.insert_str(0, "__");
        }
    }
}

/// A name may not end in a blank and a number: flame graph programs would take the
/// number for a second count.
fn guard_end(text: &mut String) {
    if let Some((start, last)) = text.rsplit_once(' ')
        && last.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        let blank = start.len();
        text.replace_range(blank..=blank, "_");
    }
}

/// The name without `h` and 16 hexadecimal digits at its end, if they are there.
fn without_hash(name: &str) -> Option<&str> {
    let (rest, hash) = name.split_at_checked(name.len().checked_sub(17)?)?;
    let digits = hash.strip_prefix('h')?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(rest)
}

/// What weights are that are no clock's: `inuse_space in bytes`, `delay`.
pub fn measure(measure: &Measure) -> String {
    match measure.unit.as_str() {
        "count" | "" | NANOSECONDS => printable(&measure.kind),
        unit => format!("{} in {}", printable(&measure.kind), printable(unit)),
    }
}

/// So much of it: `4096 bytes`, `7 contentions`. `time` writes nanoseconds.
pub(crate) fn amount(measure: Option<&Measure>, weight: u64, time: fn(u64) -> String) -> String {
    match measure.map(|measure| (measure.unit.as_str(), &measure.kind)) {
        None | Some((NANOSECONDS, _)) => time(weight),
        Some(("count" | "", kind)) => format!("{weight} {}", printable(kind)),
        Some((unit, _)) => format!("{weight} {}", printable(unit)),
    }
}

const NANOSECONDS: &str = "nanoseconds";

#[cfg(test)]
mod tests;
