//! Lines of comments end at column 100.

use crate::comments;
use std::collections::BTreeSet;
use std::path::Path;

/// Files with longer lines, as `file: lines`.
pub fn files(root: &Path, files: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in files.iter().filter(|file| file.ends_with(".rs")) {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let comments = comments::of(&text);
        let long: Vec<_> = comments.iter().filter(|line| line.alone && line.columns > 100).collect();
        long.iter().for_each(|comment| println!("{file}:{}", comment.line));
        if !long.is_empty() {
            found.insert(format!("{file}: {}", long.len()));
        }
    }
    found
}
