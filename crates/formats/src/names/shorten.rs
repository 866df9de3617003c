//! Demangled C++, Rust and Swift names without argument lists and return types.
//! Not here: what any name must keep to (`names.rs`), and demangling.
//!
//! FlameGraph cuts a name at its first parenthesis, wherever that is, so that
//! `f(int)::{lambda(int)#1}` and `f(int)::{lambda(int)#2}` become one. Argument lists are therefore
//! dropped here. Parentheses that make functions different become braces. Return types that C++
//! demanglers put in front of templates stay: they cannot be separated from the name without
//! knowing the language.

/// `name` without what readers would cut anyway.
pub(super) fn shorten(name: &str) -> String {
    let mut writer =
        Writer { rest: without_rust_hash(name), out: String::with_capacity(name.len()), open: Vec::new() };
    while writer.step() {}
    call_operators_whole(writer.out.trim_end())
}

/// Keeps the parentheses of a call operator only at the end of a name, where cutting
/// them off loses nothing.
fn call_operators_whole(name: &str) -> String {
    const CALL: &str = "operator()";
    match name.strip_suffix(CALL) {
        Some(rest) => rest.replace(CALL, "operator{}") + CALL,
        None => name.replace(CALL, "operator{}"),
    }
}

/// Operators whose name contains brackets or an arrow, longest first.
const OPERATORS: [(&str, &str); 13] = [
    ("<=>", "<=>"),
    ("<<=", "<<="),
    (">>=", ">>="),
    ("->*", "→*"),
    ("->", "→"),
    ("<<", "<<"),
    (">>", ">>"),
    ("<=", "<="),
    (">=", ">="),
    ("<", "<"),
    (">", ">"),
    ("()", "()"),
    ("[]", "[]"),
];

/// What may stand between an argument list and the next part of a name.
const QUALIFIERS: [&str; 9] =
    [" const", " volatile", " noexcept", " async", " rethrows", " throws", " &&", " &", "&"];

/// Endings of Swift's accessor names, after which ` : ` begins a type.
const ACCESSORS: [&str; 7] = ["getter", "setter", "modify", "read", "didset", "willset", "init"];

/// A bracket that is open in what was written.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// Opened by this character, written as it is.
    AsWritten(char),
    /// A parenthesis written as a brace.
    Braced,
}

struct Writer<'a> {
    /// What is still to be read.
    rest: &'a str,
    out: String,
    open: Vec<Open>,
}

impl Writer<'_> {
    /// Reads one piece of the name; false at its end.
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else {
            return false;
        };
        match first {
            '(' => self.parenthesis(),
            ')' | '>' | '}' | ']' => self.close(first),
            '<' | '{' | '[' => {
                self.open.push(Open::AsWritten(first));
                self.copy(first);
            }
            '-' if self.rest.starts_with("->") => self.arrow(),
            'o' if self.at_operator() => self.operator(),
            ' ' if self.open.is_empty() && self.rest.starts_with(" : ") && self.at_accessor() => {
                self.rest = "";
            }
            ' ' if self.out.is_empty() || self.out.ends_with(' ') => self.skip(1),
            other => self.copy(other),
        }
        true
    }

    fn copy(&mut self, character: char) {
        self.out.push(character);
        self.skip(character.len_utf8());
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or("");
    }

    fn at_accessor(&self) -> bool {
        ACCESSORS.iter().any(|ending| self.out.ends_with(ending))
    }

    fn at_operator(&self) -> bool {
        let follows_name = self.out.chars().next_back().is_some_and(is_identifier);
        let after = self.rest.strip_prefix("operator");
        !follows_name && after.is_some_and(|after| !after.starts_with(is_identifier))
    }

    fn operator(&mut self) {
        self.out.push_str("operator");
        self.skip("operator".len());
        let known = OPERATORS.iter().find(|(text, _)| self.rest.starts_with(text));
        if let Some((text, written)) = known {
            self.out.push_str(written);
            self.skip(text.len());
        }
    }

    /// An arrow begins a return type, unless it stands inside brackets.
    fn arrow(&mut self) {
        if self.open.is_empty() && self.out.ends_with(' ') {
            let length = type_length(self.rest);
            self.skip(length);
            self.out.truncate(self.out.trim_end().len());
        } else {
            self.out.push('→');
            self.skip("->".len());
        }
    }

    fn close(&mut self, bracket: char) {
        let matching = match (self.open.last(), bracket) {
            (Some(Open::Braced), ')') => true,
            (Some(Open::AsWritten(open)), _) => closing(*open) == bracket,
            _ => false,
        };
        let braced = bracket == ')' && !(matching && self.open.last() == Some(&Open::AsWritten('(')));
        if matching {
            self.open.pop();
        }
        self.out.push(if braced { '}' } else { bracket });
        self.skip(bracket.len_utf8());
    }

    fn parenthesis(&mut self) {
        let anonymous = "(anonymous namespace)";
        if self.rest.starts_with(anonymous) {
            self.out.push_str("{anonymous}");
            self.skip(anonymous.len());
        } else if !self.open.is_empty() || self.keeps_group() {
            self.out.push('{');
            self.open.push(Open::Braced);
            self.skip(1);
        } else if self.out.ends_with('.') {
            self.after_dot();
        } else {
            self.drop_arguments();
        }
    }

    /// A parenthesis that is no argument list: at the start of a name, after
    /// `decltype`, or around a pointer declarator.
    fn keeps_group(&self) -> bool {
        let declarator = self.rest.starts_with("(*") || self.rest.starts_with("(&");
        self.out.is_empty() || self.out.ends_with("decltype") || (declarator && self.out.ends_with(' '))
    }

    /// `.(*Client)` of Go stays; `.(f in _8A2…)`, a private name of Swift, is `f`.
    fn after_dot(&mut self) {
        let (inside, after) = split_group(self.rest);
        if let Some((name, _)) = inside.split_once(" in ") {
            self.out.extend(name.chars().filter(|c| !matches!(c, '(' | ')')));
            self.rest = after;
        } else {
            self.open.push(Open::AsWritten('('));
            self.copy('(');
        }
    }

    fn drop_arguments(&mut self) {
        let (_, after) = split_group(self.rest);
        self.rest = after;
        while let Some(after) = QUALIFIERS.iter().find_map(|q| self.rest.strip_prefix(q)) {
            if after.starts_with(is_identifier) {
                break;
            }
            self.rest = after;
        }
        // Java writes the result's type right behind: `run(I)Ljava/lang/String;`.
        if self.rest.starts_with(is_identifier) || self.rest.starts_with('[') {
            let end = self.rest.find(' ').unwrap_or(self.rest.len());
            self.skip(end);
        }
    }
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '<' => '>',
        '{' => '}',
        _ => ']',
    }
}

/// What stands between the parenthesis that `text` begins with and its partner, and
/// what stands behind it. Without a partner everything is inside.
fn split_group(text: &str) -> (&str, &str) {
    let mut depth = 0usize;
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let inside = text.get(1..index).unwrap_or("");
            let after = text.get(index + character.len_utf8()..).unwrap_or("");
            return (inside, after);
        }
    }
    (text.get(1..).unwrap_or(""), "")
}

/// Bytes of the arrow and the return type that `text` begins with: up to ` in ` or
/// ` to ` outside of brackets.
fn type_length(text: &str) -> usize {
    let mut depth = 0usize;
    let mut previous = ' ';
    for (index, character) in text.char_indices() {
        match character {
            '(' | '[' | '<' | '{' => depth += 1,
            '>' if previous == '-' => {}
            ')' | ']' | '>' | '}' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => {
                let here = text.get(index..).unwrap_or("");
                if here.starts_with(" in ") || here.starts_with(" to ") {
                    return index;
                }
            }
            _ => {}
        }
        previous = character;
    }
    text.len()
}

/// The name without the `::h0123456789abcdef` of legacy Rust names.
fn without_rust_hash(name: &str) -> &str {
    super::without_hash(name)
        .and_then(|rest| rest.strip_suffix("::"))
        .filter(|rest| !rest.is_empty())
        .unwrap_or(name)
}
