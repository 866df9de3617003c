//! Programs for the tests: compiled once into the target directory, and what an
//! independent reader says about them.

#![allow(dead_code)] // Each test file uses a part of this.

use object::{Object, ObjectSection, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use swipr_symbols::symbolizer::{Budget, Lookup, ObjectKey, Symbol, Symbolizer};

/// A program with functions inlined into one another.
pub const C: &str = "inlines.c";

/// An empty directory of one test.
pub fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The path of a source file in `tests/programs`.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Runs a tool that must succeed.
pub fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|e| panic!("{program}: {e}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {stderr}");
}

/// Those of these tools that are installed; the others are reported by a line, `not run: …`.
/// `.ci/run` needs all of them.
pub fn installed<const COUNT: usize>(tools: [&'static str; COUNT]) -> impl Iterator<Item = &'static str> {
    tools.into_iter().filter(|tool| {
        let is_there = Command::new(tool).arg("--version").output().is_ok();
        if !is_there {
            println!("not run: {tool} is not installed");
        }
        is_there
    })
}

/// Compiles a program of `tests/programs` into a directory.
pub fn compile(into: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let program = into.join(name.replace('.', "-"));
    let (source, out) = (source(name), program.to_str().unwrap());
    let source = source.to_str().unwrap();
    let compiler = match name.rsplit('.').next() {
        Some("c") => "gcc",
        Some("cpp") => "g++",
        _ => "rustc",
    };
    run(compiler, &[&[source, "-o", out], arguments].concat());
    program
}

/// The line of a source file that ends in a comment with this text.
pub fn line_of(name: &str, mark: &str) -> u32 {
    let text = std::fs::read_to_string(source(name)).unwrap();
    let is_marked =
        |line: &str| line.ends_with(&format!("/* {mark} */")) || line.ends_with(&format!("// {mark}"));
    text.lines().position(is_marked).unwrap_or_else(|| panic!("no mark {mark}")) as u32 + 1
}

/// Address and size of a function whose linker's name satisfies the condition.
pub fn function(program: &Path, is_it: impl Fn(&str) -> bool) -> (u64, u64) {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let found = file.symbols().find(|symbol| symbol.name().is_ok_and(&is_it)).expect("no such function");
    (found.address(), found.size())
}

/// Address and size of a section.
pub fn section(program: &Path, name: &str) -> (u64, u64) {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(name).expect("no such section");
    (section.address(), section.size())
}

/// The key of a file as it is now.
pub fn key(program: &Path) -> ObjectKey {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    ObjectKey::at(program.to_str().unwrap(), file.build_id().unwrap().unwrap_or_default())
}

/// A fresh symbolizer's answers for every address of a range.
pub fn resolve_all(key: &ObjectKey, (start, size): (u64, u64)) -> Vec<Arc<[Symbol]>> {
    let mut symbolizer = Symbolizer::new(Budget::default());
    (start..start + size).map(|address| symbolizer.resolve(key, address, Lookup::Pc)).collect()
}

/// The names, lines and inlining of an answer, innermost first.
pub fn frames(symbols: &[Symbol]) -> Vec<(&str, Option<u32>, bool)> {
    symbols.iter().map(|symbol| (&*symbol.name, symbol.line, symbol.inlined)).collect()
}

/// Some address of the function must resolve to exactly these frames.
pub fn expect(program: &Path, symbol: &str, expected: &[(&str, u32, bool)]) {
    let answers = resolve_all(&key(program), function(program, |name| name.contains(symbol)));
    let expected: Vec<_> =
        expected.iter().map(|&(name, line, inlined)| (name, Some(line), inlined)).collect();
    let seen: Vec<_> = answers.iter().map(|answer| frames(answer)).collect();
    assert!(seen.contains(&expected), "{expected:?} is not among {seen:#?}");
}

/// The frames of that program that everything with full debug information must give.
pub fn expect_c(program: &Path) {
    let line = |mark| line_of(C, mark);
    let chain = [
        ("innermost", line("innermost"), true),
        ("middle", line("middle"), true),
        ("outer", line("outer"), false),
    ];
    expect(program, "outer", &chain);
    expect(program, "hidden", &[("hidden", line("hidden"), false)]);
}

/// A small generator with a fixed seed: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
