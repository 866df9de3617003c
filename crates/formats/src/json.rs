//! JSON that is valid whatever the names are, written straight into the output. Not
//! here: reading, and which fields there are.

use std::fmt::Write;

/// `text` as a JSON string, quotes included. Line separators are escaped too, so that
/// a line of the output is a line to every reader.
pub(crate) fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// An address as a string: JSON readers round integers above 2^53.
pub(crate) fn hex(number: u64) -> String {
    format!("\"0x{number:x}\"")
}

/// Bytes as a string of hexadecimal digits, without quotes.
pub(crate) fn hex_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// An object or array under construction: members with commas between them.
pub(crate) struct Members {
    text: String,
    end: char,
}

impl Members {
    pub(crate) fn object() -> Self {
        Members { text: String::from("{"), end: '}' }
    }

    pub(crate) fn array() -> Self {
        Members { text: String::from("["), end: ']' }
    }

    /// Adds a member of an object; `value` is JSON.
    pub(crate) fn field(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.comma();
        let _ = write!(self.text, "{}:{value}", string(name));
        self
    }

    /// Adds a member of an object if there is a value.
    pub(crate) fn maybe(self, name: &str, value: Option<impl std::fmt::Display>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds an element of an array; `value` is JSON.
    pub(crate) fn element(mut self, value: impl std::fmt::Display) -> Self {
        self.push(value);
        self
    }

    /// The same in place.
    pub(crate) fn push(&mut self, value: impl std::fmt::Display) {
        self.comma();
        let _ = write!(self.text, "{value}");
    }

    pub(crate) fn end(mut self) -> String {
        self.text.push(self.end);
        self.text
    }

    fn comma(&mut self) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_comes_back() {
        let all: String = (0..0x3000).filter_map(char::from_u32).collect();
        let quoted = string(&all);
        assert!(!quoted.contains('\n'));
        assert_eq!(serde_json::from_str::<String>(&quoted).ok(), Some(all));
    }

    #[test]
    fn members_are_separated_by_commas() {
        let array = Members::array().element(1).element(2).end();
        let object = Members::object().field("a\"", array).field("b", 3).end();
        assert_eq!(object, r#"{"a\"":[1,2],"b":3}"#);
        assert_eq!(Members::object().end(), "{}");
    }
}
