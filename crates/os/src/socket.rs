//! A socket of the agent's in the host's process.
//!
//! The host may close every descriptor it does not know, or put its own files on the agent's
//! numbers (daemonize, closefrom, a shell's redirections). So a socket remembers the kernel's
//! cookie of what it opened and touches nothing else, not even to close it. It has a high number,
//! out of the way of the host's next `open`. It is close-on-exec. Sending on it never raises
//! SIGPIPE.
//! Not here: addresses (`listen.rs`), waiting (`poller.rs`).

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::socket::{self, AddressFamily, MsgFlags, Shutdown, SockFlag, SockProtocol, SockType};
use nix::unistd;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

/// Where to look for a free descriptor number, the first that the limit allows.
const FROM: [libc::c_int; 5] = [512, 128, 32, 10, 3];

/// Flags of all the agent's sockets.
const FLAGS: SockFlag = SockFlag::SOCK_CLOEXEC.union(SockFlag::SOCK_NONBLOCK);

/// A non-blocking, close-on-exec stream socket on a high descriptor number.
#[derive(Debug)]
pub struct Socket {
    fd: RawFd,
    cookie: u64,
}

impl Socket {
    /// A new stream socket of a family.
    pub fn new(family: AddressFamily) -> io::Result<Socket> {
        Socket::adopt(socket::socket(family, SockType::Stream, FLAGS, None)?)
    }

    /// A socket that asks the kernel about others (sock_diag(7)).
    pub fn diagnosis() -> io::Result<Socket> {
        let protocol = SockProtocol::NetlinkSockDiag;
        Socket::adopt(socket::socket(AddressFamily::Netlink, SockType::Datagram, FLAGS, protocol)?)
    }

    /// Two sockets that are connected with each other.
    pub fn pair() -> io::Result<(Socket, Socket)> {
        let (one, other) = socket::socketpair(AddressFamily::Unix, SockType::Stream, None, FLAGS)?;
        Ok((Socket::adopt(one)?, Socket::adopt(other)?))
    }

    /// The next connection of a listening socket.
    pub fn accept(&self) -> io::Result<Socket> {
        self.check()?;
        let fd = socket::accept4(self.fd, FLAGS)?;
        // SAFETY: made a moment ago; nothing else uses it.
        Socket::adopt(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Takes over a descriptor just made, on a high number.
    fn adopt(low: OwnedFd) -> io::Result<Socket> {
        // Fails with EINVAL above the limit, and with EMFILE when nothing is free (fcntl(2)).
        let duplicate = |from| fcntl(&low, FcntlArg::F_DUPFD_CLOEXEC(from)).ok();
        let fd = match FROM.into_iter().find_map(duplicate) {
            // SAFETY: made a moment ago; nothing else uses it.
            Some(high) => unsafe { OwnedFd::from_raw_fd(high) },
            // No second number is free. The first will do, unless it is one that the host's
            // standard streams should have.
            None if low.as_raw_fd() > 2 => low,
            None => return Err(Errno::EMFILE.into()),
        };
        let cookie = cookie(fd.as_raw_fd()).ok_or(Errno::ENOTSOCK)?;
        Ok(Socket { fd: fd.into_raw_fd(), cookie })
    }

    /// The descriptor, for calls that only look.
    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// The kernel's number of this socket, which no other socket has.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Whether the descriptor is still the socket that was opened.
    pub fn is_ours(&self) -> bool {
        cookie(self.fd) == Some(self.cookie)
    }

    fn check(&self) -> io::Result<()> {
        match self.is_ours() {
            true => Ok(()),
            false => Err(Errno::ENOTSOCK.into()),
        }
    }

    /// Reads what is there, without waiting; 0 is the end.
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        Ok(socket::recv(self.fd, into, MsgFlags::MSG_DONTWAIT)?)
    }

    /// Writes what fits, without waiting and without SIGPIPE.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        Ok(socket::send(self.fd, bytes, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL)?)
    }

    /// Sends the end to the peer; receiving still works.
    pub fn end_of_sending(&self) {
        if self.is_ours() {
            let _ = socket::shutdown(self.fd, Shutdown::Write);
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
            let _ = socket::shutdown(self.fd, Shutdown::Both);
            let _ = unistd::close(self.fd);
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the agent does not close it while `self` lives. Where the host closed it, calls
        // return EBADF.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}

/// A socket option of a plain type. `value` must be valid whatever bytes it has. Not by nix, which
/// panics where the kernel, or a filter in its place, answers with another length.
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
