//! Viewers that come as packages of npm's.

use crate::agent;
use crate::harness::NotRun;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where a package is, in a folder that is kept between runs of the tests; it is installed if need
/// be.
pub fn installed(package: &str) -> Result<PathBuf, NotRun> {
    let folder = agent::target().join("npm");
    let installed = folder.join("node_modules").join(package);
    if !installed.join("package.json").exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder).arg(package);
        let done = npm.env_remove("LD_PRELOAD").stdin(Stdio::null()).output();
        let done = done.map_err(|_| "no npm (Debian package npm)".to_owned())?;
        if !done.status.success() {
            return Err(format!("npm does not give {package}: {}", String::from_utf8_lossy(&done.stderr)));
        }
    }
    Ok(installed)
}
