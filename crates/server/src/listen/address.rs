//! Socket addresses as the kernel wants them: unix(7), ip(7), ipv6(7).
//! Not here: the file that a Unix socket's path makes (`file.rs`).

use super::{Address, ListenError};
use nix::errno::Errno;
use nix::sys::socket::{self, AddressFamily, SockaddrLike, SockaddrStorage, UnixAddr, sockopt};
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use swipr_os::socket::Socket;

/// Longest path or abstract name: `sun_path` has 108 bytes, one of them a NUL.
pub(super) const MAX_BYTES: usize = 107;

/// An address in the kernel's form.
pub(super) enum Raw {
    Unix(UnixAddr),
    Tcp(SockaddrStorage),
}

impl Raw {
    pub(super) fn new(address: &Address) -> Result<Raw, ListenError> {
        let unix = |name: &[u8], made: fn(&[u8]) -> nix::Result<UnixAddr>| match name.len() {
            bytes if bytes > MAX_BYTES => Err(ListenError::TooLong { name: address.to_string(), bytes }),
            _ => made(name).map(Raw::Unix).map_err(|error| ListenError::System {
                tried: format!("use the address {address}"),
                source: error.into(),
            }),
        };
        match address {
            Address::Path(path) => unix(path.as_os_str().as_bytes(), UnixAddr::new),
            Address::Abstract(name) => unix(name, UnixAddr::new_abstract),
            Address::Tcp(tcp) => Ok(Raw::Tcp(SockaddrStorage::from(*tcp))),
        }
    }

    fn for_kernel(&self) -> &dyn SockaddrLike {
        match self {
            Raw::Unix(unix) => unix,
            Raw::Tcp(tcp) => tcp,
        }
    }

    pub(super) fn bind(&self, socket: &Socket) -> io::Result<()> {
        Ok(socket::bind(socket.fd(), self.for_kernel())?)
    }

    pub(super) fn connect(&self, socket: &Socket) -> io::Result<()> {
        Ok(socket::connect(socket.fd(), self.for_kernel())?)
    }
}

/// Connects to a Unix socket without waiting. A full queue is as good as a connection: its server
/// is awake.
pub(crate) fn connect(address: &Address) -> io::Result<Socket> {
    let raw = Raw::new(address).map_err(io::Error::other)?;
    let socket = Socket::new(AddressFamily::Unix)?;
    match raw.connect(&socket) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(socket),
    }
}

/// A socket bound to an abstract or TCP address.
pub(super) fn bind(address: &Address) -> Result<Socket, ListenError> {
    let family = match address {
        Address::Tcp(SocketAddr::V4(_)) => AddressFamily::Inet,
        Address::Tcp(SocketAddr::V6(_)) => AddressFamily::Inet6,
        Address::Path(_) | Address::Abstract(_) => AddressFamily::Unix,
    };
    let raw = Raw::new(address)?;
    let failed = |tried: &str, source| ListenError::System { tried: format!("{tried} {address}"), source };
    let socket = Socket::new(family).map_err(|source| failed("open a socket for", source))?;
    if family != AddressFamily::Unix {
        // Connections of an earlier process may linger on the port (socket(7)).
        socket::setsockopt(&socket, sockopt::ReuseAddr, &true)
            .map_err(|error| failed("prepare", error.into()))?;
    }
    raw.bind(&socket).map_err(|source| {
        if source.kind() == io::ErrorKind::AddrInUse {
            ListenError::InUse(address.to_string())
        } else {
            failed("bind", source)
        }
    })?;
    Ok(socket)
}

/// A TCP socket's own address.
pub(crate) fn local(socket: &Socket) -> io::Result<SocketAddr> {
    tcp(socket::getsockname(socket.fd())?)
}

/// The address of a TCP socket's other end.
pub(crate) fn peer(socket: &Socket) -> io::Result<SocketAddr> {
    tcp(socket::getpeername(socket.fd())?)
}

fn tcp(found: SockaddrStorage) -> io::Result<SocketAddr> {
    let v4 = found.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    let v6 = || found.as_sockaddr_in6().map(|v6| SocketAddr::from((v6.ip(), v6.port())));
    v4.or_else(v6).ok_or_else(|| Errno::EAFNOSUPPORT.into())
}
