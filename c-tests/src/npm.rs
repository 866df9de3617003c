//! Viewers that come as packages of npm's.

use crate::agent;
use crate::harness::NotRun;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Installations that run at the same time overwrite each other's files.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Where a package is, in a folder that is kept between runs of the tests; it is installed if need
/// be.
pub fn installed(package: &str) -> Result<PathBuf, NotRun> {
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = agent::target().join("npm").join(package);
    let complete = folder.join("complete");
    if !complete.exists() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(&folder).arg(package);
        // Without a network it tried for minutes.
        npm.args(["--fetch-retries=1", "--fetch-retry-maxtimeout=1000", "--fetch-retry-mintimeout=1000"]);
        let done = npm.env_remove("LD_PRELOAD").stdin(Stdio::null()).output();
        let done = done.map_err(|_| "no npm (Debian package npm)".to_owned())?;
        if !done.status.success() {
            return Err(format!("npm does not give {package}: {}", String::from_utf8_lossy(&done.stderr)));
        }
        std::fs::write(complete, "")
            .map_err(|error| format!("cannot note that {package} is there: {error}"))?;
    }
    Ok(folder.join("node_modules").join(package))
}
