//! Waking the server from a thread of the host.
//!
//! The server thread has its own descriptor table, so there is no descriptor that another thread
//! could write to. But any thread can connect: a connection that sends nothing wakes the server and
//! has no other effect.

use crate::listen::{self, Address};
use std::io;
use std::net::TcpStream;
use std::time::Duration;
use swipr_os::socket::Socket;

/// An open connection.
#[derive(Debug)]
pub enum ServerWaker {
    /// To a Unix socket.
    Unix(#[allow(dead_code)] Socket),
    /// To a TCP port.
    Tcp(#[allow(dead_code)] TcpStream),
}

/// Connects to the process's own server. Dropping the connection closes it. Waits a second at most.
pub fn connect(address: &Address) -> io::Result<ServerWaker> {
    match address {
        Address::Path(_) | Address::Abstract(_) => listen::connect(address).map(ServerWaker::Unix),
        Address::Tcp(address) => {
            let mut address = *address;
            if address.ip().is_unspecified() {
                address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
            }
            TcpStream::connect_timeout(&address, Duration::from_secs(1)).map(ServerWaker::Tcp)
        }
    }
}
