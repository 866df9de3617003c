//! A socket of ours in a process that is somebody else's.
//!
//! The host may close every descriptor it does not know, or put its own files on
//! our numbers (daemonize, closefrom, a shell's redirections). So a socket remembers
//! the kernel's cookie of what it opened and touches nothing else, not even to close
//! it; it sits on a high number, out of the way of the host's next `open`; it is
//! close-on-exec; and sending on it never raises SIGPIPE.
//! Not here: addresses (`listen.rs`), waiting (`poller.rs`).

use std::io;
use std::mem;
use std::os::fd::RawFd;

/// Where to look for a free descriptor number, the first that the limit allows.
const FROM: [libc::c_int; 5] = [512, 128, 32, 10, 3];

/// A non-blocking, close-on-exec stream socket on a high descriptor number.
#[derive(Debug)]
pub struct Socket {
    fd: RawFd,
    cookie: u64,
}

impl Socket {
    /// A new stream socket of a family (`AF_UNIX`, `AF_INET`, `AF_INET6`).
    pub fn new(family: libc::c_int) -> io::Result<Socket> {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket(2) takes no pointers.
        Socket::adopt(unsafe { libc::socket(family, kind, 0) })
    }

    /// A socket that asks the kernel about others (sock_diag(7)).
    pub fn diagnosis() -> io::Result<Socket> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket(2) takes no pointers.
        Socket::adopt(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) })
    }

    /// Two sockets that are connected with each other.
    pub fn pair() -> io::Result<(Socket, Socket)> {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let mut ends = [-1; 2];
        // SAFETY: socketpair(2) fills the two descriptors of `ends`.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let [one, other] = ends;
        let (one, other) = (Socket::adopt(one), Socket::adopt(other));
        Ok((one?, other?))
    }

    /// The next connection of a listening socket.
    pub fn accept(&self) -> io::Result<Socket> {
        self.check()?;
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let nowhere = std::ptr::null_mut();
        // SAFETY: accept4(2) allows null for the address and its length.
        Socket::adopt(unsafe { libc::accept4(self.fd, nowhere, nowhere.cast(), flags) })
    }

    /// Takes over a descriptor just made (or the error that is -1), on a high number.
    fn adopt(low: RawFd) -> io::Result<Socket> {
        if low < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = FROM.into_iter().find_map(|from| {
            // SAFETY: F_DUPFD_CLOEXEC takes an integer; it fails with EINVAL above
            // the limit and with EMFILE when nothing is free (fcntl(2)).
            let fd = unsafe { libc::fcntl(low, libc::F_DUPFD_CLOEXEC, from) };
            (fd >= 0).then_some(fd)
        });
        let fd = match fd {
            Some(high) => {
                // SAFETY: `low` was made by our caller a moment ago and is not used again.
                unsafe { libc::close(low) };
                high
            }
            // No second number is free. The one we have will do unless it is one
            // that the host's standard streams should have.
            None if low > 2 => low,
            None => {
                // SAFETY: as above.
                unsafe { libc::close(low) };
                return Err(io::Error::from_raw_os_error(libc::EMFILE));
            }
        };
        let Some(cookie) = cookie(fd) else {
            // SAFETY: `fd` is ours and is not used again.
            unsafe { libc::close(fd) };
            return Err(io::Error::from_raw_os_error(libc::ENOTSOCK));
        };
        Ok(Socket { fd, cookie })
    }

    /// The descriptor, for calls that only look.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// What tells this socket from any other.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Whether the descriptor is still the socket we opened.
    pub fn is_ours(&self) -> bool {
        cookie(self.fd) == Some(self.cookie)
    }

    fn check(&self) -> io::Result<()> {
        match self.is_ours() {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::ENOTSOCK)),
        }
    }

    /// Reads what is there, without waiting; 0 is the end.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        // SAFETY: recv(2) writes at most `into.len()` bytes into `into`.
        let count = unsafe { libc::recv(self.fd, into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Writes what fits, without waiting and without SIGPIPE.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: send(2) reads `bytes.len()` bytes from `bytes`.
        let count = unsafe { libc::send(self.fd, bytes.as_ptr().cast(), bytes.len(), flags) };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Tells the peer that nothing more comes; reading goes on.
    pub fn end_of_sending(&self) {
        if self.is_ours() {
            // SAFETY: shutdown(2) takes no pointers.
            unsafe { libc::shutdown(self.fd, libc::SHUT_WR) };
        }
    }

    /// The user at the other end of a Unix socket when it connected (unix(7)).
    pub fn peer_uid(&self) -> io::Result<u32> {
        self.check()?;
        let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
        option(self.fd, libc::SO_PEERCRED, &mut peer).map(|()| peer.uid)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_ours() {
            // A child that was forked meanwhile holds the socket open as well: the
            // peer must see the end all the same.
            // SAFETY: shutdown(2) and close(2) take no pointers; the descriptor was
            // found to be ours and is not used again.
            unsafe {
                libc::shutdown(self.fd, libc::SHUT_RDWR);
                libc::close(self.fd);
            }
        }
    }
}

/// A socket option of a plain type. `value` must be valid whatever bytes it has.
fn option<T: Copy>(fd: RawFd, name: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut size = mem::size_of::<T>() as libc::socklen_t;
    let target = std::ptr::from_mut(value).cast();
    // SAFETY: getsockopt(2) writes at most `size` bytes, which is the size of `value`;
    // only integers and structs of integers come here.
    if unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, target, &mut size) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The kernel's number of the socket behind a descriptor: SO_COOKIE, which is never
/// used twice, or its inode where the kernel is older than 4.12.
pub fn cookie(fd: RawFd) -> Option<u64> {
    let mut cookie = 0u64;
    if option(fd, libc::SO_COOKIE, &mut cookie).is_ok() {
        return Some(cookie);
    }
    // SAFETY: `stat` is plain data; fstat(2) fills it.
    unsafe {
        let mut found: libc::stat = mem::zeroed();
        let is_socket = libc::fstat(fd, &mut found) == 0 && found.st_mode & libc::S_IFMT == libc::S_IFSOCK;
        is_socket.then_some(found.st_ino)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_sit_on_high_numbers_and_close_on_exec() {
        let (one, other) = Socket::pair().unwrap();
        for socket in [&one, &other] {
            assert!(socket.fd() >= 32, "{}", socket.fd());
            // SAFETY: F_GETFD takes no argument.
            let flags = unsafe { libc::fcntl(socket.fd(), libc::F_GETFD) };
            assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        }
    }

    #[test]
    fn a_socket_whose_number_the_host_took_is_left_alone() {
        let (ours, peer) = Socket::pair().unwrap();
        let (hosts, hosts_peer) = Socket::pair().unwrap();
        // SAFETY: what a host does that reuses our number: dup2 takes no pointers.
        unsafe { libc::dup2(hosts.fd(), ours.fd()) };
        let taken = ours.fd();
        hosts_peer.send(b"for the host").unwrap();
        assert!(!ours.is_ours());
        assert!(ours.send(b"x").is_err());
        assert!(ours.receive(&mut [0; 8]).is_err());
        drop(ours);
        let mut heard = [0; 64];
        assert_eq!(hosts.receive(&mut heard).unwrap(), 12, "nothing was stolen");
        assert_eq!(cookie(taken), Some(hosts.cookie()), "nor closed");
        // SAFETY: the number that dup2 gave us above, closed once.
        unsafe { libc::close(taken) };
        drop(peer);
    }

    #[test]
    fn sending_to_a_peer_that_is_gone_is_an_error_and_no_signal() {
        let (ours, peer) = Socket::pair().unwrap();
        drop(peer);
        // SAFETY: sets a disposition; the default one would end this process.
        let before = unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let error = ours.send(b"x").unwrap_err();
        // SAFETY: puts back what was there.
        unsafe { libc::signal(libc::SIGPIPE, before) };
        assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
    }
}
