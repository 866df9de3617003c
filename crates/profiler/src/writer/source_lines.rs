//! The line of a function's start, by its file. The program may have read another text than the
//! file has now: the line is known only if the length and an excerpt are the same.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use swipr_runtimes::code::SourcePlace;

/// Files that are kept, and the bytes of the largest.
const MAX_FILES: usize = 4;
const MAX_BYTES: u64 = 16 << 20;
/// Node.js leaves it out.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The files of the last functions.
#[derive(Debug, Default)]
pub struct SourceLines {
    recent: Vec<(Arc<str>, Option<SourceText>)>,
}

#[derive(Debug)]
struct SourceText {
    text: String,
    /// In UTF-16 units.
    length: usize,
}

impl SourceLines {
    /// The line of that place in the file.
    pub fn line(&mut self, file: &Arc<str>, place: &SourcePlace) -> Option<u32> {
        if !self.recent.iter().any(|(known, _)| known == file) {
            if self.recent.len() >= MAX_FILES {
                self.recent.remove(0);
            }
            self.recent.push((file.clone(), SourceText::read(file)));
        }
        let (_, text) = self.recent.iter().find(|(known, _)| known == file)?;
        text.as_ref()?.line(place)
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
        let text = text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text);
        let length = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
        SourceText { text, length }
    }

    fn line(&self, place: &SourcePlace) -> Option<u32> {
        if self.length != place.length || place.start > self.length {
            return None;
        }
        let (before, _) = self.text.split_at_checked(self.byte_at(place.start)?)?;
        let (_, from) = self.text.split_at_checked(self.byte_at(place.excerpt_start)?)?;
        let is_it = from.encode_utf16().take(place.excerpt.len()).eq(place.excerpt.iter().copied());
        u32::try_from(1 + line_breaks(before)).ok().filter(|_| is_it)
    }

    /// Where the UTF-16 unit with this number begins.
    fn byte_at(&self, unit: usize) -> Option<usize> {
        if self.length == self.text.len() {
            return Some(unit);
        }
        let mut units = 0;
        for (at, character) in self.text.char_indices() {
            if units >= unit {
                return (units == unit).then_some(at);
            }
            units += character.len_utf16();
        }
        (units == unit).then_some(self.text.len())
    }
}

/// As the language counts lines.
fn line_breaks(text: &str) -> usize {
    let both = text.matches("\r\n").count();
    text.matches(['\n', '\r', '\u{2028}', '\u{2029}']).count() - both
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    fn place(text: &str, start: usize, excerpt: &str) -> SourcePlace {
        let excerpt_start = start.saturating_sub(2);
        let (length, excerpt) = (text.encode_utf16().count(), excerpt.encode_utf16().collect());
        SourcePlace { start, length, excerpt, excerpt_start, line: OnceLock::new() }
    }

    #[test]
    fn lines_are_counted_up_to_the_function() {
        let text = "a\r\nb\rf(x)\u{2028}\u{1f600}g(y)\n";
        let line = |place: SourcePlace| SourceText::new(text.to_owned()).line(&place);
        assert_eq!(line(place(text, 0, "a\r\nb")), Some(1));
        assert_eq!(line(place(text, 6, "\rf(x)")), Some(3));
        assert_eq!(line(place(text, 13, "\u{1f600}g(y)")), None, "half of a character");
        assert_eq!(line(place(text, 12, "\u{1f600}g(y)")), Some(4));
        assert_eq!(line(place(text, 6, "\rg(x)")), None, "another text");
        assert_eq!(line(SourcePlace { length: 5, ..place(text, 0, "") }), None, "another length");
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        for path in ["/dev/zero", "/proc", "/no/such", "node:fs", ""] {
            assert_eq!(SourceLines::default().line(&path.into(), &place("a", 0, "a")), None, "{path}");
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/writer/source_lines.rs");
        let text = include_str!("source_lines.rs");
        let start = text.find("const MAX_FILES").unwrap();
        let line = SourceLines::default().line(&path.into(), &place(text, start, "\n\nconst"));
        assert_eq!(line, None);
        let start = text[..start].encode_utf16().count();
        let line = SourceLines::default().line(&path.into(), &place(text, start, ".\nconst MAX"));
        assert_eq!(line, Some(1 + text[..start].matches('\n').count() as u32));
    }
}
