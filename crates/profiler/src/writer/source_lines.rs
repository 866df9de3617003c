//! Lines of places in scripts, by their files. The program may have read another text than the file
//! has now: a line is known only if the length and an excerpt are the same.

use rustc_hash::FxHashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use swipr_runtimes::code::SourcePlace;

/// Texts that are kept, and the bytes of the largest.
const MAX_TEXTS: usize = 4;
const MAX_BYTES: u64 = 16 << 20;
/// Lines of files that are kept; more: all are forgotten.
const MAX_LINES: usize = 1 << 20;
/// UTF-16 units from one mark in a text to the next.
const MARK_EVERY: usize = 1024;
/// Node.js leaves it out of ES modules, and not of others.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The files of the last functions.
#[derive(Debug, Default)]
pub struct SourceLines {
    texts: Vec<(Arc<str>, Option<SourceText>)>,
    files: FxHashMap<Arc<str>, Option<LineStarts>>,
    lines: usize,
}

/// Where the lines of a file begin. Characters are counted in UTF-16 units.
#[derive(Debug)]
struct LineStarts {
    /// Of all.
    length: usize,
    has_mark: bool,
    starts: Box<[u32]>,
}

#[derive(Debug)]
struct SourceText {
    text: String,
    /// In UTF-16 units.
    length: usize,
    /// It begins with a byte order mark.
    has_mark: bool,
    /// The first character from each so many units on: its unit, and its byte. None where units
    /// are bytes.
    marks: Box<[(usize, usize)]>,
}

impl SourceLines {
    /// The line of a place in the file; `None`: of the function's start.
    pub fn line(&mut self, file: &Arc<str>, source: &SourcePlace, place: Option<u32>) -> Option<u32> {
        let is_in_file =
            source.is_in_file.get_or_init(|| self.text(file).is_some_and(|text| text.has(source)));
        // Maglev's code of a generator has been seen to be at the start of the file (Node.js 25).
        let place = place.map_or(source.start, |place| source.start.max(place as usize));
        let lines = self.lines(file).filter(|_| *is_in_file)?;
        lines.line(place + left_out(lines.length, lines.has_mark, source)?)
    }

    fn lines(&mut self, file: &Arc<str>) -> Option<&LineStarts> {
        if !self.files.contains_key(file) {
            let lines = self.text(file).map(SourceText::lines);
            if self.lines > MAX_LINES {
                (self.files, self.lines) = <_>::default();
            }
            self.lines += lines.as_ref().map_or(1, |lines| lines.starts.len());
            self.files.insert(file.clone(), lines);
        }
        self.files.get(file)?.as_ref()
    }

    fn text(&mut self, file: &Arc<str>) -> Option<&SourceText> {
        if !self.texts.iter().any(|(known, _)| known == file) {
            if self.texts.len() >= MAX_TEXTS {
                self.texts.remove(0);
            }
            self.texts.push((file.clone(), SourceText::read(file)));
        }
        self.texts.iter().find(|(known, _)| known == file)?.1.as_ref()
    }
}

/// How many units of a text of this length the source lacks at its beginning; `None`: it is another
/// text.
fn left_out(length: usize, has_mark: bool, source: &SourcePlace) -> Option<usize> {
    length.checked_sub(source.length).filter(|&units| units <= usize::from(has_mark))
}

impl LineStarts {
    fn line(&self, place: usize) -> Option<u32> {
        let before = self.starts.partition_point(|&start| start as usize <= place);
        u32::try_from(before).ok().filter(|_| place <= self.length)
    }
}

impl SourceText {
    /// `None`: it is no file, or too large a one.
    fn read(path: &str) -> Option<SourceText> {
        let path = Some(path).filter(|path| path.starts_with('/'))?;
        // A pipe is not waited for.
        let file: File = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        file.metadata().ok().filter(|found| found.is_file() && found.len() <= MAX_BYTES)?;
        let mut bytes = vec![];
        file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
        Some(SourceText::new(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn new(text: String) -> SourceText {
        let has_mark = text.starts_with(BYTE_ORDER_MARK);
        let (mut marks, mut length) = (vec![], 0);
        if text.is_ascii() {
            length = text.len();
        } else {
            for (at, character) in text.char_indices() {
                if length >= MARK_EVERY * marks.len() {
                    marks.push((length, at));
                }
                length += character.len_utf16();
            }
        }
        SourceText { text, length, has_mark, marks: marks.into() }
    }

    /// Whether the source is this text.
    fn has(&self, source: &SourcePlace) -> bool {
        let left_out = left_out(self.length, self.has_mark, source);
        let start = left_out.and_then(|units| self.byte_at(source.excerpt_start + units));
        let from = start.and_then(|at| self.text.get(at..));
        let is_it =
            |from: &str| from.encode_utf16().take(source.excerpt.len()).eq(source.excerpt.iter().copied());
        source.start <= self.length && from.is_some_and(is_it)
    }

    /// Where the UTF-16 unit with this number begins.
    fn byte_at(&self, unit: usize) -> Option<usize> {
        if self.marks.is_empty() {
            return Some(unit);
        }
        let before = self.marks.partition_point(|(mark, _)| *mark <= unit).checked_sub(1)?;
        let (mut units, from) = *self.marks.get(before)?;
        for (at, character) in self.text.get(from..)?.char_indices() {
            if units >= unit {
                return (units == unit).then_some(from + at);
            }
            units += character.len_utf16();
        }
        (units == unit).then_some(self.text.len())
    }

    /// As the language counts lines.
    fn lines(&self) -> LineStarts {
        let (mut starts, mut at, mut last) = (vec![0], 0u32, None);
        for character in self.text.chars() {
            let is_second = (last, character) == (Some('\r'), '\n');
            at += character.len_utf16() as u32;
            if is_second {
                starts.pop();
            }
            if matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}') {
                starts.push(at);
            }
            last = Some(character);
        }
        LineStarts { length: self.length, has_mark: self.has_mark, starts: starts.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    fn place(text: &str, start: usize, excerpt: &str) -> SourcePlace {
        let excerpt_start = start.saturating_sub(2);
        let (length, excerpt) = (text.encode_utf16().count(), excerpt.encode_utf16().collect());
        SourcePlace { start, length, excerpt, excerpt_start, is_in_file: OnceLock::new() }
    }

    #[test]
    fn lines_are_counted_up_to_the_function() {
        let text = "a\r\nb\rf(x)\u{2028}\u{1f600}g(y)\n";
        let file: Arc<str> = "/a.js".into();
        let line_of = |source: SourcePlace, place: Option<u32>| {
            let mut lines = SourceLines::default();
            lines.texts.push((file.clone(), Some(SourceText::new(text.to_owned()))));
            lines.line(&file, &source, place)
        };
        let line = |source: SourcePlace| line_of(source, None);
        assert_eq!(line(place(text, 0, "a\r\nb")), Some(1));
        assert_eq!(line(place(text, 6, "\rf(x)")), Some(3));
        assert_eq!(line(place(text, 12, "\u{1f600}g(y)")), Some(4));
        assert_eq!(line(place(text, 6, "\rg(x)")), None, "another text");
        assert_eq!(line(SourcePlace { length: 5, ..place(text, 0, "") }), None, "another length");
        let whole = || place(text, 0, "a\r\nb");
        let lines = [0, 2, 3, 4, 5, 9, 10, 16, 17, 18].map(|at| line_of(whole(), Some(at)));
        assert_eq!(lines[..9], [1, 1, 2, 2, 3, 3, 4, 4, 5].map(Some));
        assert_eq!(lines[9], None, "behind the end");
        assert_eq!(line_of(place(text, 6, "\rf(x)"), Some(0)), Some(3), "before the function");
    }

    /// Regression: functions of CommonJS files with such a mark had no line.
    #[test]
    fn a_byte_order_mark_is_part_of_the_source_or_left_out() {
        let file: Arc<str> = "/a.js".into();
        let line = |text: &str, source: SourcePlace| {
            let mut lines = SourceLines::default();
            lines.texts.push((file.clone(), Some(SourceText::new(text.to_owned()))));
            lines.line(&file, &source, None)
        };
        let (common, module) = ("\u{feff}a;\nf(é)\n", "a;\nf(é)\n");
        assert_eq!(line(common, place(common, 4, ";\nf(é")), Some(2));
        assert_eq!(line(common, place(module, 3, ";\nf(é")), Some(2));
        assert_eq!(line(module, place(common, 4, ";\nf(é")), None, "another length");
    }

    #[test]
    fn bytes_are_found_by_units_in_texts_of_all_widths() {
        for unit in ["a", "é", "ж\u{1f600}", "\u{1f600}"] {
            let text = SourceText::new(unit.repeat(3000));
            let mut at = 0;
            for (byte, character) in text.text.char_indices() {
                assert_eq!(text.byte_at(at), Some(byte), "{unit} {at}");
                at += character.len_utf16();
            }
            assert_eq!((text.length, text.byte_at(at)), (at, Some(text.text.len())));
        }
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        for path in ["/dev/zero", "/proc", "/no/such", "node:fs", ""] {
            assert_eq!(SourceLines::default().line(&path.into(), &place("a", 0, "a"), None), None, "{path}");
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/writer/source_lines.rs");
        let text = include_str!("source_lines.rs");
        let start = text.find("const MAX_TEXTS").unwrap();
        let line = SourceLines::default().line(&path.into(), &place(text, start, "\n\nconst"), None);
        assert_eq!(line, None);
        let start = text[..start].encode_utf16().count();
        let line = SourceLines::default().line(&path.into(), &place(text, start, ".\nconst MAX"), None);
        assert_eq!(line, Some(1 + text[..start].matches('\n').count() as u32));
    }
}
