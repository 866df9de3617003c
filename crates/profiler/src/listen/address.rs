//! Socket addresses as the kernel wants them: unix(7), ip(7), ipv6(7).
//! Not here: the file that a Unix socket's path makes (`file.rs`).

use super::{Address, ListenError, refused};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use swipr_os::socket::Socket;

/// Longest path or abstract name: `sun_path` has 108 bytes, one of them a NUL.
pub(super) const MOST_BYTES: usize = 107;

/// An address in the kernel's form.
pub(super) struct Raw {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Raw {
    pub(super) fn new(address: &Address) -> Result<Raw, ListenError> {
        match address {
            Address::Path(path) => {
                let bytes = path.as_os_str().as_bytes();
                // With its final NUL, so that the kernel need not add one.
                Raw::unix(address, bytes, 0, bytes.len() + 1)
            }
            Address::Abstract(name) => Raw::unix(address, name, 1, name.len() + 1),
            Address::Tcp(tcp) => Ok(Raw::tcp(tcp)),
        }
    }

    fn zeroed() -> libc::sockaddr_storage {
        // SAFETY: plain integers, for which zero is a value.
        unsafe { mem::zeroed() }
    }

    /// `name` from the `at`-th byte of `sun_path`, of which `used` bytes count.
    fn unix(address: &Address, name: &[u8], at: usize, used: usize) -> Result<Raw, ListenError> {
        // SAFETY: plain integers, for which zero is a value.
        let mut unix: libc::sockaddr_un = unsafe { mem::zeroed() };
        unix.sun_family = libc::AF_UNIX as libc::sa_family_t;
        let room = unix.sun_path.iter_mut().skip(at);
        if name.len() > MOST_BYTES {
            return Err(ListenError::TooLong { name: address.to_string(), bytes: name.len() });
        }
        for (to, from) in room.zip(name) {
            *to = *from as libc::c_char;
        }
        let length = mem::offset_of!(libc::sockaddr_un, sun_path) + used;
        Ok(Raw::from(unix, length))
    }

    fn tcp(address: &SocketAddr) -> Raw {
        match address {
            SocketAddr::V4(v4) => {
                // SAFETY: plain integers, for which zero is a value.
                let mut raw: libc::sockaddr_in = unsafe { mem::zeroed() };
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                Raw::from(raw, mem::size_of::<libc::sockaddr_in>())
            }
            SocketAddr::V6(v6) => {
                // SAFETY: plain integers, for which zero is a value.
                let mut raw: libc::sockaddr_in6 = unsafe { mem::zeroed() };
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_port = v6.port().to_be();
                raw.sin6_addr.s6_addr = v6.ip().octets();
                raw.sin6_scope_id = v6.scope_id();
                Raw::from(raw, mem::size_of::<libc::sockaddr_in6>())
            }
        }
    }

    fn from<T: Copy>(address: T, length: usize) -> Raw {
        const { assert!(mem::size_of::<T>() <= mem::size_of::<libc::sockaddr_storage>()) };
        let mut storage = Raw::zeroed();
        // SAFETY: `sockaddr_storage` is large enough (asserted above) and aligned for
        // every address (POSIX), and one may be written over the other.
        unsafe { std::ptr::from_mut(&mut storage).cast::<T>().write(address) };
        Raw { storage, length: length as libc::socklen_t }
    }

    fn pointer(&self) -> *const libc::sockaddr {
        std::ptr::from_ref(&self.storage).cast()
    }

    pub(super) fn bind(&self, socket: &Socket) -> io::Result<()> {
        // SAFETY: bind(2) reads `length` bytes of the address, which are there.
        checked(unsafe { libc::bind(socket.fd(), self.pointer(), self.length) })
    }

    pub(super) fn connect(&self, socket: &Socket) -> io::Result<()> {
        // SAFETY: connect(2) reads `length` bytes of the address, which are there.
        checked(unsafe { libc::connect(socket.fd(), self.pointer(), self.length) })
    }
}

/// Connects to a Unix socket without waiting. A full queue is as good as a connection: whoever
/// serves it is awake.
pub(crate) fn connect(address: &Address) -> io::Result<Socket> {
    let raw = Raw::new(address).map_err(io::Error::other)?;
    let socket = Socket::new(libc::AF_UNIX)?;
    match raw.connect(&socket) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(socket),
    }
}

fn checked(status: libc::c_int) -> io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A socket bound to an abstract or TCP address.
pub(super) fn bind(address: &Address) -> Result<Socket, ListenError> {
    let family = match address {
        Address::Tcp(SocketAddr::V4(_)) => libc::AF_INET,
        Address::Tcp(SocketAddr::V6(_)) => libc::AF_INET6,
        Address::Path(_) | Address::Abstract(_) => libc::AF_UNIX,
    };
    let raw = Raw::new(address)?;
    let failed = |tried: &str, source| ListenError::System { tried: format!("{tried} {address}"), source };
    let socket = Socket::new(family).map_err(|source| failed("open a socket for", source))?;
    if family != libc::AF_UNIX {
        let on: libc::c_int = 1;
        // Connections of an earlier process may linger on the port (socket(7)).
        // SAFETY: setsockopt(2) reads an int.
        let status = unsafe {
            libc::setsockopt(
                socket.fd(),
                libc::SOL_SOCKET,
                libc::SO_REUSEADDR,
                std::ptr::from_ref(&on).cast(),
                mem::size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if status != 0 {
            return Err(refused("prepare", address));
        }
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

/// The address that a TCP socket has on our side.
pub(crate) fn local(socket: &Socket) -> io::Result<SocketAddr> {
    // SAFETY: getsockname(2) writes at most `length` bytes.
    filled(|address, length| unsafe { libc::getsockname(socket.fd(), address, length) })
}

/// The address of its other end.
pub(crate) fn peer(socket: &Socket) -> io::Result<SocketAddr> {
    // SAFETY: getpeername(2) writes at most `length` bytes.
    filled(|address, length| unsafe { libc::getpeername(socket.fd(), address, length) })
}

fn filled(
    fill: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int,
) -> io::Result<SocketAddr> {
    let mut raw =
        Raw { storage: Raw::zeroed(), length: mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t };
    checked(fill(std::ptr::from_mut(&mut raw.storage).cast(), &mut raw.length))?;
    match libc::c_int::from(raw.storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which address the storage holds.
            let v4 = unsafe { raw.pointer().cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Ok(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says which address the storage holds.
            let v6 = unsafe { raw.pointer().cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Ok(SocketAddr::from((ip, u16::from_be(v6.sin6_port))))
        }
        _ => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    }
}
