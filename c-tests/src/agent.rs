//! The agent under test: built once for all tests, from the checkout.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names a library to test instead of the one that would be built, for instance a
/// build for old distributions.
pub const LIBRARY_VARIABLE: &str = "SWIPR_TEST_LIBRARY";

/// Cargo's profile for the library that tests build, and its folder: as the release, without its
/// pass over the whole program.
const OPTIMISED: [&str; 2] = ["test-library", "test-library"];

/// The same for the library that is built for its faults alone: most of it was built for the tests
/// themselves.
const UNOPTIMISED: [&str; 2] = ["dev", "debug"];

/// The checkout's top folder.
pub fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The shared library under test: the one that is named, or the one that is built.
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

/// The library that tests build. It has faults built in, of which [`FAULT_VARIABLE`] selects one.
pub fn faulty_library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let is_named = || std::env::var_os(LIBRARY_VARIABLE).is_some();
    LIBRARY.get_or_init(|| cargo_build(if is_named() { UNOPTIMISED } else { OPTIMISED })).clone()
}

/// `memory:N`, `panic:THREAD` or `imports`.
pub const FAULT_VARIABLE: &str = "SWIPR_TEST_FAULT";

fn build() -> PathBuf {
    if let Some(library) = std::env::var_os(LIBRARY_VARIABLE) {
        let library = PathBuf::from(library);
        assert!(library.is_file(), "{LIBRARY_VARIABLE} names {}, which is no file", library.display());
        return library;
    }
    faulty_library()
}

/// Builds the library.
fn cargo_build([profile, folder]: [&str; 2]) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "-p", "libswipr", "--profile", profile, "--features", "fault-injection"])
        .arg("--target-dir")
        .arg(target())
        .current_dir(checkout())
        .output()
        .expect("cargo can be started");
    assert!(
        output.status.success(),
        "building the agent failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let name = if cfg!(target_os = "macos") { "libswipr.dylib" } else { "libswipr.so" };
    target().join(folder).join(name)
}
