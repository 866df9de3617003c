//! What is linked into the library: few crates, and none whose licence asks more than to be named.

use std::process::Command;

/// Crates besides our own that code is linked from.
const AT_MOST: usize = 25;
/// Crates of macros: what these expand to is our own code, or that of the crates that use them.
const MACROS_ONLY: [&str; 3] = ["cfg-if", "ctor", "memoffset"];
const ALLOWED: [&str; 7] =
    ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Apache-2.0 WITH LLVM-exception"];

/// Whether one of the licences that a crate may be taken under is allowed.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    let mut choices = expression.split(" OR ");
    choices.any(|choice| choice.split(" AND ").all(|licence| ALLOWED.contains(&licence.trim())))
}

#[test]
fn a_licence_is_allowed_where_one_of_its_choices_is() {
    for good in ["MIT", "MIT/Apache-2.0", "0BSD OR MIT", "Unlicense OR MIT", "(MIT OR Apache-2.0) AND Zlib"] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in ["GPL-3.0", "CDDL-1.0", "MIT AND GPL-2.0", ""] {
        assert!(!is_allowed(bad), "{bad}");
    }
}

#[test]
fn the_library_is_made_of_few_crates_that_anybody_may_link() {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let tree = ["tree", "--offline", "-p", "libswipr", "-e", "normal", "--prefix", "none"];
    let output = Command::new(cargo)
        .args(tree)
        .args(["--format", "{p}|{l}|"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let mut crates: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.split_once('|'))
        .map(|(package, rest)| (package, rest.split('|').next().unwrap_or_default()))
        .filter(|(package, _)| !package.contains("swipr"))
        .collect();
    crates.sort();
    crates.dedup();
    assert!(crates.len() > 5, "{crates:?}");
    let is_linked = |(package, _): &&(&str, &str)| {
        !MACROS_ONLY.iter().any(|name| package.starts_with(&format!("{name} v")))
    };
    let linked = crates.iter().filter(is_linked).count();
    assert!(linked <= AT_MOST, "{linked} crates: {crates:?}");
    let foreign: Vec<_> = crates.iter().filter(|(_, licence)| !is_allowed(licence)).collect();
    assert!(foreign.is_empty(), "not to be linked: {foreign:?}");
}
