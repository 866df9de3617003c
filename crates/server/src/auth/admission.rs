//! Authorization of new clients, by the user that the kernel reports.
//! Not here: what requests must have (`access.rs`).

use super::{access, tcp_peer};
use crate::Settings;
use crate::listen::{Address, local_address, peer_address};
use crate::proto::answer::Answer;
use std::io;
use std::net::SocketAddr;
use swipr_os::process;
use swipr_os::socket::Socket;

/// What a client may do, by its connection.
#[derive(Debug)]
pub(crate) enum ClientAccess {
    /// Its requests are answered.
    Open,
    /// Every request gets this answer.
    Refused(Answer),
    /// It came by TCP to this address of the agent: each request is checked.
    Tcp(SocketAddr),
}

/// Checks a client that has just connected.
pub(crate) fn gate(socket: &Socket, address: &Address, settings: &Settings) -> ClientAccess {
    // Read each time: the host may have dropped privileges.
    let own_uid = process::user();
    let user = |found: io::Result<u32>, otherwise: ClientAccess| match found {
        Ok(uid) if access::is_allowed(uid, own_uid, &settings.allowed_uids) => otherwise,
        Ok(uid) => ClientAccess::Refused(access::forbidden_user(uid)),
        Err(error) => ClientAccess::Refused(unknown(&error)),
    };
    match address {
        Address::Tcp(_) => match (local_address(socket), &settings.token) {
            // With the token, any user on any machine is allowed.
            (Ok(local), Some(_)) => ClientAccess::Tcp(local),
            (Ok(local), None) => user(
                peer_address(socket).and_then(|peer| tcp_peer::uid(local, peer)),
                ClientAccess::Tcp(local),
            ),
            (Err(error), _) => ClientAccess::Refused(unknown(&error)),
        },
        Address::Path(_) | Address::Abstract(_) => user(socket.peer_uid(), ClientAccess::Open),
    }
}

fn unknown(error: &io::Error) -> Answer {
    Answer::problem(403, format!("cannot tell who is asking: {error}; by TCP, SWIPR_TOKEN would do"))
}
