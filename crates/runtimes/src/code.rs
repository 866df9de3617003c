//! What a function is called, and its lines, from the content that a walk copied.

use crate::content::{EXCERPT_BEFORE, HEAD, LineTable, TEXT};
use crate::lines;
use std::sync::{Arc, OnceLock};

/// As JavaScript's own stacks call a function without a name.
pub const ANONYMOUS: &str = "<anonymous>";

/// A function of an interpreted program.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// What the language calls it, with its class: `A.key`.
    pub name: Arc<str>,
    /// The file of its source.
    pub file: Arc<str>,
    lines: Lines,
}

/// How its lines are found.
#[derive(Debug, PartialEq, Eq)]
enum Lines {
    /// By a table, from the first one on.
    Table { kind: LineTable, first: u32, table: Box<[u8]>, is_whole: bool },
    /// Each frame has its own.
    InFrame,
    /// The function's own, by its source.
    Source(SourcePlace),
}

/// Where a function is in its source. Characters are counted in UTF-16 units.
#[derive(Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// Where it begins: at its parameters.
    pub start: usize,
    /// How long all of the source is.
    pub length: usize,
    /// Some of the source, from `excerpt_start` on; empty: none is known.
    pub excerpt: Box<[u16]>,
    /// See there.
    pub excerpt_start: usize,
    /// Whether the file has this source, once it was looked up.
    pub is_in_file: OnceLock<bool>,
}

impl Code {
    /// Of a content that a walk left; `None`: it is damaged.
    pub fn read(content: &[u8]) -> Option<Code> {
        let (head, rest) = content.split_at_checked(HEAD)?;
        let mut numbers = [0u32; HEAD / 4];
        for (number, bytes) in numbers.iter_mut().zip(head.as_chunks::<4>().0) {
            *number = u32::from_ne_bytes(*bytes);
        }
        let [first, name_kind, name_bytes, file_kind, file_bytes, total, kept, kind] = numbers;
        let (name, rest) = rest.split_at_checked(name_bytes as usize)?;
        let (file, rest) = rest.split_at_checked(file_bytes as usize)?;
        let table = rest.get(..kept as usize)?;
        let kind = *LineTable::ALL.get(kind as usize)?;
        let file = text(file, file_kind);
        let is_source = matches!(kind, LineTable::Source | LineTable::WideSource);
        Some(Code {
            name: match text(name, name_kind) {
                empty if is_source && empty.is_empty() => ANONYMOUS.into(),
                name => name.into(),
            },
            file: if is_source { path_of(&file).into() } else { file.into() },
            lines: match kind {
                LineTable::InFrame => Lines::InFrame,
                LineTable::Source => Lines::Source(SourcePlace::new(first, total, latin(table))),
                LineTable::WideSource => Lines::Source(SourcePlace::new(first, total, wide(table))),
                kind => Lines::Table { kind, first, table: table.into(), is_whole: kept == total },
            },
        })
    }

    /// The line of the instruction at `offset`; `None`: it has none, or it is not known.
    pub fn line(&self, offset: i32) -> Option<u32> {
        match (&self.lines, u32::try_from(offset)) {
            (Lines::Table { kind, first, table, .. }, Ok(offset)) => {
                let line = match kind {
                    LineTable::Differences => lines::differences,
                    LineTable::Ranges => lines::ranges,
                    LineTable::Indexed => lines::indexed,
                    LineTable::Bytecodes => lines::bytecodes::<1>,
                    LineTable::OlderBytecodes => lines::bytecodes::<0>,
                    LineTable::InFrame | LineTable::Locations | LineTable::Source | LineTable::WideSource => {
                        lines::locations
                    }
                };
                line(table, *first, offset)
            }
            // The code begins with instructions of the `def` line.
            (Lines::Table { first, .. }, Err(_)) => Some(*first),
            (Lines::InFrame, line) => line.ok().filter(|&line| line != 0),
            (Lines::Source(_), _) => None,
        }
    }

    /// Where it is in its file, from which its line is to be looked up.
    pub fn source(&self) -> Option<&SourcePlace> {
        if let Lines::Source(place) = &self.lines { Some(place) } else { None }
    }

    /// Whether all of it was copied.
    pub fn is_whole(&self) -> bool {
        !matches!(self.lines, Lines::Table { is_whole: false, .. })
    }

    /// Memory that it takes.
    pub fn bytes(&self) -> usize {
        let table = if let Lines::Table { table, .. } = &self.lines { table.len() } else { 0 };
        size_of::<Code>() + self.name.len() + self.file.len() + table
    }
}

impl SourcePlace {
    fn new(start: u32, length: u32, excerpt: Box<[u16]>) -> SourcePlace {
        let excerpt_start = start.saturating_sub(EXCERPT_BEFORE) as usize;
        let (start, length) = (start as usize, length as usize);
        SourcePlace { start, length, excerpt, excerpt_start, is_in_file: OnceLock::new() }
    }
}

fn latin(bytes: &[u8]) -> Box<[u16]> {
    bytes.iter().map(|&byte| byte.into()).collect()
}

fn wide(bytes: &[u8]) -> Box<[u16]> {
    bytes.as_chunks::<2>().0.iter().map(|two| u16::from_ne_bytes(*two)).collect()
}

/// The path that a script's name is, or its name. Modules have URLs.
fn path_of(name: &str) -> String {
    let Some(path) = name.strip_prefix("file://").filter(|path| path.starts_with('/')) else {
        return name.to_owned();
    };
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.first_chunk::<2>().and_then(|two| str::from_utf8(two).ok());
        let coded = digits.filter(|_| byte == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(coded.unwrap_or(byte));
        rest = if coded.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A string of `kind` bytes a character (PEP 393), or [`TEXT`].
pub(crate) fn text(bytes: &[u8], kind: u32) -> String {
    let character = |code: u32| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    match kind {
        TEXT if str::from_utf8(bytes).is_ok() => String::from_utf8_lossy(bytes).into_owned(),
        TEXT | 1 => bytes.iter().map(|&byte| char::from(byte)).collect(),
        2 => String::from_utf16_lossy(&wide(bytes)),
        _ => bytes.as_chunks::<4>().0.iter().map(|four| character(u32::from_ne_bytes(*four))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_all_widths_of_characters() {
        assert_eq!(text(b"caf\xe9", 1), "café");
        assert_eq!(text(&"жук".encode_utf16().flat_map(u16::to_ne_bytes).collect::<Vec<u8>>(), 2), "жук");
        assert_eq!(text(&"🐍".chars().flat_map(|c| (c as u32).to_ne_bytes()).collect::<Vec<u8>>(), 4), "🐍");
        assert_eq!((text("жук".as_bytes(), TEXT), text(b"caf\xe9", TEXT)), ("жук".into(), "café".into()));
        assert_eq!(text(&[0, 0xd8], 2), "\u{fffd}", "half of a pair");
    }

    #[test]
    fn scripts_are_known_by_their_paths() {
        for (name, path) in [
            ("file:///srv/a%20b/m.mjs?v=1", "/srv/a b/m.mjs"),
            ("/srv/100%.js", "/srv/100%.js"),
            ("file:///srv/%4", "/srv/%4"),
            ("node:fs", "node:fs"),
            ("file://host/x", "file://host/x"),
        ] {
            assert_eq!(path_of(name), path);
        }
    }

    #[test]
    fn damaged_content_is_no_function() {
        for length in 0..HEAD {
            assert_eq!(Code::read(&vec![0; length]), None);
        }
        assert_eq!(Code::read(&[0xff; 200]), None);
        assert!(Code::read(&[0; HEAD]).is_some());
    }
}
