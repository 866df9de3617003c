//! Where the agent of a process listens: the default places, and what the kernel says of its
//! threads. Paths are as this process reaches them, also into other mount namespaces and roots.
//!
//! What lists a process's threads in `/proc` makes the kernel keep an entry for each. When the
//! process ends, its parent's wait(2) forgets them, and spins while one of the threads does so,
//! too. So a command for one place has them listed only where no agent answers at a default one.

use super::in_root::in_root;
use super::kernel_sockets::listening;
use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::process::{Process, sees_our_files};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// How an agent's socket is called if `SWIPR_SOCKET` does not say so.
const DEFAULT_NAME: &str = "swipr-pid-{PID}.sock";

/// How the sockets of a process and of its children are called, with placeholders.
pub fn name_pattern(process: &Process) -> String {
    let path = process.variable("SWIPR_SOCKET").unwrap_or_else(|| DEFAULT_NAME.to_owned());
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Whether a file's name is what that pattern makes of a process.
pub fn has_pattern(name: &str, pattern: &str) -> bool {
    let (begin, rest) = pattern.split_once('{').unwrap_or((pattern, ""));
    let end = rest.rsplit_once('}').map_or(rest, |(_, end)| end);
    name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end))
}

/// A place where the agent of this process listens, or all of them, those that answer soonest
/// first.
pub fn one_of_process(process: &Process) -> Vec<Endpoint> {
    let places = default_places(process, process.folder()).into_iter().filter(|path| is_socket(path));
    match places.map(Endpoint::Path).find(|place| is_own(process, place)) {
        Some(found) => vec![found],
        None => of_process(process),
    }
}

/// Whether it is this process that listens there.
fn is_own(process: &Process, place: &Endpoint) -> bool {
    let connected = Client::new(place.clone()).connect();
    connected.is_ok_and(|connection| connection.peer() == Some(process.pid))
}

/// Every place where the agent of this process listens, those that answer soonest first.
pub fn of_process(process: &Process) -> Vec<Endpoint> {
    let threads = process.agent_threads();
    if threads.is_empty() {
        return Vec::new();
    }
    let mut inodes: Vec<u64> = threads.iter().flat_map(|thread| sockets_of(thread)).collect();
    inodes.sort_unstable();
    inodes.dedup();
    let listening = if inodes.is_empty() { Vec::new() } else { listening(process.folder(), &inodes) };
    let folder = process.agents_folder(&threads);
    let mut found: Vec<Endpoint> = listening.iter().map(|place| from_here(&folder, place)).collect();
    if found.is_empty() {
        let places = default_places(process, &folder).into_iter();
        found = places.filter(|path| is_socket(path)).map(Endpoint::Path).collect();
    }
    // The kernel hides a process whose group is another one than its user's: its files and its
    // namespaces.
    if found.is_empty() && process.sees_our_files().is_none() {
        let places = places(process).into_iter().map(Endpoint::Path);
        found.extend(places.filter(|place| is_own(process, place)));
    }
    found.sort();
    found
}

/// Inodes of the sockets that a thread has open. The agent's threads have a descriptor table of
/// their own.
pub(super) fn sockets_of(thread: &Path) -> Vec<u64> {
    let entries = fs::read_dir(thread.join("fd")).into_iter().flatten().flatten();
    let inode = |path: PathBuf| {
        let target = fs::read_link(path).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    entries.filter_map(|entry| inode(entry.path())).collect()
}

/// A place as the agent writes it, whose files are those of that folder in `/proc`, as this command
/// reaches it.
fn from_here(folder: &Path, place: &Endpoint) -> Endpoint {
    match place {
        Endpoint::Path(path) if sees_our_files(folder) != Some(true) => {
            Endpoint::Path(under_root(folder, path))
        }
        other => other.clone(),
    }
}

fn under_root(folder: &Path, path: &Path) -> PathBuf {
    in_root(&folder.join("root"), path)
}

/// Where an agent listens by default, and where its environment makes it listen, as this command
/// reaches it.
fn default_places(process: &Process, folder: &Path) -> Vec<PathBuf> {
    let places = places(process);
    match sees_our_files(folder) {
        Some(true) => places,
        _ => places.iter().map(|path| under_root(folder, path)).collect(),
    }
}

/// The same, as the process reaches it.
fn places(process: &Process) -> Vec<PathBuf> {
    let pid = process.own_pid();
    let name = DEFAULT_NAME.replace("{PID}", &pid.to_string());
    let mut places = vec![PathBuf::from("/var/run").join(&name)];
    places.extend(process.variable("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join(&name)));
    for parent in ["/tmp", "/dev/shm"] {
        places.extend(process.uid().map(|uid| PathBuf::from(format!("{parent}/swipr-{uid}")).join(&name)));
    }
    if let Some(pattern) = process.variable("SWIPR_SOCKET") {
        let path = pattern.replace("{PID}", &pid.to_string()).replace("{COMM}", &process.name());
        // A relative one was so to the directory that the program began in, and mostly stays in.
        let directory = fs::read_link(process.folder().join("cwd")).unwrap_or_default();
        places.insert(0, directory.join(path));
    }
    places
}

/// Whether there is a socket's file.
pub fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_agents_are_told_from_others_by_their_names() {
        for (name, pattern, is_one) in [
            ("swipr-pid-12.sock", DEFAULT_NAME, true),
            ("mysqld.sock", DEFAULT_NAME, false),
            ("a-sh-7-x.sock", "a-{COMM}-{PID}-x.sock", true),
            ("a.pid", "a-{PID}.sock", false),
            ("fixed.sock", "fixed.sock", true),
        ] {
            assert_eq!(has_pattern(name, pattern), is_one, "{name}");
        }
    }
}
