//! Sockets as they appear in a folder: reported by the kernel (inotify(7)), at once.

use crate::error::Error;
use crate::threads;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

/// `struct inotify_event`: watch, mask, cookie, length of the name.
const HEAD: usize = 16;

/// A folder that is watched.
#[derive(Debug)]
pub struct SocketWatch {
    events: File,
    folder: PathBuf,
}

impl SocketWatch {
    /// Watches a folder from now on.
    pub fn new(folder: &Path) -> io::Result<SocketWatch> {
        // SAFETY: inotify_init1(2) takes no pointer.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let path = CString::new(folder.as_os_str().as_bytes())?;
        let mask = libc::IN_CREATE | libc::IN_MOVED_TO;
        // SAFETY: a C string and an open descriptor.
        if unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), mask) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(SocketWatch { events: File::from(fd), folder: folder.to_owned() })
    }

    /// What appears, in order. `wake` is called after each. Ends with the process.
    pub fn start(mut self, wake: impl Fn() + Send + 'static) -> Result<Receiver<PathBuf>, Error> {
        let (sender, receiver) = channel();
        threads::start(move || {
            let mut buffer = vec![0; 16 << 10];
            while let Ok(got @ 1..) = self.events.read(&mut buffer) {
                for name in names(buffer.get(..got).unwrap_or_default()) {
                    if sender.send(self.folder.join(OsStr::from_bytes(name))).is_err() {
                        return;
                    }
                    wake();
                }
            }
        })?;
        Ok(receiver)
    }
}

/// The names in a read's worth of events.
fn names(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(HEAD) {
        let length = head.last_chunk::<4>().map_or(0, |length| u32::from_ne_bytes(*length)) as usize;
        let Some((name, rest)) = rest.split_at_checked(length) else { break };
        found.extend(name.split(|&byte| byte == 0).next().filter(|name| !name.is_empty()));
        bytes = rest;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_appears_in_the_folder_is_told_in_order() {
        let directory = swipr_c_tests::directory::Directory::new();
        let (woken, wakes) = channel();
        let wake = move || woken.send(()).expect("the test waits");
        let watched = SocketWatch::new(directory.path()).expect("a watch").start(wake).expect("a thread");
        for name in ["a", "a longer name", "c"] {
            let path = directory.path().join(name);
            std::fs::write(&path, "").expect("a file");
            assert_eq!(wakes.recv_timeout(Duration::from_secs(30)), Ok(()));
            assert_eq!(watched.try_recv(), Ok(path));
        }
    }
}
