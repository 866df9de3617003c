//! Text that needs no memory but its own place, for where there may be none.

use std::fmt::{self, Write};

/// Text in a place of a fixed size. What does not fit is left out; control characters are blanks.
#[derive(Debug)]
pub struct Text<const BYTES: usize> {
    bytes: [u8; BYTES],
    length: usize,
}

impl<const BYTES: usize> Text<BYTES> {
    /// No text.
    pub const fn empty() -> Self {
        Text { bytes: [0; BYTES], length: 0 }
    }

    /// Ends with a line's end, whose place the last character gives up if there is no other.
    pub fn end_line(&mut self) {
        while self.length >= BYTES {
            let last = self.as_str().chars().next_back().map_or(self.length, char::len_utf8);
            self.length -= last;
        }
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = b'\n';
            self.length += 1;
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Only whole characters are written.
        self.bytes.get(..self.length).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl<const BYTES: usize> From<&str> for Text<BYTES> {
    fn from(text: &str) -> Self {
        let mut from = Text::empty();
        let _ = from.write_str(text);
        from
    }
}

impl<const BYTES: usize> Write for Text<BYTES> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            let c = if c.is_control() { ' ' } else { c };
            let end = self.length + c.len_utf8();
            let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
            c.encode_utf8(place);
            self.length = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_between_characters() {
        let mut odd = Text::<3>::empty();
        assert!(odd.write_str("ää").is_err());
        assert_eq!(odd.as_str(), "ä");
        odd.end_line();
        assert_eq!(odd.as_str(), "ä\n");
        let mut full = Text::<2>::from("ab");
        full.end_line();
        assert_eq!(full.as_str(), "a\n");
    }
}
