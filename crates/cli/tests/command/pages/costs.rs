//! README's table of costs: rows of the one in `docs/performance.md`, which `benches/all --into`
//! measures.

use crate::support::read;
use swipr_c_tests::agent::checkout;

/// README's words, the figure's name in the page, and what stands behind the number.
const ROWS: [(&str, &str, &str); 8] = [
    (
        "a running thread is held for a sample of 35 frames",
        "held time / bare signal, p50, 35 frames",
        " × an empty signal handler",
    ),
    ("… of 105 frames", "held time / bare signal, p50, 105 frames", " × an empty signal handler"),
    ("a waiting thread: CPU time taken from it", "waiting threads: time stolen, ns", " ns"),
    ("a waiting thread: calls interrupted", "waiting threads: EINTR seen", ""),
    (
        "two busy threads sampled 1,000 times a second: CPU time, with the profiler's own threads",
        "overhead at 1000 Hz, 2 busy threads, with the profiler's threads",
        " × without",
    ),
    (
        "a look at 5,000 waiting threads",
        "pass over 5000 waiting threads, later ones, CPU ms",
        " ms of CPU time",
    ),
    ("nobody asks: memory", "idle: private memory, KiB", " KiB"),
    ("a program's start", "start-up added to /bin/true, us, p50", " µs"),
];

fn table(page: &str) -> String {
    let mut out = "| what | swipr | spread | others, the same |\n|---|---|---|---|\n".to_owned();
    for (words, name, unit) in ROWS {
        let cells = page.lines().find_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            (cells.first() == Some(&name)).then_some(cells)
        });
        let cells = cells.unwrap_or_else(|| panic!("docs/performance.md has no row {name:?}"));
        let cell = |index: usize| cells.get(index).copied().unwrap_or_default();
        // A sum has none.
        let spread = Some(cell(3)).filter(|spread| *spread != "sum").unwrap_or_default();
        let (measured, others) = (cell(2), cell(5));
        out.push_str(&format!("| {words} | {measured}{unit} | {spread} | {others} |\n"));
    }
    out
}

#[test]
fn the_costs_in_the_readme_are_those_that_were_measured() {
    let wanted = table(&read(&checkout().join("docs/performance.md")));
    crate::generated::assert_generated("README.md", "costs: rows of docs/performance.md", &wanted);
}
