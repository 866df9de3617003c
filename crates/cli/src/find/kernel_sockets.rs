//! Sockets that listen, as the kernel lists them in `/proc/PID/net` (proc(5)). Not here: whose they
//! are.

use crate::endpoint::Endpoint;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The flag of a Unix socket that listens (`__SO_ACCEPTCON`).
const ACCEPTS: u32 = 0x10000;
/// The state of a TCP socket that listens (`TCP_LISTEN`).
const LISTENS: &str = "0A";

/// Those of the sockets with these inodes that listen, in the network namespace of a process. Paths
/// are as their process wrote them.
pub fn listening(process: &Path, inodes: &[u64]) -> Vec<Endpoint> {
    let read = |name: &str| std::fs::read(process.join("net").join(name)).unwrap_or_default();
    let mut others = inodes.to_vec();
    let mut found = Vec::new();
    for (inode, endpoint) in read("unix").split(|&byte| byte == b'\n').filter_map(unix) {
        if let Some(at) = others.iter().position(|other| *other == inode) {
            others.swap_remove(at);
            found.extend(endpoint);
        }
    }
    // A busy server's are long: closed connections stay in them for a minute.
    for table in ["tcp", "tcp6"].iter().filter(|_| !others.is_empty()) {
        let text = String::from_utf8_lossy(&read(table)).into_owned();
        let ours = text.lines().filter_map(tcp).filter(|(inode, _)| others.contains(inode));
        found.extend(ours.map(|(_, endpoint)| endpoint));
    }
    found
}

/// `Num RefCount Protocol Flags Type St Inode Path`: a socket, and where it listens if it does.
fn unix(line: &[u8]) -> Option<(u64, Option<Endpoint>)> {
    let mut rest = line;
    let mut fields = std::iter::from_fn(|| {
        let start = rest.iter().position(|byte| *byte != b' ')?;
        let (_, from) = rest.split_at(start);
        let end = from.iter().position(|byte| *byte == b' ').unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        rest = after;
        std::str::from_utf8(word).ok()
    });
    let flags = u32::from_str_radix(fields.nth(3)?, 16).ok()?;
    let inode: u64 = fields.nth(2)?.parse().ok()?;
    let Some(path) = rest.strip_prefix(b" ").filter(|_| flags & ACCEPTS != 0) else {
        return Some((inode, None));
    };
    let endpoint = match path.strip_prefix(b"@") {
        // NUL bytes of an abstract name are written as @, too, and cannot be told from a real @.
        Some(name) => Endpoint::Abstract(name.to_vec()),
        None => Endpoint::Path(std::ffi::OsString::from_vec(path.to_vec()).into()),
    };
    Some((inode, Some(endpoint)))
}

/// `sl local_address rem_address st … inode`, the tenth field.
fn tcp(line: &str) -> Option<(u64, Endpoint)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    if *state != LISTENS {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    // Words of four bytes, each in the byte order of the machine.
    let words: Vec<[u8; 4]> = address
        .as_bytes()
        .chunks(8)
        .filter_map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok())
        .map(u32::to_ne_bytes)
        .collect();
    let ip = match words.as_slice() {
        [v4] => IpAddr::V4(Ipv4Addr::from(*v4)),
        [a, b, c, d] => {
            let bytes: [u8; 16] =
                [a, b, c, d].into_iter().flatten().copied().collect::<Vec<_>>().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some((inode.parse().ok()?, Endpoint::Tcp(SocketAddr::new(reachable(ip), port))))
}

/// An agent that listens at every address is reached at loopback.
fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(v4) if v4.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(v6) if v6.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_this_process_are_listed_with_their_addresses() {
        let directory = swipr_c_tests::directory::Directory::new();
        let path = directory.path().join("a b.sock");
        let _unix = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let tcp6 = std::net::TcpListener::bind("[::]:0").ok();
        let own = Path::new("/proc/self");
        let inodes = super::super::sockets::sockets_of(own);
        let found = listening(own, &inodes);
        assert!(found.contains(&Endpoint::Path(path)), "{found:?}");
        assert!(found.contains(&Endpoint::Tcp(tcp.local_addr().expect("an address"))), "{found:?}");
        assert!(listening(own, &[]).is_empty());
        if let Some(address) = tcp6.and_then(|socket| socket.local_addr().ok()) {
            let asked = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), address.port());
            assert!(found.contains(&Endpoint::Tcp(asked)), "{found:?}");
        }
    }

    #[test]
    fn sockets_that_do_not_listen_are_passed_over() {
        let connected = b"0000000000000000: 00000003 00000000 00000000 0001 03 26514 /run/x";
        assert_eq!(unix(connected), Some((26514, None)));
        assert_eq!(unix(b"0000000000000000: 00000003 00000000 00000000 0001 03 26514"), Some((26514, None)));
        let line = b"0000000000000000: 00000002 00000000 00010000 0001 01 26514 @/name";
        assert_eq!(unix(line), Some((26514, Some(Endpoint::Abstract(b"/name".to_vec())))));
        assert_eq!(unix(b"Num       RefCount Protocol Flags    Type St Inode Path"), None);
    }
}
