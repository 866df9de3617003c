//! Opens the sockets that the server listens on, and removes their files again.
//!
//! A socket's place is configured, or it is the first of the default places that works. A socket's
//! file is private from the start (mode 0600 without touching the process's umask). Only files of
//! the process's own user are ever removed.
//! Not here: which users may connect (`auth/access.rs`).

mod address;
mod directory;
mod error;
mod file;
mod identity;
mod place;
mod stale;

pub(crate) use address::{connect, local as local_address, peer as peer_address};
pub use error::ListenError;
pub use file::SocketFile;
pub use identity::Identity;
pub use place::{Pattern, Place};
pub use stale::remove_neighbours;

use nix::sys::socket::{Backlog, listen};
use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use swipr_os::socket::Socket;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 128;
/// How often a path is claimed, a millisecond apart. Another agent needs it for less.
const CLAIMS: u32 = 50;

/// The directories of the default places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    /// `/var/run`.
    pub run: PathBuf,
    /// `$XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `/tmp` and `/dev/shm`: any user may write to them, so a private directory is made there.
    pub temporary: Vec<PathBuf>,
}

impl Directories {
    /// The system's, with what the configuration says of `$XDG_RUNTIME_DIR`.
    pub fn system(runtime: Option<PathBuf>) -> Directories {
        // Where the root is read-only, a container's /dev/shm is not.
        let temporary = vec![PathBuf::from("/tmp"), PathBuf::from("/dev/shm")];
        Directories { run: PathBuf::from("/var/run"), runtime, temporary }
    }
}

/// Which users may open a socket's file. The server checks each client's user besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its owner: mode 0600.
    Owner,
    /// All users, if some are allowed by their number: mode 0666.
    Everybody,
}

impl Reach {
    /// What a list of further users needs.
    pub fn of(allowed_uids: &[u32]) -> Reach {
        if allowed_uids.is_empty() { Reach::Owner } else { Reach::Everybody }
    }
}

/// An address that something listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket's path.
    Path(PathBuf),
    /// A Unix socket's name in the abstract namespace, without its leading NUL.
    Abstract(Vec<u8>),
    /// TCP, with the port that was really given.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Path(path) => write!(f, "{}", path.display()),
            Address::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
            Address::Tcp(address) => write!(f, "{address}"),
        }
    }
}

/// A socket that listens. Dropping it closes it and removes its file.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    file: Option<Arc<SocketFile>>,
    reach: Reach,
}

impl Listener {
    /// Opens a place. `directories` matter for [`Place::Default`] only.
    pub fn open(
        place: &Place,
        identity: &Identity,
        directories: &Directories,
        reach: Reach,
    ) -> Result<Listener, ListenError> {
        match place {
            Place::Path(pattern) => {
                let path = pattern.expand(identity);
                let path = Path::new(OsStr::from_bytes(&path));
                // A relative path must mean the same after the host changed its directory.
                let path = std::path::absolute(path).map_err(|source| ListenError::System {
                    tried: format!("find the directory of {}", path.display()),
                    source,
                })?;
                Listener::at_path(path, reach)
            }
            Place::Abstract(pattern) => Listener::at_address(Address::Abstract(pattern.expand(identity))),
            Place::Tcp(address) => Listener::at_address(Address::Tcp(*address)),
            Place::Default => Listener::at_default(identity.pid, directories, reach),
        }
    }

    fn at_default(pid: u32, directories: &Directories, reach: Reach) -> Result<Listener, ListenError> {
        let name = default_name(pid);
        let mut errors = Vec::new();
        let system = [Some(&directories.run), directories.runtime.as_ref()].into_iter().flatten();
        let system = system.map(|directory| directory::trusted(directory).map(|()| directory.clone()));
        let own = directories.temporary.iter().map(|parent| directory::private(parent));
        for directory in system.chain(own) {
            match directory.and_then(|directory| Listener::at_path(directory.join(&name), reach)) {
                Ok(listener) => return Ok(listener),
                Err(error) => errors.push(error),
            }
        }
        Err(ListenError::Nowhere(errors))
    }

    fn at_path(path: PathBuf, reach: Reach) -> Result<Listener, ListenError> {
        // Not for ever: any user may have taken the name.
        let _claim = file::claim(&path, CLAIMS);
        let (socket, file) = file::bind(&path, reach)?;
        Listener::listening(socket, Address::Path(path), Some(Arc::new(file)), reach)
    }

    fn at_address(address: Address) -> Result<Listener, ListenError> {
        let socket = address::bind(&address)?;
        Listener::listening(socket, address, None, Reach::Owner)
    }

    fn listening(
        socket: Socket,
        address: Address,
        file: Option<Arc<SocketFile>>,
        reach: Reach,
    ) -> Result<Listener, ListenError> {
        Backlog::new(BACKLOG).and_then(|backlog| listen(&socket, backlog)).map_err(|error| {
            ListenError::System { tried: format!("listen on {address}"), source: error.into() }
        })?;
        let address = match address {
            Address::Tcp(_) => Address::Tcp(address::local(&socket).map_err(|source| {
                ListenError::System { tried: format!("find the port of {address}"), source }
            })?),
            other => other,
        };
        Ok(Listener { socket, address, file, reach })
    }

    /// Opens the same address again, after the host closed the socket.
    pub(crate) fn reopen(&self) -> Result<Listener, ListenError> {
        match &self.address {
            Address::Path(path) => Listener::at_path(path.clone(), self.reach),
            other => Listener::at_address(other.clone()),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The file of a Unix socket with a path.
    pub fn file(&self) -> Option<&Arc<SocketFile>> {
        self.file.as_ref()
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }
}

/// The file's name in the default places.
pub(crate) fn default_name(pid: impl fmt::Display) -> String {
    format!("swipr-pid-{pid}.sock")
}

#[cfg(test)]
mod tests;
