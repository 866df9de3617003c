//! Folders in which no other user can change what is there.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PREFIX: &str = "swipr-run-";
/// A folder that is younger may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A new folder with a short path, removed with all that is in it when dropped. Its mode is 0700.
/// It is locked for as long (flock(2)): one that is not was left by a command that was killed.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _locked: Option<File>,
}

impl Folder {
    /// Makes one.
    pub fn new() -> io::Result<Folder> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        Folder::below(runtime.filter(|path| path.is_absolute()))
    }

    fn below(first: Option<PathBuf>) -> io::Result<Folder> {
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in first.into_iter().chain([std::env::temp_dir(), "/tmp".into(), "/dev/shm".into()]) {
            for attempt in 0..100 {
                let path = parent.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
                match DirBuilder::new().mode(0o700).create(&path) {
                    Ok(()) => {
                        let locked = File::open(&path).ok().filter(|file| lock(file, libc::LOCK_SH));
                        remove_left(&parent);
                        return Ok(Folder { path, _locked: locked });
                    }
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                    Err(error) => {
                        last = error;
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    /// For the sockets of programs that are started. Root's may change their user and execute
    /// another program: any user may make a socket in it, and take no other user's away.
    pub fn for_sockets() -> io::Result<Folder> {
        // SAFETY: it takes nothing and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Folder::new();
        }
        // Not below $XDG_RUNTIME_DIR, which no other user may enter.
        let folder = Folder::below(None)?;
        std::fs::set_permissions(&folder.path, Permissions::from_mode(0o1733))?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is in a folder for temporary files. An empty one needs no
        // descriptor, of which there may be none.
        if std::fs::remove_dir(&self.path).is_err() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Locks the folder in this way, if that is possible now.
fn lock(folder: &File, how: i32) -> bool {
    // SAFETY: flock(2) takes values only.
    unsafe { libc::flock(folder.as_raw_fd(), how | libc::LOCK_NB) == 0 }
}

/// Removes the user's folders that commands have left which were killed, unless a program still has
/// its socket there.
fn remove_left(parent: &Path) {
    // SAFETY: it takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named_so = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Not through a link.
        let found = entry.metadata().ok().filter(|found| is_named_so && found.is_dir() && found.uid() == uid);
        let is_old =
            found.and_then(|found| found.modified().ok()?.elapsed().ok()).is_some_and(|age| age > YOUNG);
        if is_old && File::open(entry.path()).is_ok_and(|file| lock(&file, libc::LOCK_EX)) {
            // One that is not empty stays.
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Folders of the user's own that outlive this command, the best first: made where they are
/// missing, left out where another user could change what is in them.
#[cfg(feature = "embed")]
pub fn folders() -> Vec<PathBuf> {
    // SAFETY: it takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let kept = cache.or(home).filter(|path| path.is_absolute()).map(|path| path.join("swipr"));
    let all =
        kept.into_iter().chain([format!("/tmp/swipr-{uid}").into(), format!("/dev/shm/swipr-{uid}").into()]);
    all.filter(|folder| is_ours(folder, uid)).collect()
}

#[cfg(feature = "embed")]
fn is_ours(folder: &Path, uid: u32) -> bool {
    let _ = DirBuilder::new().mode(0o700).recursive(true).create(folder);
    std::fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn what_killed_commands_left_is_removed_and_nothing_else() {
        let parent = Folder::new().expect("a folder");
        let made = ["left", "locked", "full", "young"].map(|name| {
            let path = parent.path().join(format!("{PREFIX}{name}"));
            DirBuilder::new().create(&path).expect("a folder");
            (File::open(&path).expect("it"), path)
        });
        std::fs::write(made[2].1.join("socket"), "").expect("a file");
        let old = SystemTime::now() - 2 * YOUNG;
        made[..3].iter().for_each(|(file, _)| file.set_modified(old).expect("its time"));
        assert!(lock(&made[1].0, libc::LOCK_SH));
        remove_left(parent.path());
        assert_eq!(made.map(|(_, path)| path.exists()), [false, true, true, true]);
    }
}
