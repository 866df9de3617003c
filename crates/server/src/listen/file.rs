//! The file of a Unix socket: made private, replaced only if stale, removed at the end only by the
//! process that made it.

use super::address::Raw;
use super::{Address, ListenError, Reach};
use nix::sys::socket::AddressFamily;
use nix::sys::stat::{Mode, fchmod};
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use swipr_os::process;
use swipr_os::socket::Socket;

/// A socket's file as this process made it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// The process that made it: a forked child must not remove its parent's file.
    pid: u32,
    /// It was given up to another file of the same path.
    forgotten: AtomicBool,
}

impl SocketFile {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Never removes it from here on. A new file of the same path may even have the
    /// same inode number.
    pub(crate) fn forget(&self) {
        self.forgotten.store(true, Ordering::Relaxed);
    }

    /// Removes the file if it is still the same file and this process made it. Harmless to call
    /// twice; callable from any thread.
    pub fn remove(&self) {
        if self.forgotten.load(Ordering::Relaxed) || self.pid != std::process::id() {
            return;
        }
        if let Ok(found) = fs::symlink_metadata(&self.path)
            && (found.dev(), found.ino()) == (self.device, self.inode)
        {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Keeps agents of the same network namespace from binding or removing sockets at a path while the
/// result lives: a socket that is bound and does not listen yet looks stale. The kernel gives the
/// path's text once as an abstract name, and takes it back when the process ends (unix(7)).
/// `None`: it has been taken at each of `tries`, a millisecond apart, or there is no socket for it.
pub(super) fn claim(path: &Path, tries: u32) -> Option<Socket> {
    let raw = Raw::new(&Address::Abstract(path.as_os_str().as_bytes().to_vec())).ok()?;
    let socket = Socket::new(AddressFamily::Unix).ok()?;
    for _ in 0..tries {
        match raw.bind(&socket) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => thread::sleep(Duration::from_millis(1)),
            bound => return bound.ok().map(|()| socket),
        }
    }
    None
}

/// Binds a socket to a path. A stale file of the process's own user is replaced.
pub(super) fn bind(path: &Path, reach: Reach) -> Result<(Socket, SocketFile), ListenError> {
    let address = Address::Path(path.to_owned());
    let raw = Raw::new(&address)?;
    let failed = |tried: &str, source| ListenError::System { tried: format!("{tried} {address}"), source };
    let socket = Socket::new(AddressFamily::Unix).map_err(|e| failed("open a socket for", e))?;
    // bind(2) gives the file the mode of the socket's own inode less the umask
    // (Linux, net/unix/af_unix.c), so that it is private from its first moment.
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|e| failed("make private", e.into()))?;
    match raw.bind(&socket) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            clear_stale(path, &raw)?;
            raw.bind(&socket).map_err(|e| failed("bind", e))?;
        }
        Err(error) => return Err(failed("bind", error)),
    }
    let made = fs::symlink_metadata(path).map_err(|e| failed("look at", e))?;
    if reach == Reach::Everybody {
        open_to_all(path, &made).map_err(|e| failed("open to others", e))?;
    }
    let file = SocketFile {
        path: path.to_owned(),
        device: made.dev(),
        inode: made.ino(),
        pid: std::process::id(),
        forgotten: AtomicBool::new(false),
    };
    Ok((socket, file))
}

/// Gives the file that was just made mode 0666, whatever the umask says. Uses a descriptor of the
/// file itself, in case another process has put another file in its place meanwhile.
fn open_to_all(path: &Path, made: &Metadata) -> io::Result<()> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.file_type().is_socket() || (found.dev(), found.ino()) != (made.dev(), made.ino()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    // chmod(2) by number does not take descriptors of this kind before Linux 6.6; their link in
    // /proc does.
    let link = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
    fs::set_permissions(link, Permissions::from_mode(0o666))
}

/// Removes a socket file that no process listens on any more.
pub(super) fn clear_stale(path: &Path, raw: &Raw) -> Result<(), ListenError> {
    let failed =
        |tried: &str, source| ListenError::System { tried: format!("{tried} {}", path.display()), source };
    let name = || path.display().to_string();
    let found = fs::symlink_metadata(path).map_err(|e| failed("look at", e))?;
    if !found.file_type().is_socket() || found.uid() != process::user() {
        return Err(ListenError::InTheWay(name()));
    }
    let probe = Socket::new(AddressFamily::Unix).map_err(|e| failed("open a socket for", e))?;
    match raw.connect(&probe) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|e| failed("remove the stale", e))
        }
        // A full backlog (EAGAIN) is a sign of life as well.
        _ => Err(ListenError::InUse(name())),
    }
}
