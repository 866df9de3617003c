//! Makes scripts and style sheets shorter without changing what they mean: comments and blanks go,
//! names stay.

/// A script. Statements must end with semicolons.
pub fn script(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&char) = chars.get(at) {
        let next = chars.get(at + 1).copied().unwrap_or(' ');
        match char {
            '/' if next == '/' => at = until(&chars, at, |c| c == '\n'),
            '/' if next == '*' => {
                while at < chars.len() && !(chars[at] == '*' && chars.get(at + 1) == Some(&'/')) {
                    at += 1;
                }
                at += 2;
            }
            '"' | '`' => at = literal(&chars, at, char, &mut out),
            '/' if begins_regex(&out) => at = literal(&chars, at, '/', &mut out),
            c if c.is_whitespace() => {
                at = until(&chars, at, |c| !c.is_whitespace());
                let comment = chars.get(at) == Some(&'/') && matches!(chars.get(at + 1), Some('/' | '*'));
                let (before, after) =
                    (out.chars().next_back().unwrap_or(' '), chars.get(at).copied().unwrap_or(' '));
                let needed = is_word(before) && (comment || is_word(after))
                    || before == after && "+-".contains(before);
                if needed {
                    out.push(' ');
                }
            }
            c => {
                out.push(c);
                at += 1;
            }
        }
    }
    out.replace(";}", "}")
}

/// A style sheet without strings that have several blanks.
pub fn style(text: &str) -> String {
    text.lines().map(str::trim).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_$#".contains(c)
}

fn until(chars: &[char], from: usize, stop: impl Fn(char) -> bool) -> usize {
    (from..chars.len()).find(|&at| stop(chars[at])).unwrap_or(chars.len())
}

/// Copies a string, a template without templates in it, or a regular expression; returns where it
/// ends.
fn literal(chars: &[char], from: usize, end: char, out: &mut String) -> usize {
    out.push(chars[from]);
    let (mut at, mut in_class) = (from + 1, false);
    while let Some(&char) = chars.get(at) {
        out.push(char);
        at += 1;
        match char {
            '\\' => {
                out.extend(chars.get(at));
                at += 1;
            }
            '[' if end == '/' => in_class = true,
            ']' if end == '/' => in_class = false,
            c if c == end && !in_class => break,
            _ => {}
        }
    }
    at
}

/// A slash divides behind a value, and begins a regular expression elsewhere.
fn begins_regex(before: &str) -> bool {
    before.trim_end().chars().next_back().is_none_or(|c| "(,=>:[!&|?{};".contains(c))
}
