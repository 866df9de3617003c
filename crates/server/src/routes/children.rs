//! Descendants of this process whose agents listen at default places: a script that was preloaded
//! has its program there.

use crate::listen::default_name;
use std::collections::VecDeque;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use swipr_os::process::user;
use swipr_os::threads::TaskDirectory;

/// Processes that are looked at, at most.
const MAX_PROCESSES: usize = 64;
/// Threads of each whose children are looked at, at most.
const MAX_THREADS: usize = 256;
/// The kernel's list of sockets is read so far.
const MAX_LIST_BYTES: u64 = 1 << 20;

/// A descendant that can be asked.
pub(super) struct Child {
    pub pid: u32,
    pub name: String,
    pub socket: PathBuf,
}

/// Those that listen, by what the kernel says of sockets in this network namespace.
pub(super) fn that_listen() -> Vec<Child> {
    let pids = descendants(std::process::id());
    let mut list = Vec::new();
    // What was read before an error counts, too.
    if let Some(file) = fs::File::open("/proc/thread-self/net/unix").ok().filter(|_| !pids.is_empty()) {
        let _ = file.take(MAX_LIST_BYTES).read_to_end(&mut list);
    }
    let list = String::from_utf8_lossy(&list);
    // The path is the last field, from the first slash.
    let paths = list.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let paths: Vec<&Path> = paths.collect();
    let listens = |pid: u32| {
        let name = default_name(pid);
        let named = |path: &&&Path| path.file_name().is_some_and(|file| file == name.as_str());
        paths.iter().filter(named).find(|path| is_own_socket(path))
    };
    let children = pids.into_iter().filter_map(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        Some(Child { pid, name: name.trim_end().to_owned(), socket: listens(pid)?.to_path_buf() })
    });
    children.collect()
}

/// Whether a socket of this process's user is there: others may have made one of that name.
fn is_own_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket() && found.uid() == user())
}

/// Children, and theirs, nearest first.
fn descendants(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = VecDeque::from([pid]);
    while let Some(parent) = next.pop_front() {
        for thread in threads(parent) {
            let children =
                fs::read_to_string(format!("/proc/{parent}/task/{thread}/children")).unwrap_or_default();
            let children = children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
            next.extend(children.clone().take(MAX_PROCESSES));
            found.extend(children);
            if found.len() >= MAX_PROCESSES {
                found.truncate(MAX_PROCESSES);
                return found;
            }
        }
    }
    found
}

/// The first threads of a process.
fn threads(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let _ = TaskDirectory::of(pid).and_then(|directory| directory.list(&mut found));
    found.truncate(MAX_THREADS);
    found
}
