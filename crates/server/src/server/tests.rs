//! What a host may do to the server's descriptors.

use super::*;
use crate::listen::{Directories, Identity, Pattern, Place, Reach};
use crate::recording::{Output, Request, StartError};
use std::io::{Read, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

const BOUND: Duration = Duration::from_secs(60);

struct Nobody;

impl Recorder for Nobody {
    fn start(&self, _: Request, _: Box<dyn Output>) -> Result<(), StartError> {
        Err(StartError::Stopping)
    }

    fn status(&self) -> String {
        "{}".to_owned()
    }

    fn metrics(&self) -> String {
        String::new()
    }
}

fn listener(name: &str) -> (Listener, PathBuf) {
    let name = format!("swipr-server-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let place = Place::Path(Pattern::literal(path.as_os_str().as_encoded_bytes()));
    let directories = Directories::system(None);
    let listener = Listener::open(&place, &Identity::of_this_process(), &directories, Reach::Owner);
    (listener.unwrap(), path)
}

fn start(listener: Listener, recorder: impl Recorder + 'static, settings: Settings) -> Server {
    let (server, event_loop) = Server::new(vec![listener], Arc::new(recorder), settings).unwrap();
    thread::spawn(move || event_loop.run());
    server
}

fn is_healthy(path: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(path) else {
        return false;
    };
    let mut answer = String::new();
    stream.set_read_timeout(Some(BOUND)).unwrap();
    let sent = stream.write_all(b"GET /health HTTP/1.0\r\n\r\n");
    let read = stream.read_to_string(&mut answer);
    sent.is_ok() && read.is_ok() && answer.ends_with("OK\n")
}

fn becomes_healthy(path: &Path) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < BOUND {
        if is_healthy(path) {
            return true;
        }
        thread::yield_now();
    }
    false
}

/// Runs a test in a process of its own: one that closes descriptors by their numbers may close, or
/// serve, what a test beside it has opened meanwhile under the same number.
fn alone(test: impl FnOnce()) {
    const ALONE: &str = "SWIPR_TEST_IS_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let current = thread::current();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", current.name().unwrap()]).env(ALONE, "1");
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(output.contains("1 passed"), "{output}");
}

/// What a host does to a descriptor that it takes for its own.
fn lost_to(name: &str, take: impl Fn(RawFd)) {
    let (listener, path) = listener(name);
    let fd = listener.socket().fd();
    let settings = Settings { shares_descriptors: true, ..Settings::default() };
    let server = start(listener, Nobody, settings);
    assert!(is_healthy(&path));
    take(fd);
    assert!(becomes_healthy(&path), "the listener is opened again");
    server.stop();
    assert!(server.wait(BOUND));
    assert!(!path.exists(), "and the new file is removed");
}

#[test]
fn a_listener_that_the_host_closed_is_opened_again() {
    alone(|| {
        lost_to("closed", |fd| {
            // SAFETY: what the test is about: a close of a number that is not the caller's.
            unsafe { libc::close(fd) };
        });
    });
}

#[test]
fn a_listener_whose_number_the_host_took_is_opened_again_and_the_number_left_alone() {
    alone(|| {
        let (hosts, peer) = swipr_os::socket::Socket::pair().unwrap();
        peer.send(b"for the host").unwrap();
        let number = std::cell::Cell::new(-1);
        lost_to("taken", |fd| {
            number.set(fd);
            // SAFETY: dup2(2) takes no pointers; the host takes our number.
            unsafe { libc::dup2(hosts.fd(), fd) };
        });
        assert_eq!(swipr_os::socket::cookie(number.get()), Some(hosts.cookie()));
        assert_eq!(hosts.receive(&mut [0; 64]).unwrap(), 12, "nothing was stolen");
        // SAFETY: the number that dup2 made above, closed once.
        unsafe { libc::close(number.get()) };
    });
}

#[test]
fn the_child_of_a_fork_closes_its_copies_and_leaves_the_parent_its_server() {
    alone(|| {
        let (listener, path) = listener("fork");
        let fd = listener.socket().fd();
        let settings = Settings::default();
        let server = start(listener, Nobody, settings);
        // SAFETY: the child makes system calls only and leaves by _exit(2).
        let child = unsafe { libc::fork() };
        if child == 0 {
            server.close_in_child();
            let is_closed = swipr_os::socket::cookie(fd).is_none();
            // SAFETY: _exit(2) does not return.
            unsafe { libc::_exit(if is_closed { 7 } else { 8 }) };
        }
        let mut status = 0;
        // SAFETY: waitpid(2) writes one int.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 7);
        assert!(is_healthy(&path));
        drop(server);
        assert!(!path.exists());
    });
}

#[test]
fn a_waker_that_the_host_closed_does_not_stop_the_service() {
    alone(|| {
        let (listener, path) = listener("waker");
        let settings = Settings::default();
        let (server, event_loop) = Server::new(vec![listener], Arc::new(Nobody), settings).unwrap();
        for socket in event_loop.sleeper.iter().chain([server.control.waker.socket()]) {
            // SAFETY: what the test is about: a close of a number that is not the caller's.
            unsafe { libc::close(socket.fd()) };
        }
        let thread = thread::spawn(move || event_loop.run());
        assert!(is_healthy(&path));
        server.stop();
        // The next thing that happens shows the loop that it should stop.
        let begin = Instant::now();
        while !thread.is_finished() && begin.elapsed() < BOUND {
            thread::yield_now();
            if !path.exists() {
                break;
            }
        }
        assert!(!path.exists());
    });
}

struct Panics;

impl Recorder for Panics {
    fn start(&self, _: Request, _: Box<dyn Output>) -> Result<(), StartError> {
        Err(StartError::Stopping)
    }

    fn poll(&self) {
        panic!("as the test wants it");
    }

    fn status(&self) -> String {
        String::new()
    }

    fn metrics(&self) -> String {
        String::new()
    }
}

/// Regression: `swipr_stop` waited its five seconds for a thread that had ended.
#[test]
fn a_server_whose_thread_panicked_is_done_and_its_socket_is_removed() {
    let (listener, path) = listener("panics");
    let server = start(listener, Panics, Settings::default());
    server.wake();
    assert!(server.wait(BOUND));
    assert!(!path.exists());
}
