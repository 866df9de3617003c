//! Directories that a socket may be in: which can be trusted, and a private one inside one that any
//! user may write to.

use super::ListenError;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use swipr_os::process;

/// Checks that only root and the process's own user can replace a file in this directory. After a
/// change of users that kept the environment, `$XDG_RUNTIME_DIR` is another user's.
pub(super) fn trusted(directory: &Path) -> Result<(), ListenError> {
    let own_uid = process::user();
    let found = fs::metadata(directory).map_err(|source| ListenError::System {
        tried: format!("look at {}", directory.display()),
        source,
    })?;
    let is_sticky = found.mode() & libc::S_ISVTX != 0;
    let reason = match found.uid() {
        uid if uid != 0 && uid != own_uid => "another user owns it",
        _ if found.mode() & 0o022 != 0 && !is_sticky => "other users can change it",
        _ => return Ok(()),
    };
    Err(ListenError::Directory { path: directory.to_owned(), reason })
}

/// `<parent>/swipr-<uid>`, made with mode 0700. One that is there already must be a directory (no
/// symlink) of the process's own user that no other user can enter: any user could have put it
/// there to catch the socket.
pub(super) fn private(parent: &Path) -> Result<PathBuf, ListenError> {
    let uid = process::user();
    let path = parent.join(format!("swipr-{uid}"));
    let system =
        |tried: &str, source| ListenError::System { tried: format!("{tried} {}", path.display()), source };
    match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(system("make the directory", error)),
    }
    let found = fs::symlink_metadata(&path).map_err(|e| system("look at", e))?;
    let reason = if found.file_type().is_symlink() {
        "it is a symlink"
    } else if !found.is_dir() {
        "it is not a directory"
    } else if found.uid() != uid {
        "another user owns it"
    } else if found.mode() & 0o077 != 0 {
        "other users can enter it"
    } else {
        return Ok(path);
    };
    Err(ListenError::Directory { path, reason })
}
