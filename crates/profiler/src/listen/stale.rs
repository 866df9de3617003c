//! Sockets that other processes left behind.
//!
//! A process removes its socket at exit(3), but some end otherwise: a shell's subshells and
//! Python's worker processes by _exit(2), others by a signal. Nobody comes back for such a file, so
//! the next agent in the directory removes it. Not here: a stale file in the way of our own socket
//! (`file.rs`).

use super::address::Raw;
use super::{Address, default_name, file};
use std::fs;
use std::path::Path;
use swipr_os::process;

/// Names that are read, in a directory that may be anybody's.
const MAX_NAMES: usize = 1024;
/// Sockets of dead processes that are looked at.
const MAX_SOCKETS: usize = 64;

/// Removes sockets beside `own`, a socket of the default name: those with that name for another
/// process, which is gone, that are our user's and that nobody listens on. Where the directory is
/// shared with containers, a process that cannot be seen may be alive; it listens, then. Does not
/// wait; says nothing of what fails.
pub fn remove_neighbours(own: &Path) {
    let is_default = own.file_name().is_some_and(|name| name == default_name(process::pid()).as_str());
    let Some(directory) = own.parent().filter(|_| is_default) else { return };
    let Ok(entries) = fs::read_dir(directory) else { return };
    let names = entries.take(MAX_NAMES).filter_map(|entry| Some(entry.ok()?.file_name()));
    let gone = names.filter(|name| {
        name.to_str().and_then(pid_of).is_some_and(|pid| process::is_gone(pid.cast_unsigned()))
    });
    for name in gone.take(MAX_SOCKETS) {
        let path = directory.join(name);
        if let Ok(raw) = Raw::new(&Address::Path(path.clone())) {
            let _ = file::clear_stale(&path, &raw);
        }
    }
}

/// The process of a default name; none for a name that only looks like one.
fn pid_of(name: &str) -> Option<i32> {
    let pid: i32 = name.strip_prefix("swipr-pid-")?.strip_suffix(".sock")?.parse().ok()?;
    (pid > 0 && default_name(pid) == name).then_some(pid)
}
