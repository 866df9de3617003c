//! What documents show for Rust programs, in a program of that kind: a package of its own, which
//! has this repository's as a dependency.

use super::snippets;
use crate::support::*;
use std::process::Command;
use swipr_c_tests::agent::{self, checkout};
use swipr_c_tests::directory::Directory;

/// What pieces of code take for granted.
const BEFORE: &str = "#![allow(unused_imports, unused_variables)]\nuse std::fs::File;\n\
    fn work() -> u64 { (0..300_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)) }\n";

#[test]
fn every_piece_of_rust_in_the_documents_is_part_of_a_program_that_runs() {
    let all = snippets::all();
    let of = |language: &'static str| all.iter().filter(move |snippet| snippet.language == language);
    let dependency =
        of("toml").find(|snippet| snippet.text.starts_with("[dependencies]\n")).expect("a dependency");
    let here = checkout().display().to_string();
    let directory = Directory::new();
    let manifest = format!(
        "[package]\nname = \"program-of-a-user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n{}",
        dependency.text.replace('…', &here)
    );
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).expect("a file");
    std::fs::create_dir_all(directory.path().join("src/bin")).expect("a folder");
    write("Cargo.toml", &manifest);
    write("Cargo.lock", &read(&checkout().join("Cargo.lock")));
    let mut names = Vec::new();
    for snippet in of("rust") {
        if snippet.text.contains("criterion_group") {
            // Built and run with the feature by `.ci/run`.
            let bench = read(&checkout().join("crates/profiler/benches/primes.rs"));
            assert!(
                bench.contains(&snippet.text),
                "{}:{} is not in crates/profiler/benches/primes.rs",
                snippet.page,
                snippet.line
            );
            continue;
        }
        let name = format!("piece-{}", snippet.line);
        // One that has items is a program by itself.
        let text = match snippet.text.contains("fn main()") {
            true => snippet.text.clone(),
            false => format!(
                "{BEFORE}fn main() -> Result<(), Box<dyn std::error::Error>> {{\n{}\nOk(())\n}}\n",
                snippet.text
            ),
        };
        write(&format!("src/bin/{name}.rs"), &text);
        names.push((name, snippet));
    }
    assert!(!names.is_empty());
    let target = agent::target();
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--offline", "--quiet", "--target-dir"])
        .arg(&target)
        .current_dir(directory.path())
        .output();
    let built = Said::of(built.expect("cargo can be started"));
    assert_eq!(built.status, Some(0), "{built:?}");
    for (name, snippet) in names {
        let said = said(Command::new(target.join("debug").join(&name)).current_dir(directory.path()));
        assert_eq!(said.status, Some(0), "{}:{}: {said:?}", snippet.page, snippet.line);
        super::written(&snippet.text, directory.path())
            .unwrap_or_else(|why| panic!("{}:{}: {why}", snippet.page, snippet.line));
    }
}
