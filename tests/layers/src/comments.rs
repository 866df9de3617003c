//! The comments of a file: what starts with `//`, outside of strings.

/// One line of a comment.
pub struct Comment {
    /// Counted from 1.
    pub line: usize,
    /// From the first slash to the end of the line.
    pub text: String,
    /// Whether there is nothing but the comment in the line.
    pub alone: bool,
    /// How long the whole line is, in characters.
    pub columns: usize,
}

/// All comments of a file.
pub fn of(text: &str) -> Vec<Comment> {
    let mut comments = Vec::new();
    let (mut at, mut counted, mut line) = (0, 0, 1);
    while at < text.len() {
        let rest = &text[at..];
        at += if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            line += text[counted..at].matches('\n').count();
            counted = at;
            comments.push(comment(text, at, length, line));
            length
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with('"') {
            quoted(rest)
        } else if rest.starts_with('\'') {
            character(rest)
        } else if let Some(length) = raw(text, at) {
            length
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
    }
    comments
}

fn comment(text: &str, at: usize, length: usize, line: usize) -> Comment {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    Comment {
        line,
        text: text[at..at + length].to_string(),
        alone: text[start..at].trim().is_empty(),
        columns: text[start..at + length].chars().count(),
    }
}

/// How long the string is that starts here.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// How long the character is that starts here, or the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 3)
        }
        Some(_) => characters.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

/// How long the raw string is that starts here, if one does.
fn raw(text: &str, at: usize) -> Option<usize> {
    let is_in_a_name =
        text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') && !text[..at].ends_with('b');
    let rest = text[at..].strip_prefix('r').filter(|_| !is_in_a_name)?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let end = format!("\"{}", "#".repeat(hashes));
    let inside = rest[hashes..].strip_prefix('"')?;
    Some(1 + hashes + 1 + inside.find(&end)? + end.len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn comments_are_found_outside_of_strings() {
        let text = "//! one\nlet a = \"// no \\\" // no\"; // two\nlet b = r#\"\n// no \" // no\n\"#;\n\
                    fn c<'a>(d: &'a str) { '\"'; '\\''; '\\u{22}' } /* // no */ /// three\n";
        let found: Vec<String> = super::of(text).iter().map(|c| format!("{}{}", c.line, c.text)).collect();
        assert_eq!(found, ["1//! one", "2// two", "6/// three"]);
    }
}
