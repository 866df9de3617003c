//! The agent under test: built once for all tests, from the checkout.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names a library to test instead of the one that would be built, for instance a
/// build for old distributions.
pub const LIBRARY_VARIABLE: &str = "SWIPR_TEST_LIBRARY";

/// The checkout's top folder.
pub fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The shared library, built on the first call.
pub fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(build).clone()
}

/// The target folder that these tests were built into: the test's executable lies in
/// `<target>/<profile>/deps`.
pub fn target() -> PathBuf {
    let executable = std::env::current_exe().expect("the test's own path");
    executable
        .ancestors()
        .nth(3)
        .expect("the test's executable lies in <target>/<profile>/deps")
        .to_path_buf()
}

/// The same with faults of its own, which the variable [`FAULT_VARIABLE`] asks for. Built in the way that takes the
/// least time: what it does is the same.
pub fn faulty_library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let make = || cargo_build(&["--features", "fault-injection"], &target().join("faulty"), "debug");
    LIBRARY.get_or_init(make).clone()
}

/// `memory:N` or `panic:THREAD`.
pub const FAULT_VARIABLE: &str = "SWIPR_TEST_FAULT";

fn build() -> PathBuf {
    if let Some(library) = std::env::var_os(LIBRARY_VARIABLE) {
        let library = PathBuf::from(library);
        assert!(library.is_file(), "{LIBRARY_VARIABLE} names {}, which is no file", library.display());
        return library;
    }
    cargo_build(&["--release", "--features", "preload"], &target(), "release")
}

fn cargo_build(arguments: &[&str], target: &Path, profile: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "-p", "libswipr"])
        .args(arguments)
        .arg("--target-dir")
        .arg(target)
        .current_dir(checkout())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "building the agent failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let name = if cfg!(target_os = "macos") { "libswipr.dylib" } else { "libswipr.so" };
    let library = target.join(profile).join(name);
    assert!(library.is_file(), "building the agent left no {}", library.display());
    library
}
