//! Where an agent listens, as the user writes it and as it is connected to. Not here: finding it
//! (`find.rs`).

use crate::error::{Error, Exit};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A socket's path has at most so many bytes (`sun_path` of unix(7), with its NUL).
const LONGEST_PATH: usize = 107;
/// How long a TCP connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// An address that an agent may listen at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// A Unix socket's file.
    Path(PathBuf),
    /// A Unix socket's name in the abstract namespace, without its `@`.
    Abstract(Vec<u8>),
    /// TCP.
    Tcp(SocketAddr),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Path(path) => write!(f, "{}", path.display()),
            Endpoint::Abstract(name) => write!(f, "@{}", String::from_utf8_lossy(name)),
            Endpoint::Tcp(address) => write!(f, "{address}"),
        }
    }
}

impl Endpoint {
    /// Reads a socket's path (with a slash, or `NAME.sock`), `@name`, `unix:///path`,
    /// `http://host:port`, `host:port`. None for what is none of these: a process's id or name.
    pub fn parse(text: &str) -> Option<Result<Endpoint, Error>> {
        if let Some(path) = text.strip_prefix("unix://") {
            return Some(Ok(Endpoint::Path(path.into())));
        }
        if let Some(name) = text.strip_prefix('@') {
            return Some(Ok(Endpoint::Abstract(name.into())));
        }
        if let Some(authority) = text.strip_prefix("http://").or_else(|| text.strip_prefix("tcp://")) {
            return Some(tcp(authority.trim_end_matches('/')));
        }
        if text.contains('/') || text.ends_with(".sock") {
            return Some(Ok(Endpoint::Path(text.into())));
        }
        let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        has_port.then(|| tcp(text))
    }

    /// Whose socket file it is.
    pub fn owner(&self) -> Option<u32> {
        let Endpoint::Path(path) = self else { return None };
        std::fs::metadata(path).ok().map(|found| std::os::unix::fs::MetadataExt::uid(&found))
    }

    /// Connects to it.
    pub fn connect(&self) -> io::Result<Connection> {
        match self {
            Endpoint::Path(path) => connect_path(path).map(Connection::Unix),
            Endpoint::Abstract(name) => {
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                UnixStream::connect_addr(&address).map(Connection::Unix)
            }
            Endpoint::Tcp(address) => TcpStream::connect_timeout(address, CONNECT).map(Connection::Tcp),
        }
    }
}

/// Resolves `host:port`.
fn tcp(authority: &str) -> Result<Endpoint, Error> {
    let with_port = match authority.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
        _ => format!("{authority}:7377"),
    };
    let wrong = |why: String| {
        Error::new(
            format!("cannot find the address {with_port}: {why}"),
            "write it as 127.0.0.1:7377, or give a socket's path or a process id",
        )
        .exit(Exit::Usage)
    };
    let mut found = with_port.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    found.next().map(Endpoint::Tcp).ok_or_else(|| wrong("the name has none".to_owned()))
}

/// Connects to a path of any length: one that is too long for `sun_path` by way of its directory's
/// descriptor.
fn connect_path(path: &Path) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::OpenOptionsExt;
    if path.as_os_str().as_bytes().len() <= LONGEST_PATH {
        return UnixStream::connect(path);
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return UnixStream::connect(path);
    };
    let open = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(directory)?;
    UnixStream::connect(Path::new(&format!("/proc/self/fd/{}", open.as_raw_fd())).join(name))
}

/// A connection to an agent.
#[derive(Debug)]
pub enum Connection {
    /// By a Unix socket.
    Unix(UnixStream),
    /// By TCP.
    Tcp(TcpStream),
}

impl Connection {
    /// A second handle of the same connection.
    pub fn try_clone(&self) -> io::Result<Connection> {
        match self {
            Connection::Unix(stream) => stream.try_clone().map(Connection::Unix),
            Connection::Tcp(stream) => stream.try_clone().map(Connection::Tcp),
        }
    }

    /// The process that listens at the other end of a Unix socket, where it can be seen from here
    /// (unix(7), SO_PEERCRED).
    pub fn peer(&self) -> Option<u32> {
        use std::os::fd::AsRawFd;
        let Connection::Unix(stream) = self else { return None };
        let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: getsockopt(2) writes at most so many bytes there; both live until it returns.
        let status = unsafe {
            let place = (&raw mut found).cast();
            libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut bytes)
        };
        u32::try_from(found.pid).ok().filter(|&pid| status == 0 && pid > 0)
    }

    /// How long a read may wait; `None` for ever.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Connection::Unix(stream) => stream.set_read_timeout(timeout),
            Connection::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Ends one direction or both, for all handles.
    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        match self {
            Connection::Unix(stream) => stream.shutdown(how),
            Connection::Tcp(stream) => stream.shutdown(how),
        }
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Connection::Unix(stream) => stream.read(buffer),
            Connection::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Connection::Unix(stream) => stream.write(bytes),
            Connection::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_a_process() {
        let parsed = |text| Endpoint::parse(text).map(|endpoint| endpoint.map(|e| e.to_string()));
        assert_eq!(parsed("1234"), None);
        assert_eq!(parsed("nginx"), None);
        assert_eq!(parsed("kworker:0x"), None);
        for (text, shown) in [
            ("./a.sock", "./a.sock"),
            ("app.sock", "app.sock"),
            ("unix:///run/a.sock", "/run/a.sock"),
            ("@app", "@app"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("http://127.0.0.1/", "127.0.0.1:7377"),
            ("tcp://127.0.0.1:1", "127.0.0.1:1"),
        ] {
            assert_eq!(parsed(text), Some(Ok(shown.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_socket_whose_path_is_too_long_for_the_kernel_is_reached() {
        let mut directory = swipr_c_tests::directory::Directory::new().path().to_owned();
        let top = directory.clone();
        directory.push("d".repeat(120));
        std::fs::create_dir_all(&directory).expect("a directory");
        let short = top.join("s");
        let listener = std::os::unix::net::UnixListener::bind(&short).expect("a socket");
        std::fs::rename(&short, directory.join("s")).expect("moved");
        assert!(Endpoint::Path(directory.join("s")).connect().is_ok());
        drop(listener);
        std::fs::remove_dir_all(top).expect("removed");
    }
}
