//! Authorization, by TCP and by abstract sockets.

use super::support::{Answer, BOUND, Client, Player, serve};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use swipr_server::listen::{Pattern, Place};
use swipr_server::{Limits, Server, Settings};

fn tcp(token: Option<&str>) -> (Server, String) {
    let limits = Limits { connections: 4, ..Limits::default() };
    let settings = Settings { token: token.map(str::to_owned), limits, ..Settings::default() };
    let place = Place::Tcp("127.0.0.1:0".parse().unwrap());
    serve(&place, settings, &Arc::new(Player::default()))
}

fn status(address: &str, target: &str, headers: &str) -> u16 {
    ask(address, target, headers).1.status
}

fn ask(address: &str, target: &str, headers: &str) -> (Client<TcpStream>, Answer) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let mut client = Client::over(stream);
    client.send(format!("GET {target} HTTP/1.1\r\n{headers}\r\n"));
    let answer = client.answer();
    (client, answer)
}

#[test]
fn a_web_page_cannot_ask_by_tcp() {
    let (_server, address) = tcp(None);
    for (headers, expected) in [
        (format!("Host: {address}\r\n"), 200),
        ("Host: localhost\r\n".to_owned(), 200),
        (format!("Host: {address}\r\nOrigin: http://{address}\r\n"), 200),
        (String::new(), 403),
        ("Host: rebound.example\r\n".to_owned(), 403),
        ("Host: 10.1.2.3\r\n".to_owned(), 403),
        (format!("Host: {address}\r\nOrigin: http://evil.example\r\n"), 403),
        (format!("Host: {address}\r\nOrigin: null\r\n"), 403),
    ] {
        assert_eq!(status(&address, "/health", &headers), expected, "{headers}");
        assert_eq!(status(&address, "/profile", &headers), expected, "{headers}");
    }
}

/// Regression: an `<img>` sends no `Origin`. A page in a user's browser took all recordings, at
/// 9 kHz.
#[test]
fn a_web_page_cannot_have_a_picture_a_frame_or_a_link_ask_by_tcp() {
    let (_server, address) = tcp(None);
    let chromes_page =
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
    let chromes_picture = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";
    for (headers, expected) in [
        ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: image\r\n".to_owned(), 403),
        ("Sec-Fetch-Site: same-site\r\n".to_owned(), 403),
        (
            format!("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nAccept: {chromes_page}\r\n"),
            403,
        ),
        ("Sec-Fetch-Site: else\r\n".to_owned(), 403),
        (format!("Sec-Fetch-Site: none\r\nAccept: {chromes_page}\r\n"), 200),
        ("Sec-Fetch-Site: same-origin\r\n".to_owned(), 200),
        (format!("Sec-Fetch-Site: same-origin\r\nAccept: {chromes_picture}\r\n"), 200),
        // Browsers that do not say whose page it is.
        (format!("Accept: {chromes_picture}\r\n"), 403),
        ("Accept: image/webp,*/*\r\n".to_owned(), 403),
        ("Accept: image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5\r\n".to_owned(), 403),
        (format!("Accept: {chromes_page}\r\n"), 200),
        ("Accept: */*\r\n".to_owned(), 200),
        ("Accept: image/svg+xml\r\n".to_owned(), 200),
    ] {
        let headers = format!("Host: {address}\r\n{headers}");
        assert_eq!(status(&address, "/flamegraph.svg", &headers), expected, "{headers}");
    }
}

#[test]
fn a_token_is_asked_for_by_tcp() {
    let (_server, address) = tcp(Some("s3cret"));
    for (target, headers, expected) in [
        ("/health", "Authorization: Bearer s3cret\r\n", 200),
        ("/health", "authorization: bearer s3cret\r\nHost: pod.example\r\n", 200),
        ("/health?token=s3cret", "", 200),
        ("/profile?samples=1&token=s3cret", "", 200),
        // Probes of orchestrators have none.
        ("/health", "", 200),
        ("/status", "", 401),
        ("/health/", "", 401),
        ("/status?token=", "", 401),
        ("/status?token=s3cre", "", 401),
        ("/status?token=s3crets", "", 401),
        ("/status", "Authorization: Bearer wrong\r\n", 401),
        ("/status", "Authorization: Basic s3cret\r\n", 401),
        ("/health?token=s3cret", "Origin: http://evil.example\r\n", 403),
    ] {
        assert_eq!(status(&address, target, headers), expected, "{target} {headers}");
    }
}

/// Regression: the connection of a client that was refused was kept for a minute; with 64 of them
/// the owner got 503.
#[test]
fn strangers_who_keep_their_connections_do_not_keep_the_owner_out() {
    let (_server, address) = tcp(Some("s3cret"));
    let mut held = Vec::new();
    for (target, expected) in [("/status", 401), ("/health", 200)] {
        for _ in 0..5 {
            let (client, answer) = ask(&address, target, "");
            assert_eq!((answer.status, answer.header("Connection")), (expected, Some("close")));
            held.push(client);
        }
        let (_, answer) = ask(&address, "/status", "Authorization: Bearer s3cret\r\n");
        assert_eq!((answer.status, answer.header("Connection")), (200, None));
    }
}

#[test]
fn help_on_an_abstract_socket_has_its_commands() {
    let name = format!("swipr-http-test-{}", std::process::id());
    let place = Place::Abstract(Pattern::literal(name.as_bytes()));
    let player = Arc::new(Player::default());
    let (_server, shown) = serve(&place, Settings::default(), &player);
    assert_eq!(shown, format!("@{name}"));
    let mut client = by_abstract_name(&name);
    client.send("GET / HTTP/1.1\r\n\r\n");
    let text = client.answer().text();
    assert!(text.contains(&format!("--abstract-unix-socket {name} ")), "{text}");
}

fn by_abstract_name(name: &str) -> Client<std::os::unix::net::UnixStream> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixStream};
    let address = SocketAddr::from_abstract_name(name).unwrap();
    Client::over(UnixStream::connect_addr(&address).unwrap())
}

/// The status that a process of another user gets; needs root to become one.
fn status_for_user<S: Read + Write>(uid: libc::uid_t, connect: impl Fn() -> Client<S>) -> libc::c_int {
    // SAFETY: the child asks one question and leaves by _exit(2).
    let child = unsafe { libc::fork() };
    if child == 0 {
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // SAFETY: setresuid(2) takes no pointers; the child has one thread.
            assert_eq!(unsafe { libc::setresuid(uid, uid, uid) }, 0);
            let mut client = connect();
            client.send("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
            client.answer().status
        }));
        // An exit status has 8 bits.
        let code = asked.map_or(0, |status| libc::c_int::from(status / 100 * 10 + status % 100));
        // SAFETY: _exit(2) does not return.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waitpid(2) writes one int.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WEXITSTATUS(status)
}

fn is_root() -> bool {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn a_stranger_is_refused_on_an_abstract_socket_unless_allowed() {
    if !is_root() {
        return;
    }
    let name = format!("swipr-http-strangers-{}", std::process::id());
    let place = Place::Abstract(Pattern::literal(name.as_bytes()));
    let settings = Settings { allowed_uids: vec![12346], ..Settings::default() };
    let (_server, _) = serve(&place, settings, &Arc::new(Player::default()));
    assert_eq!(status_for_user(12345, || by_abstract_name(&name)), 43, "403");
    assert_eq!(status_for_user(12346, || by_abstract_name(&name)), 20, "200");
    assert_eq!(status_for_user(0, || by_abstract_name(&name)), 20, "200");
}

#[test]
fn a_stranger_is_refused_by_tcp_unless_allowed_or_in_the_know() {
    if !is_root() {
        return;
    }
    let settings = Settings { allowed_uids: vec![12346], ..Settings::default() };
    for place in ["127.0.0.1:0", "[::1]:0"] {
        let place = Place::Tcp(place.parse().unwrap());
        let (_server, address) = serve(&place, settings.clone(), &Arc::new(Player::default()));
        let connect = || Client::over(TcpStream::connect(&address).unwrap());
        assert_eq!(status_for_user(12345, connect), 43, "403");
        assert_eq!(status_for_user(12346, connect), 20, "200");
        assert_eq!(status_for_user(0, connect), 20, "200");
    }
    let (_server, address) = tcp(Some("s3cret"));
    let connect = || Client::over(TcpStream::connect(&address).unwrap());
    assert_eq!(status_for_user(12345, connect), 41, "401: a token would do, whoever sends it");
}

/// Regression: the users in `SWIPR_ALLOW_UID` were authorized, but could not open the socket of
/// mode 0600.
#[test]
fn users_that_are_allowed_reach_the_socket_by_its_path() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root() {
        return;
    }
    for (allowed, mode, statuses) in [(vec![], 0o600, [0, 0]), (vec![12346], 0o666, [43, 20])] {
        let path = std::env::temp_dir().join(format!("swipr-http-allowed-{}", std::process::id()));
        let place = Place::Path(Pattern::literal(path.as_os_str().as_encoded_bytes()));
        let settings = Settings { allowed_uids: allowed, ..Settings::default() };
        let (_server, _) = serve(&place, settings, &Arc::new(Player::default()));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, mode);
        for (uid, status) in [12345, 12346].into_iter().zip(statuses) {
            assert_eq!(status_for_user(uid, || Client::connect(&path)), status, "{uid}");
        }
    }
}
