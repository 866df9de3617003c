//! Every example in `--help` is run, as it stands there but for process ids, ports and times.

use crate::pages::Place;
use crate::support::*;

const VERBS: [&str; 12] = [
    "run",
    "record",
    "top",
    "dump",
    "ls",
    "doctor",
    "convert",
    "diff",
    "view",
    "push",
    "proxy",
    "completions",
];

/// The commands that help shows: those that begin two columns in, without what stands far behind
/// them.
fn examples(help: &str) -> Vec<String> {
    let (_, from) = help.split_once("Examples:\n").expect(help);
    let lines = from.lines().take_while(|line| line.starts_with("  "));
    let commands = lines.filter(|line| !line.starts_with("   "));
    commands.map(|line| line.trim().split("   ").next().expect("a command").to_owned()).collect()
}

#[test]
fn every_example_in_help_works() {
    let place = Place::shared();
    let mut all = examples(&says(["--help"]).well().out);
    all.extend(VERBS.iter().flat_map(|verb| examples(&says([verb, "--help"]).well().out)));
    assert!(all.len() > 30, "{all:?}");
    // The proxy of the line before it is gone: in its own test go asks it.
    let wrong: Vec<String> = all
        .iter()
        .filter(|example| !example.starts_with("go tool"))
        .filter_map(|example| place.run(example).check().err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
