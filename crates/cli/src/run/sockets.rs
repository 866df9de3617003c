//! The folder in which the agents of a run have their sockets.

use crate::error::Error;
use crate::find::socket_watch::SocketWatch;
use crate::process::Process;
use crate::temp_dir::Folder;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A folder for the agents' sockets, and the watch of it.
pub fn make() -> Result<(Folder, SocketWatch), Error> {
    let folder = Folder::for_sockets().map_err(|error| {
        Error::new(
            format!("cannot make a folder for sockets: {error}"),
            "set XDG_RUNTIME_DIR to one that is writable",
        )
    })?;
    let watch = SocketWatch::new(folder.path()).map_err(|error| {
        Error::new(
            format!("cannot watch {}: {error}", folder.path().display()),
            "raise the limit of open files (`ulimit -n`), or fs.inotify.max_user_instances",
        )
    })?;
    Ok((folder, watch))
}

/// Processes whose agents have sockets in the folder, by the names that `child.rs` gives them.
pub fn listening(folder: &Path) -> Vec<u32> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.split_once('-')?.0.parse().ok()).collect()
}

/// Whether a socket in the folder is one of the program's. Any user can make one where root runs a
/// program: another user's must be that of a descendant that became this user.
pub fn is_of_program(socket: &Path, pid: u32, main: u32) -> bool {
    let Ok(owner) = std::fs::symlink_metadata(socket).map(|found| found.uid()) else { return true };
    // SAFETY: it takes nothing and cannot fail.
    if owner == unsafe { libc::geteuid() } {
        return true;
    }
    let process = Process::new(pid).filter(|process| process.uid() == Some(owner));
    process.is_some_and(|process| process.descends_from(main))
}

/// The name of a process that did not answer; empty: the id is that of another PID namespace, for
/// the process here is none that was started by this command.
pub fn name_of_descendant(pid: u32) -> String {
    let is_here = |process: &Process| process.descends_from(std::process::id());
    Process::new(pid).filter(is_here).map(|process| process.name()).unwrap_or_default()
}
