//! Commands in `loader-scripts/containers`: verbs and options are those that there are. And what
//! `docker exec` and `kubectl exec` do with the command, in a container as strict as a hardened
//! pod's.

use crate::support::*;
use saphyr::{LoadableYamlNode, Yaml};
use std::fs::File;
use std::io::Read;
use std::process::Command;
use swipr_c_tests::agent::checkout;
use swipr_c_tests::container::{Container, missing};
use swipr_c_tests::directory::Directory;

/// Every command line of swipr's in a YAML document: `command`, or what the image starts, and
/// `args`.
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

/// Regression: busybox's cp stopped at a link that was there, and wrote over the library that
/// running services had mapped, which ended them.
#[test]
fn the_image_can_copy_again_and_leaves_the_old_library_to_the_services_that_mapped_it() {
    let room = Directory::new();
    let (source, target) = (room.path().join("swipr"), room.path().join("target"));
    std::fs::create_dir_all(source.join("lib")).expect("a folder");
    std::fs::create_dir_all(&target).expect("a folder");
    let file = source.join("lib/libswipr.so.0");
    std::fs::write(&file, "1").expect("a file");
    std::os::unix::fs::symlink("libswipr.so.0", source.join("lib/libswipr.so")).expect("a link");
    let image = read(&checkout().join("loader-scripts/containers/Dockerfile"));
    let line = image.lines().find_map(|line| line.strip_prefix("CMD ")).expect("a command");
    let line = line.replace("/opt/swipr", &source.display().to_string());
    let line = line.replace("/target", &target.display().to_string());
    let words: Vec<String> = serde_json::from_str(&line).expect("a list of words");
    let copies = |version: &str| {
        std::fs::write(&file, version).expect("a file");
        assert!(Command::new(&words[0]).args(&words[1..]).status().is_ok_and(|status| status.success()));
        let copied = target.join("lib/libswipr.so");
        assert!(copied.is_symlink() && read(&copied) == version);
        assert_eq!(std::fs::read_dir(&target).expect("the folder").count(), 1);
        File::open(&copied).expect("the copy")
    };
    let mut mapped = copies("1");
    copies("2");
    let mut bytes = String::new();
    mapped.read_to_string(&mut bytes).expect("its text");
    assert_eq!(bytes, "1");
}

#[test]
fn in_a_container_the_command_records_its_first_process() {
    if let Some(why) = missing() {
        eprintln!("not run: {why}");
        return;
    }
    let container = Container::new("no_frame_pointer", &[]);
    let command = container.path().join("swipr");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_swipr")).arg(&command).status();
    assert!(copied.is_ok_and(|status| status.success()));
    let host = container.start();
    let mut inside = Command::new("runc");
    inside.arg("exec").arg(format!("unprivileged-{}", host.pid())).arg(&command);
    let recorded = said(inside.args(["record", "1", "-d", "1", "-o", "-", "-f", "folded"])).well();
    assert!(recorded.out.contains("burner_main;first;second;third;burn"), "{recorded:?}");
    // From outside, by the process's id there.
    let listed = says(["ls", "--json"]).well();
    assert!(listed.out.contains(&container.path().display().to_string()), "{listed:?}");
    host.end();
}
