//! Folders in which no other user can change what is there.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A new folder with a short path, removed with all that is in it when dropped. Its mode is 0700.
#[derive(Debug)]
pub struct Folder(PathBuf);

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
                let path = parent.join(format!("swipr-run-{}-{attempt}", std::process::id()));
                match DirBuilder::new().mode(0o700).create(&path) {
                    Ok(()) => return Ok(Folder(path)),
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
        std::fs::set_permissions(&folder.0, Permissions::from_mode(0o1733))?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is in a folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
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
    use std::os::unix::fs::MetadataExt;
    let _ = DirBuilder::new().mode(0o700).recursive(true).create(folder);
    std::fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0)
}
