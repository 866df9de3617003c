//! Sockets that other processes left behind.
//!
//! A process removes its socket at exit(3), but some end otherwise: a shell's subshells and
//! Python's worker processes by _exit(2), others by a signal. The next agent in the directory
//! removes the files that they leave. Not here: a stale file in the way of the agent's own socket
//! (`file.rs`).

use super::address::Raw;
use super::{Address, default_name, file};
use std::fs::File;
use std::path::Path;
use swipr_os::directory::for_each_name;
use swipr_os::process;

/// Names that are read at most, in a directory that any program may fill.
const MAX_NAMES: usize = 1024;
/// Sockets of dead processes that are checked at most.
const MAX_SOCKETS: usize = 64;

/// Removes sockets of dead processes beside `own`, if that has the default name. They have a
/// default name, too, belong to the same user, and no process listens on them. (In a directory that
/// is shared with containers, a process that cannot be seen may be alive, but then it listens.)
/// Does not wait, and ignores errors.
pub fn remove_neighbours(own: &Path) {
    let is_default = own.file_name().is_some_and(|name| name == default_name(process::pid()).as_str());
    let Some(directory) = own.parent().filter(|_| is_default) else { return };
    let Ok(opened) = File::open(directory) else { return };
    let (mut names, mut gone) = (0, vec![]);
    let _ = for_each_name(&opened, |name| {
        names += 1;
        let name = std::str::from_utf8(name).ok().filter(|_| names <= MAX_NAMES);
        let pid = name.and_then(pid_of).filter(|pid| process::is_gone(pid.cast_unsigned()));
        gone.extend(pid);
    });
    for pid in gone.into_iter().take(MAX_SOCKETS) {
        let path = directory.join(default_name(pid).as_str());
        if let (Ok(raw), Some(_claim)) = (Raw::new(&Address::Path(path.clone())), file::claim(&path, 1)) {
            let _ = file::clear_stale(&path, &raw);
        }
    }
}

/// The process id in a default name; `None`: it is no default name.
fn pid_of(name: &str) -> Option<i32> {
    let pid: i32 = name.strip_prefix("swipr-pid-")?.strip_suffix(".sock")?.parse().ok()?;
    (pid > 0 && default_name(pid) == name).then_some(pid)
}
