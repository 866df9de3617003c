//! The examples in `examples-c/`, built.

use crate::agent;
use crate::directory::Directory;
use std::path::PathBuf;
use std::process::Command;

/// Builds one example, as `make -C examples-c` does.
pub fn built(name: &str) -> (Directory, PathBuf) {
    let directory = Directory::new();
    let executable = directory.path().join(name);
    let library = agent::library();
    let folder = library.parent().expect("the library's folder");
    let result = Command::new("make")
        .arg("-C")
        .arg(agent::checkout().join("examples-c"))
        .arg(format!("BUILD={}", directory.path().display()))
        .arg(format!("LIBRARY={}", folder.display()))
        .arg("CFLAGS=-O2 -g -Wall -Wextra -Werror")
        .arg(&executable)
        .output()
        .expect("make can be started");
    let errors = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "make {name} failed:\n{errors}");
    (directory, executable)
}
