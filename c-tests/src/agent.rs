//! The agent under test: built once for all tests, from the checkout.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Names a library to test instead of the one that would be built, for instance a
/// build for old distributions.
pub const LIBRARY_VARIABLE: &str = "SWIPR_TEST_LIBRARY";

/// Cargo's profile for the library that tests build: as the release, without its pass over the
/// whole program.
const PROFILE: &str = "test-library";

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

/// The same library with faults built in, of which [`FAULT_VARIABLE`] selects one.
pub fn faulty_library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| cargo_build(Some("fault-injection"))).clone()
}

/// `memory:N` or `panic:THREAD`.
pub const FAULT_VARIABLE: &str = "SWIPR_TEST_FAULT";

fn build() -> PathBuf {
    if let Some(library) = std::env::var_os(LIBRARY_VARIABLE) {
        let library = PathBuf::from(library);
        assert!(library.is_file(), "{LIBRARY_VARIABLE} names {}, which is no file", library.display());
        return library;
    }
    cargo_build(None)
}

/// Builds the library, and puts it into a folder named after its feature: each build leaves
/// its result at the same place, and test programs run side by side.
fn cargo_build(feature: Option<&str>) -> PathBuf {
    let profile = target().join(PROFILE);
    let folder = profile.join(feature.unwrap_or("as-it-is"));
    std::fs::create_dir_all(&folder).expect("a folder for the library");
    let lock = std::fs::File::create(profile.join("library.lock")).expect("a file to lock");
    lock.lock().expect("the file can be locked");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "build",
            "-p",
            "libswipr",
            "--profile",
            PROFILE,
            "--features",
            feature.unwrap_or(""),
            "--target-dir",
        ])
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
    let (built, library) = (profile.join(name), folder.join(name));
    let is_new = std::fs::metadata(&library).and_then(|old| old.modified()).ok()
        < std::fs::metadata(&built).and_then(|new| new.modified()).ok();
    if is_new {
        // By renaming: programs of other tests may run with the old one.
        let beside = folder.join("new");
        std::fs::copy(&built, &beside).expect("the library can be copied");
        std::fs::rename(&beside, &library).expect("the library can be put in its place");
    }
    library
}
