//! Sockets in folders that containers share: their processes may be out of sight. Not here: which
//! agent answers there.

use super::sockets::is_socket;
use std::fs;
use std::path::{Path, PathBuf};

/// Names that are read in a folder, which may be anybody's.
const MAX_NAMES: usize = 4096;
/// File systems on which a volume may lie that containers share.
const OF_VOLUMES: [&str; 9] = ["tmpfs", "ext4", "ext3", "xfs", "btrfs", "overlay", "virtiofs", "9p", "zfs"];
/// Folders of which no volume is mounted.
const NEVER: [&str; 5] = ["/proc", "/sys", "/dev", "/boot", "/etc"];

/// The folders to look into unasked: the default ones, and what is mounted here beside the system's
/// own.
pub fn usual() -> Vec<PathBuf> {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let mut folders = vec![PathBuf::from("/var/run")];
    folders.extend(std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from));
    folders.extend(["/tmp", "/dev/shm"].map(|parent| format!("{parent}/swipr-{uid}").into()));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    folders.extend(mounts.lines().filter_map(volume));
    let mut seen = Vec::new();
    folders.retain(|folder| {
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        let is_new = !seen.contains(&real);
        seen.push(real);
        is_new
    });
    folders
}

/// The mount point of a line of mountinfo (proc(5)), if a volume may be mounted there.
fn volume(line: &str) -> Option<PathBuf> {
    let (before, after) = line.split_once(" - ")?;
    let point = before.split(' ').nth(4)?.replace("\\040", " ");
    let kind = after.split(' ').next()?;
    let is_system = point == "/" || NEVER.iter().any(|folder| Path::new(&point).starts_with(folder));
    (!is_system && OF_VOLUMES.contains(&kind)).then(|| point.into())
}

/// Sockets whose names end as agents' usually do.
pub fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_NAMES).flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "sock") && is_socket(path)).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_looked_into_and_the_system_is_not() {
        let line =
            |point: &str, kind: &str| format!("36 35 98:0 / {point} rw,noatime shared:1 - {kind} x rw");
        assert_eq!(volume(&line("/sockets", "ext4")), Some("/sockets".into()));
        assert_eq!(volume(&line("/my\\040volume", "tmpfs")), Some("/my volume".into()));
        for (point, kind) in [("/", "overlay"), ("/dev/shm", "tmpfs"), ("/proc", "proc"), ("/a", "cgroup2")] {
            assert_eq!(volume(&line(point, kind)), None, "{point}");
        }
    }
}
