//! The user at the other end of a TCP connection on this machine. The kernel reports the owner of a
//! socket by its socket diagnosis (sock_diag(7)): one request, one reply, no waiting, however many
//! sockets there are.
//!
//! Not here: users of other machines, which cannot be found out; what is done with the answer
//! (`access.rs`).

use std::io;
use std::net::{IpAddr, SocketAddr};
use swipr_os::socket::Socket;

/// `SOCK_DIAG_BY_FAMILY`, of question and answer (linux/sock_diag.h).
const BY_FAMILY: u16 = 20;
/// `TCP_ESTABLISHED`. A client that has closed its socket, or another socket of the same port, is
/// in another state.
const ESTABLISHED: u8 = 1;
/// `struct nlmsghdr`, `struct inet_diag_sockid`, and the answer up to and with its user
/// (linux/inet_diag.h).
const HEAD: usize = 16;
const ID: usize = 48;
const STATE_AT: usize = HEAD + 1;
const ID_AT: usize = HEAD + 4;
const UID_AT: usize = ID_AT + ID + 12;

/// The user that connected from `peer` to the agent's `local`.
pub(crate) fn uid(local: SocketAddr, peer: SocketAddr) -> io::Result<u32> {
    let socket = Socket::diagnosis()?;
    let question = question(local, peer);
    socket.send(&question)?;
    let mut answer = [0; 1024];
    let length = socket.receive(&mut answer)?;
    read(answer.get(..length).unwrap_or(&[]), peer.port())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the kernel does not know its socket"))
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: the socket that has `peer` as its own address.
fn question(local: SocketAddr, peer: SocketAddr) -> Vec<u8> {
    const LENGTH: u32 = (HEAD + 8 + ID) as u32;
    const NLM_F_REQUEST: u16 = 1;
    let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut question = Vec::with_capacity(LENGTH as usize);
    question.extend(LENGTH.to_ne_bytes());
    question.extend(BY_FAMILY.to_ne_bytes());
    question.extend(NLM_F_REQUEST.to_ne_bytes());
    question.extend([0; 8]);
    question.extend([family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    question.extend((1_u32 << ESTABLISHED).to_ne_bytes());
    question.extend(peer.port().to_be_bytes());
    question.extend(local.port().to_be_bytes());
    question.extend(sixteen(peer.ip()));
    question.extend(sixteen(local.ip()));
    // Any interface, and no cookie.
    question.extend([0; 4]);
    question.extend([0xff; 8]);
    question
}

fn sixteen(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

fn read(answer: &[u8], port: u16) -> Option<u32> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let of_port = u16::from_be_bytes(*answer.get(ID_AT..)?.first_chunk()?);
    let uid = u32::from_ne_bytes(*answer.get(UID_AT..)?.first_chunk()?);
    (kind == BY_FAMILY && *answer.get(STATE_AT)? == ESTABLISHED && of_port == port).then_some(uid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_kernel_knows_who_connected_as_long_as_the_connection_is() {
        let own = swipr_os::process::user();
        for place in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(place) else { continue }; // machines without IPv6 exist
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, peer) = listener.accept().unwrap();
            let local = accepted.local_addr().unwrap();
            assert_eq!(uid(local, peer).unwrap(), own);
            assert!(uid(peer, local).is_ok(), "the other way round it is our own socket");
            drop(client);
            assert!(uid(local, peer).is_err(), "a socket that was closed is nobody's");
        }
        assert!(uid("127.0.0.1:9".parse().unwrap(), "127.0.0.1:8".parse().unwrap()).is_err());
    }

    #[test]
    fn an_answer_that_is_none_is_not_read_as_one() {
        assert_eq!(read(&[], 1), None);
        assert_eq!(read(&[0; 88], 0), None);
        assert_eq!(read(&[0xff; 40], 0xffff), None);
    }
}
