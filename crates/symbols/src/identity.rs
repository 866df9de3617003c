//! Which file a mapping is of. A path identifies it only until the file is deleted or replaced.
//! Device and inode identify it while it is mapped, and together with the time of its last change
//! also afterwards.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Filesystems for which stat(2) reports another device than proc(5) shows for a mapping: btrfs has
/// one a subvolume, overlayfs one of its own (statfs(2) lists these numbers).
const LAYERED: [i64; 2] = [0x9123_683e, 0x794c_7630];

/// A file, whatever it is called by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The device, as in `st_dev` (stat(2)).
    pub device: u64,
    /// The inode's number. It is not used again while the file is mapped.
    pub inode: u64,
    /// Nanoseconds since the epoch of the last change of the content; `None`: not known, not
    /// compared.
    pub modified_ns: Option<i128>,
}

impl FileIdentity {
    /// Of a device and inode as a mapping has them.
    pub fn new(device: u64, inode: u64) -> FileIdentity {
        FileIdentity { device, inode, modified_ns: None }
    }

    /// With the time of the last change, if the file at `path` still is this one.
    pub fn dated(self, path: &Path) -> FileIdentity {
        // O_PATH: nothing is read, and neither a fifo nor a device notices.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path);
        let modified_ns = opened.ok().filter(|file| self.is(file)).and_then(|file| modified_ns(&file));
        FileIdentity { modified_ns, ..self }
    }

    /// Whether an open file is this one, unchanged.
    pub(crate) fn is(&self, file: &File) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        metadata.ino() == self.inode
            && (metadata.dev() == self.device || is_layered(file))
            && (self.modified_ns.is_none() || self.modified_ns == modified_ns(file))
    }
}

fn modified_ns(file: &File) -> Option<i128> {
    let metadata = file.metadata().ok()?;
    Some(i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()))
}

fn is_layered(file: &File) -> bool {
    let mut about = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open as long as `file`; fstatfs(2) writes `about`.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), about.as_mut_ptr()) };
    // SAFETY: fstatfs has filled it where it returned 0.
    result == 0 && LAYERED.contains(&unsafe { about.assume_init() }.f_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(path: &Path) -> FileIdentity {
        let metadata = std::fs::metadata(path).unwrap();
        FileIdentity::new(metadata.dev(), metadata.ino())
    }

    #[test]
    fn a_file_that_took_the_place_of_another_is_not_that_other() {
        let directory = std::env::temp_dir().join(format!("swipr-identity-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, new) = (directory.join("file"), directory.join("new"));
        std::fs::write(&path, "old").unwrap();
        let old = identity(&path);
        let open = File::open(&path).unwrap();
        assert!(old.is(&open) && old.dated(&path).is(&open));
        assert!(!FileIdentity { inode: old.inode + 1, ..old }.is(&open));
        std::fs::write(&new, "new").unwrap();
        std::fs::rename(&new, &path).unwrap();
        let replaced = File::open(&path).unwrap();
        assert!(!old.is(&replaced) && old.is(&open));
        assert_eq!(old.dated(&path), old);
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_file_that_was_written_again_is_another() {
        let path = std::env::temp_dir().join(format!("swipr-rewritten-{}", std::process::id()));
        std::fs::write(&path, "old").unwrap();
        let old = identity(&path).dated(&path);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(!old.is(&file));
        assert_ne!(identity(&path).dated(&path), old);
        std::fs::remove_file(&path).unwrap();
    }
}
