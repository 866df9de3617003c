//! The packages of the workspace and the modules of their crates.

use crate::test_code;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::{Item, ItemMod};

/// A package as Cargo describes it.
pub struct Package {
    /// Its name, as in `Cargo.toml`.
    pub name: String,
    /// Packages of the workspace that it is built from: no development dependencies.
    pub dependencies: BTreeSet<String>,
    /// Its crates: whether for tests, benches and examples only, and the root's file.
    targets: Vec<(bool, PathBuf)>,
}

impl Package {
    /// Its crates: libraries, binaries, tests, benches and examples.
    pub fn crates(&self) -> Vec<Crate> {
        self.targets.iter().map(|(_, root)| read_crate(root)).collect()
    }

    /// Its libraries and binaries.
    pub fn product_crates(&self) -> Vec<Crate> {
        let targets = self.targets.iter().filter(|(is_test, _)| !is_test);
        targets.map(|(_, root)| read_crate(root)).collect()
    }
}

/// A library, a binary, or a test.
pub struct Crate {
    /// All modules that are files, the root first.
    pub modules: Vec<Module>,
}

/// A module that is a file, without what only tests are compiled with.
pub struct Module {
    /// Its names from the root on; none for the root itself.
    pub path: Vec<String>,
    /// Relative to the workspace's folder.
    pub file: String,
    /// What is in it. Items with `#[cfg(test)]` are left out.
    pub syntax: syn::File,
}

/// The workspace's folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace's folder")
}

/// All packages of the workspace.
pub fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON of cargo metadata");
    let packages = metadata["packages"].as_array().expect("packages");
    let names: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    packages.iter().map(|package| read_package(package, &names)).collect()
}

fn read_package(package: &serde_json::Value, names: &BTreeSet<&str>) -> Package {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let targets = package["targets"].as_array().into_iter().flatten();
    Package {
        name: package["name"].as_str().unwrap_or_default().to_string(),
        dependencies: dependencies
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| names.contains(name))
            .map(String::from)
            .collect(),
        targets: targets
            .filter(|target| target["kind"][0] != "custom-build")
            .filter_map(|target| {
                let is_test = ["test", "bench", "example"].iter().any(|kind| target["kind"][0] == *kind);
                Some((is_test, PathBuf::from(target["src_path"].as_str()?)))
            })
            .collect(),
    }
}

fn read_crate(root: &Path) -> Crate {
    let mut modules = Vec::new();
    read_module(root, root.parent().unwrap_or(root), Vec::new(), &mut modules);
    Crate { modules }
}

/// Reads `file` and the files of its modules, which are in `folder`.
fn read_module(file: &Path, folder: &Path, path: Vec<String>, modules: &mut Vec<Module>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    test_code::remove(&mut syntax);
    let relative = file.strip_prefix(root()).unwrap_or(file).display().to_string();
    let children = children(&syntax.items, folder, &path);
    modules.push(Module { path, file: relative, syntax });
    for (child, folder, path) in children {
        read_module(&child, &folder, path, modules);
    }
}

/// The modules among `items` that are files: the file, the folder of its own modules, its path.
fn children(items: &[Item], folder: &Path, path: &[String]) -> Vec<(PathBuf, PathBuf, Vec<String>)> {
    let mut found = Vec::new();
    for item in items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let path: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
        let inside = folder.join(&name);
        if let Some((_, items)) = &module.content {
            found.extend(children(items, &inside, &path));
        } else if let Some(file) = named_file(module) {
            let file = folder.join(file).canonicalize().unwrap_or_default();
            found.push((file.clone(), file.parent().unwrap_or(folder).to_path_buf(), path));
        } else {
            let beside = folder.join(format!("{name}.rs"));
            let file = if beside.exists() { beside } else { inside.join("mod.rs") };
            found.push((file, inside, path));
        }
    }
    found
}

/// The file of `#[path = "…"]`.
fn named_file(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(file), .. }) => Some(file.value()),
            _ => None,
        },
        _ => None,
    })
}

/// All files that are kept in the workspace's folder, relative to it.
pub fn files() -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() {
                let is_kept =
                    name != "target" && name != "node_modules" && !name.to_string_lossy().starts_with('.');
                folders.extend(is_kept.then_some(path));
            } else if let Ok(path) = path.strip_prefix(root()) {
                files.push(path.display().to_string());
            }
        }
    }
    files.sort();
    files
}
