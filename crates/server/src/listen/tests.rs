use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("swipr-listen-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Result<Listener, ListenError> {
    let place = Place::Path(Pattern::literal(path.as_os_str().as_bytes()));
    let identity = Identity::of_this_process();
    Listener::open(&place, &identity, &Directories::system(None), Reach::Owner)
}

fn default_in(directories: &Directories) -> Result<Listener, ListenError> {
    Listener::open(&Place::Default, &Identity::of_this_process(), directories, Reach::Owner)
}

fn path_of(listener: &Listener) -> &Path {
    listener.file().unwrap().path()
}

#[test]
fn a_socket_is_private_and_is_removed_when_it_is_closed() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    let listener = open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    UnixStream::connect(&path).unwrap();
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    drop(UnixListener::bind(&path).unwrap());
    let listener = open(&path).unwrap();
    UnixStream::connect(&path).unwrap();
    assert!(matches!(open(&path), Err(ListenError::InUse(_))));
    UnixStream::connect(&path).unwrap();
    drop(listener);
}

/// Regression: between bind(2) and listen(2) a socket looks stale, and of agents that started at
/// the same time two listened at one path.
#[test]
fn of_agents_that_start_together_one_has_the_path() {
    let scratch = Scratch::new();
    for round in 0..200 {
        let path = scratch.join(&round.to_string());
        drop(UnixListener::bind(&path).unwrap());
        let start = std::sync::Barrier::new(4);
        let opened: Vec<_> = std::thread::scope(|scope| {
            let agent = || {
                start.wait();
                open(&path)
            };
            let agents = [0; 4].map(|_| scope.spawn(agent));
            agents.into_iter().map(|agent| agent.join().unwrap()).collect()
        });
        assert_eq!(opened.iter().flatten().count(), 1, "{opened:?}");
        UnixStream::connect(&path).unwrap();
    }
}

#[test]
fn a_path_that_another_program_claims_is_opened_all_the_same() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    let _claim = file::claim(&path, 1).unwrap();
    drop(open(&path).unwrap());
}

#[test]
fn a_file_that_is_no_socket_stays() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    fs::write(&path, "precious").unwrap();
    assert!(matches!(open(&path), Err(ListenError::InTheWay(_))));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_symlink_is_not_followed() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    symlink(scratch.join("elsewhere"), &path).unwrap();
    assert!(matches!(open(&path), Err(ListenError::InTheWay(_))));
    assert!(!scratch.join("elsewhere").exists());
}

#[test]
fn a_socket_that_somebody_put_in_our_place_is_not_removed() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    let listener = open(&path).unwrap();
    fs::rename(&path, scratch.join("ours")).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(listener);
    UnixStream::connect(&path).unwrap();
    drop(other);
}

#[test]
fn the_108_bytes_of_an_address_are_filled_but_not_passed() {
    let scratch = Scratch::new();
    let room = address::MAX_BYTES - scratch.0.as_os_str().len() - 1;
    let longest = scratch.join(&"x".repeat(room));
    drop(open(&longest).unwrap());
    let too_long = scratch.join(&"x".repeat(room + 1));
    let error = open(&too_long).unwrap_err().to_string();
    assert!(error.contains("108 bytes are too many"), "{error}");
    assert!(error.contains("SWIPR_SOCKET"), "{error}");
    assert!(!too_long.exists());
}

#[test]
fn the_default_places_are_tried_in_order() {
    let scratch = Scratch::new();
    let mut directories = Directories {
        run: scratch.join("run"),
        runtime: Some(scratch.join("user")),
        temporary: vec![scratch.0.clone()],
    };
    for directory in ["run", "user"] {
        fs::create_dir(scratch.join(directory)).unwrap();
    }
    let name = format!("swipr-pid-{}.sock", std::process::id());
    let first = default_in(&directories).unwrap();
    assert_eq!(path_of(&first), scratch.join("run").join(&name));
    directories.run = scratch.join("not there");
    let second = default_in(&directories).unwrap();
    assert_eq!(path_of(&second), scratch.join("user").join(&name));
    directories.runtime = None;
    let third = default_in(&directories).unwrap();
    let own = third.file().unwrap().path().parent().unwrap().to_owned();
    assert_eq!(own.parent(), Some(scratch.0.as_path()));
    assert_eq!(fs::metadata(&own).unwrap().mode() & 0o777, 0o700);
    drop(third);
    directories.temporary.insert(0, scratch.join("not there"));
    let fourth = default_in(&directories).unwrap();
    assert_eq!(path_of(&fourth), own.join(&name), "the next directory for temporary files");
}

#[test]
fn a_directory_that_others_could_have_made_is_refused() {
    let scratch = Scratch::new();
    let directories =
        Directories { run: scratch.join("not there"), runtime: None, temporary: vec![scratch.0.clone()] };
    let own = scratch.join(&format!("swipr-{}", swipr_os::process::user()));
    let refusal = || default_in(&directories).unwrap_err().to_string();

    let target = scratch.join("target");
    fs::create_dir(&target).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
    symlink(&target, &own).unwrap();
    assert!(refusal().contains("it is a symlink"), "{}", refusal());
    fs::remove_file(&own).unwrap();

    fs::write(&own, "").unwrap();
    assert!(refusal().contains("not a directory"), "{}", refusal());
    fs::remove_file(&own).unwrap();

    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(refusal().contains("other users"), "{}", refusal());
    // SAFETY: as above.
    if swipr_os::process::user() == 0 {
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&own, Some(12345), None).unwrap();
        assert!(refusal().contains("another user"), "{}", refusal());
    }
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
}

/// Regression: a root shell with the environment of another user put its sockets into that user's
/// directory.
#[test]
fn a_runtime_directory_that_others_can_change_is_passed_over() {
    let scratch = Scratch::new();
    let runtime = scratch.join("user");
    fs::create_dir(&runtime).unwrap();
    let directories = Directories {
        run: scratch.join("not there"),
        runtime: Some(runtime.clone()),
        temporary: vec![scratch.0.clone()],
    };
    let place = || path_of(&default_in(&directories).unwrap()).parent().unwrap().to_owned();
    let set_mode = |mode| fs::set_permissions(&runtime, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o700);
    assert_eq!(place(), runtime);
    set_mode(0o1777);
    assert_eq!(place(), runtime, "sticky: what is ours stays ours");
    set_mode(0o777);
    assert_ne!(place(), runtime);
    if swipr_os::process::user() == 0 {
        set_mode(0o700);
        std::os::unix::fs::chown(&runtime, Some(12345), None).unwrap();
        assert_ne!(place(), runtime);
    }
}

/// Regression: connecting waited while the queue was full, which a dead server does not empty: its
/// host hung in `swipr_stop`.
#[test]
fn a_full_queue_is_not_waited_for() {
    let scratch = Scratch::new();
    let path = scratch.join("s");
    let listener = open(&path).unwrap();
    let connections = 0..BACKLOG + 70;
    let held: Vec<_> = connections.map(|_| connect(listener.address()).unwrap()).collect();
    assert!(held.len() > BACKLOG as usize + 1);
}

#[test]
fn an_abstract_name_is_taken_once() {
    let identity = Identity::of_this_process();
    let place = Place::Abstract(Pattern::parse(b"swipr-test-{UUID}").unwrap());
    let directories = Directories::system(None);
    let listener = Listener::open(&place, &identity, &directories, Reach::Owner).unwrap();
    assert_eq!(listener.address().to_string(), format!("@swipr-test-{}", identity.uuid));
    let again = Listener::open(&place, &identity, &directories, Reach::Owner);
    assert!(matches!(again, Err(ListenError::InUse(_))));
}

#[test]
fn tcp_reports_the_port_it_was_given() {
    let identity = Identity::of_this_process();
    let directories = Directories::system(None);
    for text in ["127.0.0.1:0", "[::1]:0"] {
        let place = Place::Tcp(text.parse().unwrap());
        match Listener::open(&place, &identity, &directories, Reach::Owner) {
            Ok(listener) => {
                let Address::Tcp(address) = listener.address() else {
                    panic!("{listener:?}");
                };
                assert_ne!(address.port(), 0);
                std::net::TcpStream::connect(address).unwrap();
            }
            // Machines without IPv6 exist.
            Err(error) => assert!(text.contains("::"), "{error}"),
        }
    }
}

/// Regression: children of a shell or of Python's multiprocessing end by _exit(2), and their
/// sockets stayed for ever.
#[test]
fn sockets_that_dead_processes_left_are_removed_by_the_next_agent() {
    let scratch = Scratch::new();
    // Above the largest number that the kernel gives (PID_MAX_LIMIT, 2^22).
    let dead = i32::MAX;
    let stale = |name: String| {
        let path = scratch.join(&name);
        drop(UnixListener::bind(&path).unwrap());
        path
    };
    let gone = [stale(default_name(dead)), stale(default_name(dead - 1))];
    let alive = scratch.join(&default_name(dead - 2));
    let listening = UnixListener::bind(&alive).unwrap();
    let file = scratch.join(&default_name(dead - 3));
    fs::write(&file, "no socket").unwrap();
    let kept = [
        alive,
        file,
        stale(default_name(1)),
        stale(default_name(format!("0{dead}"))),
        stale(default_name(-1)),
        stale("app.sock".to_owned()),
    ];

    remove_neighbours(&scratch.join("app-1.sock"));
    assert!(gone.iter().all(|path| path.exists()), "beside a socket of another name nothing is touched");

    let directories =
        Directories { run: scratch.0.clone(), runtime: None, temporary: vec![scratch.0.clone()] };
    let own = default_in(&directories).unwrap();
    remove_neighbours(path_of(&own));
    for path in &gone {
        assert!(!path.exists(), "{path:?}");
    }
    for path in kept.iter().map(PathBuf::as_path).chain([path_of(&own)]) {
        assert!(path.exists(), "{path:?}");
    }
    drop(listening);
}
