//! What a rule allows: files of lines `entry | reason`.

use std::collections::{BTreeMap, BTreeSet};

/// The entries of `lists/NAME`, each with its reason.
pub fn read(name: &str) -> BTreeMap<String, String> {
    let file = crate::workspace::root().join("tests/layers/lists").join(name);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut entries = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (entry, reason) = line.split_once(" | ").unwrap_or_else(|| panic!("{name}: no reason: {line}"));
        assert!(!reason.trim().is_empty(), "{name}: no reason: {line}");
        let before = entries.insert(entry.trim().to_string(), reason.to_string());
        assert!(before.is_none(), "{name}: twice: {entry}");
    }
    entries
}

/// Fails unless what was `found` is exactly what `lists/NAME` has.
pub fn assert_equal(name: &str, found: &BTreeSet<String>, rule: &str) {
    let listed: BTreeSet<String> = read(name).into_keys().collect();
    let new: Vec<&String> = found.difference(&listed).collect();
    let gone: Vec<&String> = listed.difference(found).collect();
    let lines = |entries: &[&String]| entries.iter().map(|entry| format!("\n  {entry}")).collect::<String>();
    assert!(new.is_empty(), "{rule}. This is against it:{}", lines(&new));
    assert!(
        gone.is_empty(),
        "take these out of tests/layers/lists/{name}, they are no more:{}",
        lines(&gone)
    );
}
