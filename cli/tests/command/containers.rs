//! Commands in `loader-scripts/containers`: verbs and options are those that there are.

use crate::support::*;
use saphyr::{LoadableYamlNode, Yaml};
use swipr_c_tests::agent::checkout;

/// Every command line of ours in a YAML document: `command`, or what the image starts, and `args`.
fn in_yaml(node: &Yaml<'_>, found: &mut Vec<Vec<String>>) {
    let words = |key: &str| -> Vec<String> {
        let list = node.as_mapping_get(key).and_then(|list| list.as_sequence());
        list.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let mut line = words("command");
    line.extend(words("args"));
    if line.first().is_some_and(|program| program.ends_with("/swipr")) {
        found.push(line.split_off(1));
    }
    for child in node.as_mapping().into_iter().flatten().map(|(_, value)| value) {
        in_yaml(child, found);
    }
    for child in node.as_sequence().into_iter().flatten() {
        in_yaml(child, found);
    }
}

/// And in comments, up to where the shell takes over.
fn in_comments(text: &str, found: &mut Vec<Vec<String>>) {
    for line in text.lines().filter_map(|line| line.strip_prefix("#     ")) {
        let before = ["exec service swipr ", "run --rm profiler ", "kubectl-profile service "];
        let Some((begins, rest)) = before.iter().find_map(|name| Some((*name, line.split_once(name)?.1)))
        else {
            continue;
        };
        let words = rest.split_whitespace().take_while(|word| *word != ">").map(str::to_owned);
        let verb = ["record", "1"].map(str::to_owned);
        let verb = if begins.starts_with("kubectl-profile") { &verb[..] } else { &[] };
        found.push(verb.iter().cloned().chain(words).collect());
    }
}

#[test]
fn commands_in_container_files_are_understood() {
    let folder = checkout().join("loader-scripts/containers");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        let text = read(&path);
        in_comments(&text, &mut found);
        if path.extension().is_some_and(|suffix| suffix == "yaml") {
            Yaml::load_from_str(&text)
                .expect("YAML")
                .iter()
                .for_each(|document| in_yaml(document, &mut found));
        }
    }
    assert!(found.len() >= 4, "{found:?}");
    for words in &found {
        // There is no such process here: but the command line is understood.
        let words = words.iter().map(|word| if word == "1" { "4194305" } else { word });
        let said = says(words);
        assert_eq!(said.status, Some(3), "{said:?}");
    }
}
