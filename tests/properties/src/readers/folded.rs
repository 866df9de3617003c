//! Folded stacks, and those that inferno makes of perf script text.

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use std::io::Cursor;

/// Perf script text as inferno folds it, with the threads' ids.
pub fn collapse(perf: &str) -> Vec<(Vec<String>, u64)> {
    let mut options = Options::default();
    options.nthreads = 1;
    options.include_tid = true;
    let mut out = Vec::new();
    Folder::from(options).collapse(Cursor::new(perf), &mut out).unwrap();
    parse_folded(&String::from_utf8(out).unwrap())
}

/// Each line: root first, each frame, then the count.
pub fn parse_folded(text: &str) -> Vec<(Vec<String>, u64)> {
    text.lines()
        .map(|line| {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            let parts = stack.split(';').map(str::to_owned).collect();
            (parts, count.parse().unwrap())
        })
        .collect()
}
