//! A directory that lives as long as a test. Short paths: a socket's has at most 107 bytes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A new, empty directory; removed with everything in it when dropped.
#[derive(Debug)]
pub struct Directory(PathBuf);

impl Directory {
    /// Makes one in the system's directory for temporary files, for this user only.
    pub fn new() -> Self {
        use std::os::unix::fs::DirBuilderExt;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("swipr-c-{}-{number}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Self(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("cannot make {}: {error}", path.display()),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left behind is in the system's temporary directory: no reason to fail.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
