//! What a page of Markdown shows of code: fenced blocks, and commands within sentences.

use std::path::Path;
use swipr_c_tests::agent::checkout;

/// Words that a command in a sentence begins with. Others (a function's name, a format) are no
/// commands.
const COMMANDS: [&str; 18] = [
    "swipr",
    "curl",
    "cargo",
    "go",
    "google-pprof",
    "docker",
    "kubectl",
    "grep",
    "tr",
    "perf",
    "strip",
    "node",
    "python",
    "py-spy",
    "GET",
    "pip",
    "cc",
    "strace",
];

/// Folders of programs of this repository.
const FOLDERS: [&str; 6] = ["packages/", "loader-scripts/", "benches/", "c-tests/", "crates/unwind/", "./"];

/// A piece of code on a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The page, from the checkout.
    pub page: String,
    /// The line it begins in.
    pub line: usize,
    /// What the fence says: `sh`, `c`, …; `span` of a command within a sentence.
    pub language: String,
    /// The code.
    pub text: String,
}

/// The pages that tell users what to type.
pub fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "ARCHITECTURE.md".to_owned()];
    for folder in ["docs", "docs/decisions"] {
        let entries = std::fs::read_dir(checkout().join(folder)).expect("a folder of pages");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        pages.extend(names.filter(|name| name.ends_with(".md")).map(|name| format!("{folder}/{name}")));
    }
    pages.sort();
    pages
}

/// Everything on all pages.
pub fn all() -> Vec<Snippet> {
    pages().iter().flat_map(|page| of(page, &super::read(&checkout().join(page)))).collect()
}

/// What a page shows.
pub fn of(page: &str, text: &str) -> Vec<Snippet> {
    let mut found = Vec::new();
    let mut block: Option<Snippet> = None;
    for (index, line) in text.lines().enumerate() {
        let snippet = |language: &str, text: &str| Snippet {
            page: page.to_owned(),
            line: index + 1,
            language: language.to_owned(),
            text: text.to_owned(),
        };
        match (line.trim_start().strip_prefix("```"), &mut block) {
            (Some(language), None) => block = Some(snippet(language, "")),
            (Some(_), Some(_)) => found.extend(block.take()),
            (None, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {
                let spans = line.split('`').skip(1).step_by(2);
                found.extend(spans.filter(|span| is_command(span)).map(|span| snippet("span", span)));
            }
        }
    }
    assert!(block.is_none(), "{page}: a block does not end");
    found
}

fn is_command(span: &str) -> bool {
    // Variables that are set for it.
    let is_setting = |word: &&str| word.split_once('=').is_some_and(|(name, _)| is_variable(name));
    let mut words = span.split_whitespace();
    let first = words.by_ref().find(|word| !is_setting(word)).unwrap_or_default();
    let has_arguments = words.next().is_some() || span.split_whitespace().next() != Some(first);
    let is_program = COMMANDS.contains(&first) || FOLDERS.iter().any(|folder| first.starts_with(folder));
    has_arguments && is_program && Path::new(first).extension().is_none_or(|suffix| suffix == "sh")
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

#[test]
fn blocks_and_commands_in_sentences_are_found_and_words_are_not() {
    let page = "Ask `swipr ls` or `PATH`, `A=1 ./x y`:\n\n```sh\nls\n`x`\n```\nand `GET /x`, `f(a b)`, `c-tests/a.c b`.\n";
    let found = of("p", page);
    let shown: Vec<String> =
        found.iter().map(|it| format!("{} {} {}", it.line, it.language, it.text)).collect();
    assert_eq!(shown, ["1 span swipr ls", "1 span A=1 ./x y", "3 sh ls\n`x`\n", "7 span GET /x"]);
}
