//! What users copy: container files and the Swift package. They are what the tools that read them
//! take, and name nothing that is not there.

use saphyr::{LoadableYamlNode, Yaml};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use swipr_c_tests::agent::checkout;

fn containers() -> PathBuf {
    checkout().join("loader-scripts/containers")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of the agent's environment variables in a text.
fn variables(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    text.split(|c| !is_part(c)).filter(|word| word.starts_with("SWIPR_")).collect()
}

#[test]
fn container_files_are_yaml_and_name_variables_that_there_are() {
    let known = text(&checkout().join("docs/configuration.md"));
    let known = variables(&known);
    for name in ["compose.yaml", "init-container.yaml", "sidecar.yaml"] {
        let text = text(&containers().join(name));
        let documents = Yaml::load_from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let document = documents.first().unwrap_or_else(|| panic!("{name} is empty"));
        let is_whole = match name {
            "compose.yaml" => document["services"]["service"]["environment"]["LD_PRELOAD"].as_str().is_some(),
            _ => document["spec"]["containers"][0]["env"][0]["name"].as_str() == Some("LD_PRELOAD"),
        };
        assert!(is_whole, "{name} preloads nothing");
        let unknown: Vec<_> = variables(&text).difference(&known).copied().collect();
        assert!(unknown.is_empty(), "{name} sets {unknown:?}");
    }
}

#[test]
fn kubectl_profile_asks_the_command_in_the_pod() {
    let folder = swipr_c_tests::directory::Directory::new();
    let kubectl = folder.path().join("kubectl");
    std::fs::write(&kubectl, "#!/bin/sh\nprintf '%s|' \"$@\"\n").expect("a script");
    let mut permissions = std::fs::metadata(&kubectl).expect("the script").permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&kubectl, permissions).expect("to make it executable");
    let said = |arguments: &[&str]| {
        let path = format!("{}:/usr/bin:/bin", folder.path().display());
        let script = containers().join("kubectl-profile");
        let output =
            Command::new(script).args(arguments).env("PATH", path).output().expect("the script runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let plain = "exec|web|--|/swipr/bin/swipr|record|1|-o|-|-d|5|".to_owned();
    assert_eq!(said(&["web", "-d", "5"]), (Some(0), plain));
    let one = "exec|web|-c|app|--|/swipr/bin/swipr|record|1|-o|-|".to_owned();
    assert_eq!(said(&["web", "-c", "app"]), (Some(0), one));
    assert_eq!(said(&[]).0, Some(2));
}

#[test]
fn the_swift_package_calls_functions_and_constants_that_the_header_has() {
    let swift = text(&checkout().join("packages/swift/Sources/Swipr/Swipr.swift"));
    let header = text(&checkout().join("include/swipr.h"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names: BTreeSet<&str> = swift
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| line.split(|c| !is_part(c)))
        .filter(|word| word.starts_with("swipr_") || word.starts_with("SWIPR_"))
        .collect();
    assert!(names.len() >= 8, "{names:?}");
    let words: BTreeSet<&str> = header.split(|c| !is_part(c)).collect();
    let unknown: Vec<_> = names.difference(&words).collect();
    assert!(unknown.is_empty(), "not in swipr.h: {unknown:?}");
}

#[test]
fn clang_imports_the_swift_packages_module() {
    if Command::new("clang").arg("--version").output().is_err() {
        eprintln!("not tried: there is no clang");
        return;
    }
    let folder = swipr_c_tests::directory::Directory::new();
    let source = folder.path().join("import.m");
    std::fs::write(&source, "@import CSwipr;\nint main(void) { return swipr_stop(); }\n").expect("a file");
    let output = Command::new("clang")
        .args(["-fmodules", "-fsyntax-only", "-Werror", "-x", "objective-c"])
        .arg(format!("-fmodules-cache-path={}", folder.path().join("modules").display()))
        .arg(format!(
            "-fmodule-map-file={}",
            checkout().join("packages/swift/Sources/CSwipr/module.modulemap").display()
        ))
        .arg(format!("-I{}", checkout().join("include").display()))
        .arg(&source)
        .output()
        .expect("clang runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
